//! Behaviour at the limit of open files. The limit applies to the process, so this test has a process of its
//! own.

use std::fs::{self, File};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenfold_http::h1::parse_request;
use tenfold_http::{Instant, Out, ResponseWriter, clock};
use tenfold_site::{Answered, ResponseSummary, Routes, Settings, Site};
use tenfold_sys::file::Root;

fn get(site: &Site, target: &str) -> (ResponseSummary, String) {
    let mut out = Out::new();
    let mut request = format!("GET {target} HTTP/1.0\r\n\r\n").into_bytes();
    let answered = parse_request(&mut request, |request| {
        site.respond(&request.expect("the request is good"), &mut ResponseWriter::http1(&mut out))
    });
    let Answered::Staged(outcome) = answered else { panic!("it needs work") };
    let mut slices = [std::io::IoSlice::new(&[])];
    assert_eq!(out.memory(&mut slices).0, 1);
    let head = String::from_utf8_lossy(&slices[0]).into_owned();
    (outcome, head)
}

#[test]
fn running_out_of_descriptors_is_reported_and_passes() {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs();
    clock::set(Instant(0), unix + 60);
    let folder = std::env::temp_dir().join(format!("tenfold-descriptors-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary directory can be made");
    for name in ["kept", "first", "second"] {
        fs::write(folder.join(name), name).expect("the directory is ours");
    }
    let root = || Root::open(&folder).expect("the directory was just made");
    let mut routes = Routes::default();
    routes.error_pages.set("404", None).expect("a status");
    let site = Site::new(root(), Settings { memory_up_to: 0, routes, ..Settings::default() });
    let in_memory = Site::new(root(), Settings::default());
    assert_eq!(get(&site, "/kept").0.status(), 200);
    assert_eq!(get(&in_memory, "/kept").0.status(), 200);

    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).expect("a limit can be lowered");
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    // The cache closes its descriptors so that requested files can be opened.
    assert_eq!(get(&site, "/first").0.status(), 200);
    taken.extend(File::open("/dev/null"));
    // A file in a response cannot be closed.
    let mut held = Out::new();
    parse_request(&mut b"GET /first HTTP/1.0\r\n\r\n".to_vec(), |request| {
        site.respond(&request.expect("the request is good"), &mut ResponseWriter::http1(&mut held))
    });
    let (outcome, head) = get(&site, "/second");
    assert_eq!((outcome.status(), outcome.failure()), (503, Some(rustix::io::Errno::MFILE.raw_os_error())));
    assert!(head.contains("\r\nRetry-After: 1\r\n"), "{head}");
    // A file in memory is served although it cannot be checked.
    clock::set(Instant(10_000), unix + 70);
    assert_eq!(get(&in_memory, "/kept").0.status(), 200);

    drop(taken);
    assert_eq!(get(&site, "/second").0.status(), 200);
    held.clear(0);
    setrlimit(Resource::Nofile, before).expect("a limit can be raised to what it was");
    fs::remove_dir_all(&folder).expect("the directory is ours");
}
