//! The server under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The program under test.
#[derive(Debug)]
pub struct Binary {
    /// Its file.
    pub path: PathBuf,
}

/// The folder of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the suite stands in the workspace")
}

/// The target directory of cargo that contains this program.
pub fn target() -> PathBuf {
    profile_folder().parent().expect("cargo puts a test three folders deep").to_owned()
}

/// The folder of the profile that this program was built with.
fn profile_folder() -> PathBuf {
    let me = std::env::current_exe().expect("a running program has a path");
    // target/debug/deps/suite-0123456789abcdef
    me.ancestors().nth(2).expect("cargo puts a test three folders deep").to_owned()
}

/// The server in `TENFOLD_BIN`, or a new build with assertions and the hooks of tests. The build is optimised
/// for the long suites and for an optimised suite; otherwise it shares its dependencies with the tests of crates.
pub fn server() -> Result<&'static Binary, String> {
    static SERVER: OnceLock<Result<Binary, String>> = OnceLock::new();
    SERVER.get_or_init(find).as_ref().map_err(Clone::clone)
}

fn find() -> Result<Binary, String> {
    if let Some(named) = std::env::var_os("TENFOLD_BIN") {
        let path = PathBuf::from(&named);
        if !path.is_file() {
            return Err(format!("TENFOLD_BIN names {}, which is not there", path.display()));
        }
        return Ok(Binary { path });
    }
    let optimised = crate::config::everything() || target().join("suite") == profile_folder();
    let (profile, folder) = if optimised { ("suite", "suite") } else { ("dev", "debug") };
    build(profile)?;
    Ok(Binary { path: target().join(folder).join("tenfold") })
}

fn build(profile: &str) -> Result<(), String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).stdin(Stdio::null());
    // As in `cargo xtask test`, whose other steps have built the dependencies. A target that is a test brings the features
    // of dev-dependencies: the clients of all databases, and the hooks of tests.
    cargo.args(["build", "--workspace", "--profile", profile]);
    cargo.args(["--bin", "tenfold", "--test", "admission", "--target-dir"]).arg(target());
    let status = cargo.status().map_err(|error| format!("run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("building the server failed: {status}")) }
}
