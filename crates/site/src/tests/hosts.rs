//! Several hosts: their costs for each other, and their shared caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::files::protection::LOOKS;
use crate::{HostName, Hosts, Pattern, Policies, Policy, PolicyRule, Realm, StoredHash};

fn ask_host(hosts: &Hosts, host: &str, path: &str) -> Response {
    let mut out = Out::new();
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    let answered = parse_request(&mut request, |request| {
        hosts.respond(&request.expect("it is good"), &mut writer(&mut out))
    });
    let Answered::Staged(outcome) = answered else { panic!("it needs work") };
    Response::of(outcome, &mut out)
}

fn name(host: &str) -> Vec<HostName> {
    vec![HostName::new(host).expect(host)]
}

fn at(folder: &Folder, root: &str, settings: Settings) -> Site {
    Site::new(Root::open(&folder.at(root)).expect("it was made"), settings)
}

/// Counts lookups of protected names during `run`.
fn looks(run: impl FnOnce()) -> usize {
    let before = LOOKS.get();
    run();
    LOOKS.get() - before
}

#[test]
fn h83_protected_folders_are_looked_up_once_a_second_for_sites_above_a_file() {
    const HOSTS: usize = 10;
    let folder = Folder::new();
    let hash =
        StoredHash::new("$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC").expect("a hash");
    let realm = Realm::new("Members", BTreeMap::from([("alice".to_owned(), hash)])).expect("legal");
    let realm = Arc::new(realm);
    let rule = |paths: &str| PolicyRule {
        paths: Pattern::new(paths).expect(paths),
        policy: Policy { auth: Some(Some(Arc::clone(&realm))), ..Policy::default() },
    };
    let rules: Vec<_> = ["/a/**", "/b/**", "/c/**", "/d/**"].map(rule).into();
    let protected = Settings { policies: Policies::new(Policy::default(), rules), ..Settings::default() };
    for file in 0..20 {
        folder.write(&format!("open/{file}"), "open");
    }
    for host in 0..HOSTS {
        folder.write(&format!("h{host}/a/secret"), "secret");
        folder.write(&format!("h{host}/page"), "page");
    }
    let others = (0..HOSTS)
        .map(|host| (name(&format!("h{host}")), at(&folder, &format!("h{host}"), protected.clone())));
    let whole = [(name("whole"), folder.in_memory())];
    let hosts = Hosts::new(at(&folder, "open", Settings::default()), others.chain(whole));
    let first = looks(|| assert_eq!(ask_host(&hosts, "open", "/0").text(), "open"));
    assert_eq!(first, 4 * HOSTS, "each folder is looked up once");
    let cold = looks(|| {
        (1..20).for_each(|file| assert_eq!(ask_host(&hosts, "open", &format!("/{file}")).text(), "open"));
    });
    assert_eq!(cold, 0, "no other root is above these files");
    pass(Duration::from_secs(1));
    let later = looks(|| {
        assert_eq!(ask_host(&hosts, "h3", "/page").text(), "page");
        assert_eq!(ask_host(&hosts, "h3", "/a/secret").status(), 401);
        assert_eq!(ask_host(&hosts, "whole", "/h3/page").text(), "page");
        assert_eq!(ask_host(&hosts, "whole", "/h3/a/secret").status(), 401);
    });
    assert_eq!(later, 4, "only the folders of one host are looked up");
    // A replaced folder is protected from the next second on.
    fs::rename(folder.at("h3/a"), folder.at("h3/old")).expect("the directory is ours");
    folder.write("h3/a/secret", "another");
    pass(Duration::from_secs(1));
    assert_eq!(ask_host(&hosts, "whole", "/h3/a/secret").status(), 401);
    assert_eq!(ask_host(&hosts, "whole", "/h3/old/secret").text(), "secret");
}

#[test]
fn hosts_share_a_cache_and_the_largest_gives_way() {
    let folder = Folder::new();
    for file in ["a/1", "a/2", "a/3", "a/4", "b/1", "b/2"] {
        folder.write(file, "content");
    }
    for memory_up_to in [u64::MAX, 0] {
        let settings = Settings { cache_entries: 4, open_files: 4, memory_up_to, ..Settings::default() };
        let second = (name("b"), at(&folder, "b", settings.clone()));
        let hosts = Hosts::new(at(&folder, "a", settings), [second]);
        let get = |host: &str, files: &[&str]| {
            visits(|| {
                files.iter().for_each(|file| assert_eq!(ask_host(&hosts, host, file).text(), "content"))
            })
        };
        let all = ["/1", "/2", "/3", "/4"];
        assert!(get("a", &all) > 0);
        assert_eq!(get("a", &all), 0, "a single host may use the whole cache");
        assert!(get("b", &["/1", "/2"]) > 0);
        assert_eq!(get("b", &["/1", "/2"]), 0, "the larger host gives way");
        let rest = all.iter().filter(|file| get("a", &[file]) == 0).count();
        assert!(rest <= 2, "{rest} files of the first host stay");
        assert_eq!(get("b", &["/1", "/2"]), 0, "hosts of equal size keep their share");
    }
}
