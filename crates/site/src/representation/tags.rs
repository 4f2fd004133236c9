//! Entity tags from content, where the configuration asks for them.
//!
//! A tag from time and size tells the versions of a file apart on one machine. One from content is the same
//! wherever the same bytes are: on several machines behind one name, and after a deployment that wrote every
//! file anew. It costs reading each file once. That is done beside the loop, and what came of it is kept by
//! the identity of the file, for all threads.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tenfold_http::OpenFile;
use tenfold_sys::file::{self, Facts};

use crate::Site;
use crate::cache::encoded::{Label, Shelf};
use crate::files::open::Loaded;
use crate::representation::digest::{self, Digest};
use crate::representation::encodings as coded;
use crate::representation::variant::{Resource, Source};
use crate::respond::message;
use crate::respond::store;
use crate::respond::work::{Answered, Work};

/// Where entity tags come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagFrom {
    /// Modification time, to the nanosecond, and size.
    #[default]
    Time,
    /// What is in the file.
    Content,
}

/// Whether the tag of this file comes from its content.
pub(crate) fn is_from_content(resource: &Resource, site: &Site) -> bool {
    let settings = &site.settings;
    settings.tags == TagFrom::Content && resource.facts().size <= settings.tags_up_to
}

/// Answers with a file that was just loaded, when its content has been read. A file that changed meanwhile
/// is answered with the tag that it has, and loaded anew for the next request; so is one for which there is
/// too much to do.
pub(crate) fn work(key: &str, loaded: Loaded, site: &Site) -> Answered {
    let (key, shelf) = (key.to_owned(), Arc::clone(&site.tags));
    let wanted: Vec<_> = loaded.resource.untagged();
    let loaded = Arc::new(loaded);
    let otherwise = Arc::clone(&loaded);
    let work = Work::new(
        move || wanted.iter().map(|content| content.read(&shelf)).collect::<Option<Vec<_>>>(),
        move |digests, site, head, out| {
            let Loaded { resource, keep } = &*loaded;
            let loaded = match digests {
                Some(digests) => Loaded { resource: resource.tagged(&digests), keep: *keep },
                None => Loaded { resource: resource.clone(), keep: false },
            };
            store::with(site, |store| store.take(&key, loaded, site, head, out))
        },
    );
    Answered::Work(work.or_else(move |site, head, out| {
        let mut resource = otherwise.resource.clone();
        if resource.alternatives().is_none() {
            return resource.respond(head, &site.settings, out);
        }
        coded::as_it_is(&resource, site, head, out).unwrap_or_else(|| message::unavailable(head, out))
    }))
}

/// Content of which a tag is to be made.
pub(crate) struct Untagged {
    pub(crate) source: Source,
    pub(crate) facts: Facts,
    pub(crate) settled: bool,
}

impl Untagged {
    /// Finds or makes its digest; none where it has changed, or can not be read.
    fn read(&self, shelf: &Shelf) -> Option<Arc<[u8]>> {
        let label = self.settled.then(|| Label::identity(&self.facts));
        if let Some(known) = label.and_then(|label| shelf.find(&label)) {
            return Some(known);
        }
        let digest: Arc<[u8]> = match &self.source {
            Source::Memory(bytes) => digest::of(bytes),
            Source::File(file) => of_file(file, &self.facts)?,
        }
        .into_bytes()
        .into();
        if let Some(label) = label {
            shelf.put(label, Arc::clone(&digest));
        }
        Some(digest)
    }
}

/// The digest of an open file, where it is this version of it from begin to end.
fn of_file(file: &OpenFile, facts: &Facts) -> Option<String> {
    let (mut digest, mut buffer, mut at) = (Digest::default(), vec![0; 128 * 1024], 0);
    while at < facts.size {
        match file.file.read_at(&mut buffer, at) {
            Ok(0) => return None,
            Ok(count) => {
                digest.add(&buffer[..count]);
                at += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    (file::facts(&file.file).ok()? == *facts).then(|| digest.finish())
}
