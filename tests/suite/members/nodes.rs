//! Several nodes with the same members.

use std::fs;

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::binary::workspace;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::proxy::Proxy;
use tenfold_tests::seal::{certificate_folder, secret_parts};
use tenfold_tests::server::Server;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::visitor::Visitor;

use super::outage::accounts_process;
use super::{GOOD, launch, new_member, site, stop};
use crate::signing::signing_process;

/// The fenced block of this language on the page about nodes, with paths of this machine replacing its paths.
fn of_the_book(language: &str, places: &[(&str, &str)]) -> String {
    let path = workspace().join("docs/how-to/nodes.md");
    let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
    let fence = format!("```{language}\n");
    let rest = page.split(&fence).nth(1).unwrap_or_else(|| panic!("the page has no {fence}"));
    let text = rest.split("```").next().unwrap_or_default().to_owned();
    places.iter().fold(text, |text, (theirs, ours)| {
        assert!(text.contains(theirs), "the page does not say {theirs}:\n{text}");
        text.replace(theirs, ours)
    })
}

pub(super) fn the_book_on_nodes() {
    let folder = site();
    let url = fresh(DatabaseProduct::Postgres, &folder);
    let places =
        [("postgres://tenfold:PASSWORD@db.internal/members", url.as_str()), ("10.0.0.0/8", "127.0.0.0/8")];
    let file = folder.write("tenfold.toml", of_the_book("toml", &places));
    let config = Config::of(Engine::Epoll);
    let node = || Launch::bare(&config).flag("--config", file.display()).start();
    let (one, other) = (node(), node());

    let address = ReservedAddress::new();
    let [listen, first, second] = [*address, one.address, other.address].map(|address| address.to_string());
    let listen = format!("listen {listen};");
    let places = [
        ("listen 80;", listen.as_str()),
        ("node1.internal:8080", first.as_str()),
        ("node2.internal:8080", second.as_str()),
    ];
    let proxy = Proxy::start(*address, &of_the_book("nginx", &places));

    let browser = || {
        let own = format!("http://{address}");
        Visitor::new(&one).at(*address).saying("Origin", &own)
    };
    let mut member = browser();
    assert_eq!((member.register("ann", GOOD).status, member.log_in("ann", GOOD).status), (303, 303));
    let seen = |log: String| {
        log.lines().any(|line| line.contains("GET /members/film.bin ") && line.contains(" 200 "))
    };
    becomes_true(SOON, "a login on one is one on the other", || {
        assert_eq!(member.get("/members/film.bin").status, 200, "whichever is asked");
        seen(one.log()) && seen(other.log())
    });
    let mut elsewhere = browser();
    assert_eq!(elsewhere.log_in("ann", GOOD).status, 303);
    stop(other);
    for _ in 0..4 {
        assert_eq!(member.get("/members/").status, 200, "the node that is left knows the session");
    }
    assert_eq!(member.submit("/account/logout", "/account/logout", &[]).status, 303);
    assert_eq!(member.get("/members/").status, 303);
    assert_eq!(elsewhere.get("/members/").status, 200, "another session of hers goes on");
    drop(proxy);
    stop(one);
}

/// The number of processes, except the accounts process, with `secret` in memory.
fn that_know(server: &Server, secret: &str) -> usize {
    let accounts = accounts_process(server);
    let others = server.process.with_descendants().into_iter().filter(|process| *process != accounts);
    others.filter(|process| process.remembers(secret.as_bytes())).count()
}

pub(super) fn h78_a_url_in_a_file_is_unknown_to_workers() {
    let folder = site();
    let url = fresh(DatabaseProduct::Postgres, &folder);
    let config = Config::of(Engine::Epoll);
    let direct = launch(&config, &folder, &url).start();
    assert!(that_know(&direct, &url) > 0, "the search finds what is there");
    stop(direct);

    let file = folder.write("accounts.url", format!("{url}\n"));
    let server = launch(&config, &folder, &format!("file:{}", file.display())).start();
    let mut member = new_member(&server, "ann");
    assert_eq!(member.get("/members/").status, 200);
    assert_eq!(that_know(&server, &url), 0);
    stop(server);
}

pub(super) fn h78_the_accounts_process_does_not_have_the_key_of_the_certificate() {
    let folder = site();
    let config = Config::of(Engine::Epoll).over_tls();
    let server = launch(&config, &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    let parts = secret_parts(&certificate_folder().join("key.pem"));
    assert!(signing_process(&server).remembers(&parts[0]), "the search finds what is there");
    let knows = |process: Process| parts.iter().any(|part| process.remembers(part));
    let first = accounts_process(&server);
    assert!(!knows(first), "the first process");
    first.signal(Signal::KILL);
    becomes_true(SOON, "the first process ends", || !first.is_running());
    let mut visitor = Visitor::new(&server);
    becomes_true(SOON, "another process answers", || visitor.register("ann", GOOD).status == 303);
    assert!(!knows(accounts_process(&server)), "the process that took its place");
    stop(server);
}

pub(super) fn two_nodes_share_a_login() {
    let folder = site();
    let url = fresh(DatabaseProduct::Mariadb, &folder);
    let config = Config::of(Engine::Epoll);
    let node = || launch(&config, &folder, &url).start();
    let (one, other) = (node(), node());
    let mut member = new_member(&one, "ann");
    let mut there = Visitor::new(&other);
    there.cookies = member.cookies.clone();
    assert_eq!(there.get("/members/").status, 200, "a login on one is one on the other");
    assert_eq!(there.submit("/account/logout", "/account/logout", &[]).status, 303);
    assert_eq!(member.get("/members/").status, 303, "it ends on both");
    stop(one);
    stop(other);
}
