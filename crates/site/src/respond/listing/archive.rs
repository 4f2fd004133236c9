//! A folder as a tar archive.
//!
//! A thread collects the names and lengths first, so the length of the archive is known. The content is not copied:
//! the archive is a sequence of headers and files, and each file is opened when its turn comes.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tar::{EntryType, Header};
use tenfold_http::{FieldName, FieldValue, Method, OpenFile, Part, PartSource, Request, ResponseWriter};
use tenfold_sys::file::{FileError, FileKind, FileStat};
use tenfold_sys::resolved_path::Identity;

use crate::files::protection::Protection;
use crate::files::roots::Roots;
use crate::reason::Reason;
use crate::representation::status_text::{self, NOSNIFF};
use crate::representation::summary::ResponseSummary;
use crate::respond::listing::natural::NaturalName;
use crate::respond::listing::view::encode_value;
use crate::rules::access::Guard;
use crate::rules::fields::ResponseFields;
use crate::rules::path::{SitePath, url_name};
use crate::rules::policy::{Listing, Policies};
use crate::rules::routes::Routes;
use crate::site::Site;

/// Caches may store a listing or an archive, but must revalidate it each time.
pub(super) const REVALIDATE: FieldValue<'static> = FieldValue::constant("no-cache");
const TAR: FieldValue<'static> = FieldValue::constant("application/x-tar");
/// The unit of an archive; two units of zeros end it (POSIX.1-2017, pax, "ustar Interchange Format").
const BLOCK: usize = 512;
/// The greatest depth of a folder beneath the archived folder.
const MOST_DEPTH: usize = 32;
/// The most bytes of an archive.
const MOST_BYTES: u64 = 1 << 40;
/// The most archives in a process. Each holds the names of its files.
const MOST_ARCHIVES: usize = 16;

/// A position after the end of every file, however it grows. Nothing can be read there.
const BEYOND: u64 = 1 << 41;

/// A folder to archive.
pub(crate) struct Packing {
    folder: SitePath,
    roots: Arc<Roots>,
    protection: Protection,
    policies: Policies,
    routes: Routes,
    /// The listing of folders without a rule.
    listing: Listing,
    /// The most names to read.
    most: usize,
    /// The name of the root.
    root_name: String,
}

/// The reason for a response without an archive.
pub(crate) enum Unpacked {
    /// The folder has more names, depth or bytes than an archive.
    TooLarge,
    /// The process makes as many archives as it may.
    Busy,
    Failed(FileError),
}

impl From<FileError> for Unpacked {
    fn from(error: FileError) -> Unpacked {
        Unpacked::Failed(error)
    }
}

/// Whether a query asks for an archive.
pub(crate) fn is_wanted(request: &Request<'_>) -> bool {
    request.target.query.is_some_and(|query| query.split('&').any(|pair| pair == "archive=tar"))
}

/// Answers that a folder is too large.
pub(crate) fn too_large(
    most: usize,
    request: &Request<'_>,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    let why = format!("\nAn archive has at most {most} names, in folders at most {MOST_DEPTH} deep.\n");
    status_text::with_fields(request, 403, &why, response, |_| {}).with_reason(Reason::LargeFolder)
}

impl Packing {
    /// Returns the packing of the folder that `folder` is the path of.
    pub(crate) fn of(folder: &SitePath, site: &Site) -> Packing {
        let settings = &site.settings;
        Packing {
            folder: folder.clone(),
            roots: Arc::clone(&site.files.roots),
            protection: site.files.protection.clone(),
            policies: settings.policies.clone(),
            routes: settings.routes.clone(),
            listing: settings.listing,
            most: settings.listing_entries,
            root_name: settings.root_name.clone(),
        }
    }

