//! A temporary folder for a test, requests to it, and their responses.

mod archives;
mod cache;
mod codings;
mod files;
mod hosts;
mod listings;
mod paths;
mod rules;
mod selection;
mod tags;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenfold_http::h1::parse_request;
use tenfold_http::{Instant, Out, ResponseWriter, clock};
use tenfold_sys::file::Root;

use crate::files::open::VISITS;
use crate::rules::settings::MEMORY_UP_TO;
use crate::{Answered, ResponseSummary, Settings, Site};

/// A temporary folder with a site's root, and a file outside the root. Dropping it removes the folder.
struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates an empty folder. This thread's clock is well past the times of files written now.
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tenfold-site-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("root")).expect("a temporary directory can be made");
        fs::write(path.join("secret"), b"secret").expect("the directory is ours");
        clock::set(Instant(1000), unix_now() + 60);
        Folder { path }
    }

    /// Creates a folder with these files.
    fn of(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new();
        files.iter().for_each(|(name, content)| folder.write(name, content));
        folder
    }

    fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file, and the directories above it.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("it is beneath the root")).expect("the directory is ours");
        fs::write(path, content).expect("the directory is ours");
    }

    /// Replaces a file atomically. The new file is a second younger: two changes may fall into one tick of
    /// the kernel's clock, while the clock of these tests is far ahead.
    fn replace(&self, name: &str, content: &str) {
        self.write("new.part", content);
        if let Ok(modified) = fs::metadata(self.at(name)).and_then(|old| old.modified()) {
            let new = fs::File::options().append(true).open(self.at("new.part")).expect("it was written");
            new.set_modified(modified + Duration::from_secs(1)).expect("the file is ours");
        }
        fs::rename(self.at("new.part"), self.at(name)).expect("the directory is ours");
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.at(name)).expect("the directory is ours");
    }

    fn site(&self, settings: Settings) -> Site {
        Site::new(Root::open(&self.root()).expect("the directory was made"), settings)
    }

    /// Serves every file from memory.
    fn in_memory(&self) -> Site {
        self.site(Settings { memory_up_to: u64::MAX, ..Settings::default() })
    }

    /// Serves every file from an open file.
    fn by_handle(&self) -> Site {
        self.site(Settings { memory_up_to: 0, ..Settings::default() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs()
}

/// Advances this thread's clock.
fn pass(time: Duration) {
    clock::set(clock::now() + time, clock::unix_seconds() + time.as_secs());
}

/// Requests `target` a second later, when the cached file is compared with the file on disk.
fn get_later(site: &Site, target: &str) -> Response {
    pass(Duration::from_secs(1));
    get(site, target)
}

/// A response as a client receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Response {
    head: String,
    body: Vec<u8>,
}

impl Response {
    /// Reads the response in `out`, including files, and compares it with `outcome`.
    fn of(outcome: ResponseSummary, out: &mut Out) -> Response {
        let mut bytes = flatten(out);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head ends") + 4;
        let body = bytes.split_off(end);
        let response = Response { head: String::from_utf8(bytes).expect("heads are text"), body };
        assert_eq!(response.status(), outcome.status());
        assert_eq!(response.body.len() as u64, outcome.body);
        response
    }

    fn status(&self) -> u16 {
        self.head[9..12].parse().expect("a status line has a status")
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let value = values.next();
        assert_eq!(values.next(), None, "{name} occurs twice");
        value
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }
}

fn flatten(out: &mut Out) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !out.is_empty() {
        let step = match out.file() {
            Some((file, range, _)) => {
                let length = range.end - range.start;
                let mut part = vec![0; length as usize];
                file.file.read_exact_at(&mut part, range.start).expect("the file is as long as promised");
                bytes.extend(part);
                length
            }
            None => {
                let mut slices = [std::io::IoSlice::new(&[]); 8];
                let (filled, _) = out.memory(&mut slices);
                let before = bytes.len();
                slices[..filled].iter().for_each(|slice| bytes.extend_from_slice(slice));
                (bytes.len() - before) as u64
            }
        };
        out.advance(step);
    }
    bytes
}

fn writer(out: &mut Out) -> ResponseWriter<'_> {
    ResponseWriter::http1(out)
}

/// Sends a request, and leaves the response in `out`.
fn stage(site: &Site, request: &str, out: &mut Out) -> ResponseSummary {
    parse_request(&mut request.as_bytes().to_vec(), |request| {
        let request = request.expect("the request is well-formed");
        let mut answered = site.respond(&request, &mut writer(out));
        loop {
            match answered {
                Answered::Staged(outcome) => return outcome,
                Answered::Work(work) => {
                    WORKED.set(WORKED.get() + 1);
                    answered = work.split().0().answer(site, &request, &mut writer(out));
                }
            }
        }
    })
}

thread_local! {
        /// The number of offloaded jobs, which run on this thread in tests.
    static WORKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn send(site: &Site, request: &str) -> Response {
    let mut out = Out::new();
    let outcome = stage(site, request, &mut out);
    Response::of(outcome, &mut out)
}

/// Sends a request with this method, target and header lines.
fn ask(site: &Site, method: &str, target: &str, fields: &[&str]) -> Response {
    let fields: String = fields.iter().map(|line| format!("{line}\r\n")).collect();
    send(site, &format!("{method} {target} HTTP/1.1\r\nHost: evil.example\r\n{fields}\r\n"))
}

fn get(site: &Site, target: &str) -> Response {
    ask(site, "GET", target, &[])
}

/// Counts the accesses of this thread to the file system during `run`.
fn visits(run: impl FnOnce()) -> usize {
    let before = VISITS.get();
    run();
    VISITS.get() - before
}
