//! Databases over TLS. Their certificate is that of this run, for `localhost` alone.

use std::fs;

use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{Database, DatabaseProduct};
use tenfold_tests::launch::Launch;
use tenfold_tests::seal::certificate_folder;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};

use super::{launch, new_member, site, stop};

/// Writes the certificate to a file that the user of the accounts can read. Returns its path.
fn trusted(folder: &TempFolder) -> String {
    let certificate = fs::read(certificate_folder().join("cert.pem")).expect("it was made");
    folder.write("roots.pem", certificate).display().to_string()
}

/// A server whose members log in and see their pages.
#[track_caller]
fn serves(launch: Launch, name: &str, check: impl FnOnce()) {
    let server = launch.start();
    let mut member = new_member(&server, name);
    assert_eq!(member.get("/members/").status, 200);
    check();
    stop(server);
}

#[track_caller]
fn refused(launch: Launch, reason: &str) {
    let output = launch.refused();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(reason) && !said.contains("secret"), "{said}");
}

/// The server refuses a database without TLS with this reason, an unknown certificate, and a certificate of another name.
#[track_caller]
fn is_checked(
    database: &Database,
    with: impl Fn(&str, &str) -> Launch,
    by_address: &str,
    [required, verified, roots]: [&str; 3],
    reason: &str,
) {
    refused(with(by_address, required), reason);
    database.accept_tls();
    refused(with(&by_name(by_address), verified), "certificate");
    refused(with(by_address, &format!("{verified}&{roots}")), "not valid for name");
}

/// The URL with the name of the certificate.
fn by_name(url: &str) -> String {
    url.replace("127.0.0.1", "localhost")
}

pub(super) fn accounts_over_tls() {
    let folder = site();
    let database = Database::start(DatabaseProduct::Postgres);
    let (by_address, roots) = (database.create(), format!("sslrootcert={}", trusted(&folder)));
    let config = Config::of(Engine::Epoll);
    let with = &|url: &str, query: &str| launch(&config, &folder, &format!("{url}?{query}"));
    let modes = ["sslmode=require", "sslmode=verify-full", &roots];
    is_checked(&database, with, &by_address, modes, "server does not support TLS");
    let count = |encrypted: bool| {
        let connections = "pg_stat_ssl JOIN pg_stat_activity USING (pid)";
        let ours = format!("application_name = 'tenfold' AND ssl = {encrypted}");
        let rows = database.query(&format!("SELECT count(*) FROM {connections} WHERE {ours}"));
        rows.and_then(|count| count.trim().parse::<u32>().map_err(|_| count)).expect("a number")
    };
    // The database closes the connections of the server before after it has ended.
    let are_only = |encrypted: bool| {
        becomes_true(SOON, &format!("all connections have TLS {encrypted}"), || {
            count(encrypted) > 0 && count(!encrypted) == 0
        });
    };
    serves(with(&by_address, "sslmode=require"), "ann", || are_only(true));
    serves(with(&by_name(&by_address), &format!("sslmode=verify-full&{roots}")), "ben", || are_only(true));
    serves(with(&by_address, "sslmode=disable"), "cay", || are_only(false));
}

pub(super) fn accounts_in_mariadb_over_tls() {
    let folder = site();
    let database = Database::start(DatabaseProduct::Mariadb);
    let (plain, roots) = (database.create(), format!("ssl-ca={}", trusted(&folder)));
    let query = |sql: &str| database.query(sql).unwrap_or_else(|why| panic!("{why}"));
    // The database accepts this user over TLS only.
    query("CREATE USER 'sealed'@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL");
    query("GRANT ALL ON *.* TO 'sealed'@'127.0.0.1'");
    let by_address = plain.replace("tenfold:", "sealed:");
    let config = Config::of(Engine::Epoll);
    let with = &|url: &str, query: &str| launch(&config, &folder, &format!("{url}?{query}"));
    let modes = ["ssl-mode=REQUIRED", "ssl-mode=VERIFY_IDENTITY", &roots];
    is_checked(&database, with, &by_address, modes, "server does not have this capability");
    refused(with(&by_address, "ssl-mode=DISABLED"), "Access denied");
    serves(with(&by_address, "ssl-mode=REQUIRED"), "ann", || ());
    serves(with(&by_name(&by_address), &format!("ssl-mode=VERIFY_IDENTITY&{roots}")), "ben", || ());
    let handshakes = || query("SHOW GLOBAL STATUS LIKE 'Ssl_accepts'");
    let before = handshakes();
    serves(with(&plain, "ssl-mode=PREFERRED"), "cay", || assert_eq!(handshakes(), before));
}