    /// Collects the files. The folder must still be `folder`, whose `guard` admitted the client.
    pub(crate) fn pack(self, folder: Identity, guard: &Guard) -> Result<Archive, Unpacked> {
        let place = ArchivePlace::take().ok_or(Unpacked::Busy)?;
        let top = self.folder.relative().rsplit('/').next().filter(|name| !name.is_empty());
        let top = top.unwrap_or(&self.root_name).to_owned();
        let mut archive = Archive { members: Vec::new(), opened: None, length: 2 * BLOCK as u64, top, place };
        let (mut seen, mut left) = (HashSet::from([folder]), self.most);
        let mut folders = vec![(self.folder.clone(), Member::folder(archive.top.clone(), 0), 0)];
        while let Some((path, member, depth)) = folders.pop() {
            let (is_top, name) = (depth == 0, member.name.clone());
            let root = self.roots.of(path.relative());
            let found = root.entries(path.relative(), left, |name| {
                url_name(name).is_some_and(|name| path.child(name, &self.routes.shown).is_some())
            });
            let found = match found {
                // It was removed or is not readable.
                Err(FileError::Absent | FileError::Link | FileError::Forbidden) if !is_top => continue,
                found => found?,
            };
            match seen.insert(found.identity) {
                true if is_top => return Err(FileError::Absent.into()),
                true => archive.add(member)?,
                false if is_top => {}
                // Through links, a folder can have several names, and can contain itself.
                false => continue,
            }
            if found.more || depth > MOST_DEPTH {
                return Err(Unpacked::TooLarge);
            }
            left -= found.entries.len();
            let mut entries = found.entries;
            entries.sort_by_cached_key(|entry| NaturalName::new(&entry.name));
            let mut inner = Vec::new();
            for entry in entries {
                let (path, name) = (path.entry(&entry.name), format!("{name}{}", entry.name));
                match entry.facts.kind {
                    FileKind::File => self.add_file(&path, name, guard, &mut archive)?,
                    FileKind::Directory if self.is_listed(&path) => {
                        inner.push((path, Member::folder(name, entry.facts.modified.seconds), depth + 1));
                    }
                    FileKind::Directory | FileKind::Special => {}
                }
            }
            folders.extend(inner.into_iter().rev());
        }
        Ok(archive)
    }

    /// Whether no rule switches off the listing of a folder.
    fn is_listed(&self, path: &SitePath) -> bool {
        let here = self.policies.at(path, None);
        here.policy.listing.unwrap_or(self.listing) != Listing::Off
    }

    /// Adds a file that a client with access to the folder can request by its path. Other files are left out.
    fn add_file(
        &self,
        path: &SitePath,
        name: String,
        guard: &Guard,
        archive: &mut Archive,
    ) -> Result<(), Unpacked> {
        if self.routes.redirect(path, None).is_some() || self.routes.rewrite(path).is_some() {
            return Ok(());
        }
        let root = self.roots.of(path.relative());
        let (file, facts) = match root.open_file(path.relative()) {
            Err(FileError::Exhausted(errno)) => return Err(FileError::Exhausted(errno).into()),
            Err(_) => return Ok(()),
            Ok((file, facts)) => (file, facts),
        };
        let own = self.protection.guard(path.relative(), &facts);
        let is_open = own.is_ok_and(|own| own.is_some_and(|own| own.is_open() || own == *guard));
        if facts.kind != FileKind::File || !is_open {
            return Ok(());
        }
        if facts.size > 0 && archive.opened.is_none() {
            archive.opened = Some(Arc::new(OpenFile::new(file, facts.size)));
        }
        let modified = facts.modified.seconds;
        archive.add(Member { name, modified, file: Some((path.relative().to_owned(), facts)) })
    }
}

/// A file or a folder in an archive.
struct Member {
    /// The path in the archive; that of a folder ends with a slash.
    name: String,
    /// Seconds since 1970.
    modified: i64,
    /// The path beneath the root, and the facts when the archive was begun; None: a folder.
    file: Option<(String, FileStat)>,
}

impl Member {
    fn folder(name: String, modified: i64) -> Member {
        Member { name: name + "/", modified, file: None }
    }

    fn size(&self) -> u64 {
        self.file.as_ref().map_or(0, |(_, facts)| facts.size)
    }

    /// Returns the header. A long name has another header before it. Owners and rights of the server's files are not
    /// for clients.
    fn header(&self) -> io::Result<Vec<u8>> {
        let mut header = Header::new_gnu();
        let (kind, mode) = match self.file {
            Some(_) => (EntryType::Regular, 0o644),
            None => (EntryType::Directory, 0o755),
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(self.size());
        header.set_mtime(u64::try_from(self.modified).unwrap_or_default());
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_data(&mut header, &self.name, io::empty())?;
        Ok(archive.get_ref().clone())
    }
}

/// Returns the zeros after content of this length.
fn padding(size: u64) -> usize {
    (size.next_multiple_of(BLOCK as u64) - size) as usize
}

/// An archive, ready to be sent.
pub(crate) struct Archive {
    members: Vec<Member>,
    /// The first file with content.
    opened: Option<Arc<OpenFile>>,
    length: u64,
    /// The name of the folder.
    top: String,
    place: ArchivePlace,
}

impl Archive {
    fn add(&mut self, member: Member) -> Result<(), Unpacked> {
        // A name that is no path of an archive is left out.
        let Ok(header) = member.header() else { return Ok(()) };
        self.length += (header.len() + padding(member.size())) as u64 + member.size();
        self.members.push(member);
        if self.length > MOST_BYTES { Err(Unpacked::TooLarge) } else { Ok(()) }
    }

