//! The protection of files at the limit of open files. The limit applies to the process, so this test has a
//! process of its own.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenfold_http::h1::parse_request;
use tenfold_http::{Instant, Out, ResponseWriter, clock};
use tenfold_site::{Answered, HostName, Hosts, MemberFolders, Need, Settings, Site};
use tenfold_sys::file::Root;

/// The status of the response; None if the session must be looked up.
fn ask(hosts: &Hosts) -> Option<u16> {
    let mut request = b"GET /secret.html HTTP/1.1\r\nHost: outer\r\n\r\n".to_vec();
    let mut out = Out::new();
    let mut response = ResponseWriter::http1(&mut out);
    parse_request(&mut request, |request| {
        match hosts.respond(&request.expect("it is well-formed"), &mut response) {
            Answered::Staged(outcome) => Some(outcome.status()),
            Answered::Work(work) => (work.need() != Need::Membership).then_some(0),
        }
    })
}

/// A deploy moves the root of another host to a directory in which the folder of the file is protected.
/// Finding that directory needs more descriptors than finding the file.
#[test]
fn h83_a_file_stays_protected_whatever_cannot_be_opened() {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs();
    clock::set(Instant(0), unix + 60);
    let base = std::env::temp_dir().join(format!("tenfold-protection-{}", std::process::id()));
    let at = |name: &str| base.join(name);
    fs::create_dir_all(at("outer")).expect("a temporary directory can be made");
    fs::create_dir_all(at("first")).expect("the directory is ours");
    fs::write(at("outer/secret.html"), "secret").expect("the directory is ours");
    symlink("first", at("inner")).expect("the directory is ours");
    let site = |name: &str| Site::new(Root::open(&at(name)).expect("it was made"), Settings::default());
    let hosts = || {
        let inner = (vec![HostName::new("inner").expect("a name")], site("inner"));
        let folders = MemberFolders::new(vec!["outer".into()], |_| false);
        Hosts::new(site("outer"), [inner]).for_members(folders)
    };
    let all: Vec<Hosts> = (0..12).map(|_| hosts()).collect();
    fs::remove_file(at("inner")).and_then(|()| symlink(".", at("inner"))).expect("it is ours");

    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), ..before }).expect("a limit can be lowered");
    let mut answers = Vec::new();
    for (free, hosts) in all.iter().enumerate() {
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len() - free);
        answers.push(ask(hosts));
    }
    setrlimit(Resource::Nofile, before).expect("a limit can be raised to what it was");
    fs::remove_dir_all(&base).expect("the directory is ours");
    assert!(
        answers.iter().all(|answer| matches!(answer, None | Some(503))),
        "by free descriptors: {answers:?}"
    );
    assert_eq!((answers[0], answers[11]), (Some(503), None));
}
