//! The file of a database that is one, made for whom the accounts' process becomes.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use tenfold_accounts::store::url::Url;
use tenfold_sys::user::User;

use crate::settings::members::{Place, usual_folder};

/// Makes what is missing of the place where the database is, so that `owner` can write there. Says the URL.
///
/// # Errors
/// In words: which folder or file can not be made.
pub(crate) fn prepare(place: &Place, owner: Option<&User>) -> Result<Url, String> {
    let url = place.url()?;
    let Some(path) = url.file().filter(|path| *path != Path::new(":memory:")) else { return Ok(url) };
    let wrong = |what: &Path, error: io::Error| format!("can not make {}: {error}", what.display());
    if *place == Place::Usual {
        let folder = usual_folder()?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| wrong(&folder, error))?;
        give(&File::open(&folder).map_err(|error| wrong(&folder, error))?, owner)
            .map_err(|error| wrong(&folder, error))?;
    }
    // Hashes of passwords are nobody else's to read.
    let file = File::options().append(true).create(true).mode(0o600).open(path);
    let file = file.map_err(|error| wrong(path, error))?;
    let facts = file.metadata().map_err(|error| wrong(path, error))?;
    if facts.len() == 0 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| wrong(path, error))?;
    }
    if facts.is_file() && facts.nlink() == 1 {
        give(&file, owner).map_err(|error| wrong(path, error))?;
    }
    Ok(url)
}

fn give(file: &File, owner: Option<&User>) -> io::Result<()> {
    match owner {
        Some(owner) if file.metadata()?.uid() != owner.id => fchown(file, Some(owner.id), Some(owner.group)),
        _ => Ok(()),
    }
}