    /// Answers with the archive and these fields.
    pub(crate) fn respond(
        self,
        fields: &ResponseFields,
        site: &Site,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        let length = self.length;
        let mut name = String::new();
        encode_value(&format!("{}.tar", self.top), &mut name);
        let plain = if name.contains('%') { "archive.tar" } else { &name };
        let disposition = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{name}");
        let disposition = FieldValue::new(disposition.as_bytes()).expect("encoded bytes are a field value");
        let mut head = response.head(200);
        head.content_type(TAR);
        head.content_length(length);
        fields.own(&mut head, FieldName::constant("Content-Disposition"), disposition);
        fields.own(&mut head, FieldName::CACHE_CONTROL, REVALIDATE);
        fields.own(&mut head, FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        fields.write(&mut head);
        head.end();
        if request.method == Method::Head {
            return ResponseSummary::of(200, 0);
        }
        let Archive { members, opened, place, .. } = self;
        let roots = Arc::clone(&site.files.roots);
        let (members, pending) = (members.into_iter(), 0);
        let body =
            ArchiveBody { roots, members, content: None, pending, opened, left: length, _place: place };
        response.push_source(Box::new(body));
        ResponseSummary::of(200, length)
    }
}

/// The rest of an archive that is being sent.
struct ArchiveBody {
    roots: Arc<Roots>,
    members: std::vec::IntoIter<Member>,
    /// The file whose header was made.
    content: Option<(String, FileStat)>,
    /// Zeros after the last content.
    pending: usize,
    /// A file of the archive.
    opened: Option<Arc<OpenFile>>,
    left: u64,
    _place: ArchivePlace,
}

impl ArchiveBody {
    /// Returns the zeros after the last file, and the headers up to the next file with content, or the end.
    fn headers(&mut self) -> Vec<u8> {
        /// Enough for one call.
        const MOST: usize = 32 << 10;
        let mut bytes = vec![0; std::mem::take(&mut self.pending)];
        while self.content.is_none() && bytes.len() < MOST {
            let Some(member) = self.members.next() else {
                bytes.resize(bytes.len() + 2 * BLOCK, 0);
                break;
            };
            bytes.extend(member.header().expect("it was made before, for its length"));
            self.content = member.file.filter(|(_, facts)| facts.size > 0);
        }
        bytes
    }

    /// Opens the file. It must be the same file, and not shorter.
    fn open(&self, path: &str, facts: &FileStat) -> Option<Arc<OpenFile>> {
        let (file, now) = self.roots.of(path).open_file(path).ok()?;
        let is_same = now.identity() == facts.identity() && now.size >= facts.size;
        is_same.then(|| Arc::new(OpenFile::new(file, now.size)))
    }
}

impl PartSource for ArchiveBody {
    fn left(&self) -> u64 {
        self.left
    }

    fn next(&mut self) -> Part {
        let Some((path, facts)) = self.content.take() else {
            let bytes = self.headers();
            let length = bytes.len();
            self.left -= length as u64;
            return Part::Shared(bytes.into(), 0..length);
        };
        let size = facts.size;
        if let Some(file) = self.open(&path, &facts) {
            self.opened = Some(Arc::clone(&file));
            self.left -= size;
            self.pending = padding(size);
            return Part::File(file, 0..size);
        }
        // The head has promised these bytes. A file that lacks its end ends the connection.
        let file = Arc::clone(self.opened.as_ref().expect("there is one, because this file has content"));
        Part::File(file, BEYOND..BEYOND + std::mem::take(&mut self.left))
    }
}

/// The number of archives of this process.
#[cfg(not(test))]
fn archives() -> &'static AtomicUsize {
    static ARCHIVES: AtomicUsize = AtomicUsize::new(0);
    &ARCHIVES
}

/// The same, separate for each test.
#[cfg(test)]
fn archives() -> &'static AtomicUsize {
    thread_local! {
        static ARCHIVES: &'static AtomicUsize = Box::leak(Box::default());
    }
    ARCHIVES.with(|archives| *archives)
}

/// One of the places for archives, until it is dropped.
struct ArchivePlace(&'static AtomicUsize);

impl ArchivePlace {
    fn take() -> Option<ArchivePlace> {
        let archives = archives();
        let taken = archives.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < MOST_ARCHIVES).then_some(count + 1)
        });
        taken.ok().map(|_| ArchivePlace(archives))
    }
}

impl Drop for ArchivePlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
