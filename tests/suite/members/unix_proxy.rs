//! Visitors behind a proxy that connects to a Unix socket of the server.

use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::visitor::Visitor;

use super::{GOOD, launch, site, stop};

pub(super) fn h63_h66_visitors_behind_a_unix_socket_are_told_apart() {
    let folder = site();
    let socket = folder.at("socket");
    let launch = |name: &str| {
        let url = fresh(DatabaseProduct::Sqlite, &folder);
        let launch = launch(&Config::of(Engine::Epoll), &folder, &url);
        launch.flag("--listen", format!("unix:{}", socket.display())).flag("--trusted-proxy", name)
    };
    let server = launch("unix").start();
    let from = |address: &str| {
        let visitor = Visitor::new(&server).through(&socket);
        visitor.saying("X-Forwarded-For", address).saying("X-Forwarded-Proto", "https")
    };
    let mut member = from("192.0.2.1");
    assert_eq!((member.register("ann", GOOD).status, member.log_in("ann", GOOD).status), (303, 303));
    assert!(member.cookies.keys().all(|name| name.starts_with("__Host-")), "{:?}", member.cookies);
    assert_eq!(member.get("/members/").status, 200);
    // An address has a burst of 20 attempts.
    let guess = |address: &str, name: usize| from(address).log_in(&format!("n{name}"), "violet guess").status;
    let guesses: Vec<_> = (0..24).map(|name| guess("192.0.2.2", name)).collect();
    assert!(guesses.starts_with(&[422; 20]) && guesses.contains(&429), "{guesses:?}");
    assert_eq!(guess("192.0.2.3", 99), 422, "another visitor");
    // Over TCP, no client is trusted.
    let mut forger = Visitor::new(&server).saying("X-Forwarded-Proto", "https");
    forger.log_in("ann", GOOD);
    assert!(forger.cookies.contains_key("session"), "{:?}", forger.cookies);
    stop(server);

    let untrusting = launch("127.0.0.1").start();
    let mut visitor = Visitor::new(&untrusting).through(&socket).saying("X-Forwarded-Proto", "https");
    assert_eq!((visitor.register("ann", GOOD).status, visitor.log_in("ann", GOOD).status), (303, 303));
    assert!(visitor.cookies.contains_key("session"), "{:?}", visitor.cookies);
    stop(untrusting);
}
