//! The container image, which needs a builder that runs here.

use std::path::Path;

use crate::shell::{self, Failed};

/// Builders of images, the first one that runs is used.
const BUILDERS: [&str; 3] = ["podman", "docker", "buildah"];

/// Builds the image from the folder of the archive. Without a builder, it is reported as not built.
///
/// # Errors
/// The builder failed.
pub(super) fn build(root: &Path, archive: &Path, version: &str) -> Result<(), Failed> {
    let Some(builder) = BUILDERS.into_iter().find(|builder| shell::succeeds(builder, &["info"])) else {
        println!("container: NOT BUILT: none of {} runs here", BUILDERS.join(", "));
        return Ok(());
    };
    let (folder, tag) = (archive.display().to_string(), format!("tenfold:{version}"));
    let file = "packaging/container/Containerfile";
    shell::run(root, builder, &["build", "-f", file, "-t", &tag, &folder], &[])
}
