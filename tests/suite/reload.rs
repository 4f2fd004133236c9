//! HUP: changeable settings change, others are rejected by name, and an invalid file changes nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tenfold_engine::{Engine, Sender, Topology};
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::server::{Server, ask_status};
use tenfold_tests::site::TempFolder;
use tenfold_tests::strace::{CallFailure, Tracer};
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true};
use tenfold_tests::tools;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "reload",
    cases: cases![
        Own on WORKERS + ANOTHER: site_and_limits_change;
        Own on DRIVERS + ANOTHER: h72_an_invalid_file_changes_nothing,
            settings_that_need_a_restart_are_rejected_by_name;
        Own on TOPOLOGIES: a_reload_interrupts_no_request;
        Own on DRIVERS: another_folder_takes_the_name_of_a_root, slow_downloads_delay_no_reload;
        Own on DRIVERS + ONE_TLS + ANOTHER: an_idle_connection_outlives_a_reload;
        Own on DRIVERS + ANOTHER_CONCURRENT: requests_beside_reloads_lose_nothing,
            streams_during_reloads_lose_nothing;
        Own on EPOLL + URING, Measure: a_sender_changes_if_the_sockets_permit_it;
        Own on EPOLL: workers_accept_when_all_can_serve, the_command_reports_the_result_of_a_reload;
        Own on URING, Measure: clients_that_do_not_read_leave_memory_for_new_workers;
        OwnAsRoot on EPOLL: the_last_reload_wins_even_after_a_failed_one, a_server_in_a_container_reloads;
    ],
};

/// A folder with two sites and a configuration.
fn folder() -> TempFolder {
    let folder = TempFolder::new("reload");
    folder.write("site/index.html", "the first\n");
    folder.write("site/other.html", "the other\n");
    folder.write("site/large.bin", tenfold_tests::site::bytes(8 << 20, 8));
    folder.write("new/index.html", "another folder\n");
    folder
}

fn start(config: &Config, folder: &TempFolder, text: &str) -> Server {
    let file = folder.write("tenfold.toml", text);
    Launch::bare(config).flag("--config", file.display()).start()
}

fn reload(server: &Server, folder: &TempFolder, text: &str) {
    fs::write(folder.at("tenfold.toml"), text).expect("our own file");
    server.process.signal(Signal::HUP);
}

/// Waits until the server serves the second site.
#[track_caller]
fn serves_new_folder(server: &Server) {
    becomes_true(SOON, "the new folder is served", || server.get("/").body == b"another folder\n");
}

/// Waits until further output contains `word`.
#[track_caller]
fn is_said(server: &Server, before: usize, word: &str) {
    becomes_true(SOON, &format!("standard error tells of {word:?}"), || {
        server.errors()[before..].contains(word)
    });
}

/// Only the last file is applied, and the server serves all the time.
fn the_command_reports_the_result_of_a_reload(config: &Config) {
    let folder = folder();
    let file = folder.write("tenfold.toml", "root = \"site\"\n");
    let launch = Launch::bare(config).flag("--config", file.display()).flag("--admin", ANY_PORT);
    let server = launch.word("-v").start();
    let control = server.at("control").display().to_string();
    let reload = |text: &str, code: i32, words: &[&str]| {
        fs::write(folder.at("tenfold.toml"), text).expect("our own folder");
        let output = tenfold(&["reload", "--control", &control]);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}\n{}", server.errors());
        for word in words {
            assert!(said.contains(word), "{word:?} is missing in:\n{said}");
        }
        said
    };
    let stays = "tenfold: error: the configuration was not applied; the old configuration stays in use";
    let shown = "tenfold: error: invalid value of engine\n";
    let said =
        reload("root = \"site\"\nengine = \"kqueue\"\nworkers = 0\n", 1, &[shown, ":2:10", ":3:11", stays]);
    assert!(server.errors().contains(shown) && server.errors().contains(stays), "{}", server.errors());
    assert_eq!(said.matches("stays in use").count(), 1, "{said}");
    // The admin listener may be reached from elsewhere, and a configuration can contain passwords.
    let seen = tenfold(&["status", "--json", &server.admin().to_string()]);
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(seen.contains("\"failed\":1") && seen.contains("\"last_failure\":[]"), "{seen}");
    let fixed = "tenfold: error: backlog cannot change without a restart; the old configuration stays in use";
    reload("root = \"site\"\nbacklog = 7\n", 1, &[fixed]);
    let missing = "cannot read the configuration";
    fs::remove_file(folder.at("tenfold.toml")).expect("our own file");
    let output = tenfold(&["reload", "--control", &control]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains(missing), "{said}");
    assert_eq!(server.get("/").body, b"the first\n");
    let number = format!("process {}: serving with the new configuration (generation 2)\n", server.process.0);
    reload("root = \"new\"\n", 0, &[&number]);
    assert_eq!(server.get("/").body, b"another folder\n");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn another_folder_takes_the_name_of_a_root(config: &Config) {
    let folder = TempFolder::new("named-roots");
    for name in ["r1", "r2", "public"] {
        folder.write(&format!("{name}/index.html"), format!("{name}\n"));
    }
    let lead = |to: &str| {
        symlink(to, folder.at("next")).expect("our own folder");
        fs::rename(folder.at("next"), folder.at("current")).expect("our own folder");
    };
    lead("r1");
    let text = "root = \"current\"\n[[host]]\nname = \"a.example\"\nroot = \"public\"\n";
    let server = start(config, &folder, text);
    let shows = |host: &str, expected: &str| {
        becomes_true(SOON, &format!("{host} has {expected:?}"), || {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            server.exchange(request.as_bytes()).ends_with(expected.as_bytes())
        });
    };
    shows("other.example", "r1\n");
    shows("a.example", "public\n");
    lead("r2");
    shows("other.example", "r2\n");
    fs::remove_dir_all(folder.at("public")).expect("our own folder");
    folder.write("public/index.html", "made again\n");
    shows("a.example", "made again\n");
    fs::rename(folder.at("public"), folder.at("elsewhere")).expect("our own folder");
    server.expect_report("public is missing; the last folder of this name stays in use");
    shows("a.example", "made again\n");
    fs::rename(folder.at("elsewhere"), folder.at("public")).expect("our own folder");
    server.expect_report("public is there again");
    assert_eq!(server.errors().matches("another folder has the name of the root").count(), 2);
}

fn site_and_limits_change(config: &Config) {
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\nindex = \"index.html\"\n");
    assert_eq!(server.get("/").body, b"the first\n");
    reload(&server, &folder, "root = \"site\"\nindex = \"other.html\"\nmax-head = \"256\"\n");
    becomes_true(SOON, "the other page is served", || server.get("/").body == b"the other\n");
    let long = format!("/{}", "a".repeat(250));
    // Each worker switches separately.
    becomes_true(SOON, "the new bound holds", || (0..8).all(|_| server.get(&long).status == 431));
    reload(&server, &folder, "root = \"new\"\n");
    serves_new_folder(&server);
    becomes_true(SOON, "the default bound holds", || (0..8).all(|_| server.get(&long).status == 404));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h72_an_invalid_file_changes_nothing(config: &Config) {
    let folder = folder();
    let right = "root = \"site\"\n";
    let server = start(config, &folder, right);
    let wrong = [
        ("root = \"site\"\nindx = \"other.html\"\n", "indx"),
        ("root = \"site\"\nhead-timeout = \"soon\"\n", "head-timeout"),
        ("root = \"site\nindex", "tenfold.toml"),
        ("root = \"nowhere\"\n", "nowhere"),
    ];
    for (text, word) in wrong {
        let before = server.errors().len();
        reload(&server, &folder, text);
        is_said(&server, before, word);
        assert_eq!(server.get("/").body, b"the first\n", "{text:?}");
    }
    fs::remove_file(folder.at("tenfold.toml")).expect("our own file");
    let before = server.errors().len();
    server.process.signal(Signal::HUP);
    is_said(&server, before, "tenfold.toml");
    assert_eq!(server.get("/").body, b"the first\n", "without its file");
    reload(&server, &folder, "root = \"new\"\n");
    serves_new_folder(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn settings_that_need_a_restart_are_rejected_by_name(config: &Config) {
    let folder = folder();
    // Flags override the file; only settings of the file can change.
    let server = start(config, &folder, "root = \"site\"\nbacklog = 100\n");
    let before = server.errors().len();
    reload(&server, &folder, "root = \"new\"\nbacklog = 200\n");
    is_said(&server, before, "backlog");
    for _ in 0..4 {
        assert_eq!(server.get("/").body, b"the first\n", "all of the old configuration stays");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    listen_is_refused(config, &folder);
}

fn listen_is_refused(config: &Config, folder: &TempFolder) {
    let text = |address: &dyn std::fmt::Display| format!("root = \"site\"\nlisten = \"{address}\"\n");
    let second = ReservedAddress::new();
    let file = folder.write("tenfold.toml", text(&ANY_PORT));
    let server = Launch::bare(config).flag("--config", file.display()).start_configured();
    assert_eq!(server.get("/").body, b"the first\n");
    let before = server.errors().len();
    reload(&server, folder, &text(&second));
    is_said(&server, before, "listen");
    assert_eq!(server.get("/").body, b"the first\n");
    assert!(std::net::TcpStream::connect(*second).is_err(), "it listens where it must not");
}

/// A reload changes the sender. Zero-copy sends require an option of the listening sockets, which cannot be set later:
/// the server reports this in one line, and the old configuration stays.
fn a_sender_changes_if_the_sockets_permit_it(config: &Config) {
    let folder = folder();
    let file = folder.write("tenfold.toml", "root = \"site\"\nsend = \"copy\"\n");
    let launch = Launch::bare(config).without("--send").flag("--config", file.display());
    let server = launch.start();
    let serves =
        |page: &[u8], sender: &str| server.get("/").body == page && server.status()["send"] == sender;
    assert!(serves(b"the first\n", "copy"));
    for more in ["", "max-body = \"100\"\n"] {
        let before = server.errors().len();
        reload(&server, &folder, &format!("root = \"new\"\nsend = \"zerocopy\"\n{more}"));
        is_said(&server, before, "\n");
        let said = server.errors()[before..].to_owned();
        for words in ["send cannot become zerocopy without a restart", "the old configuration stays in use"] {
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!((0..4).all(|_| serves(b"the first\n", "copy")), "all of the old configuration stays");
    }
    for (sender, root, page) in [("mmap", "new", &b"another folder\n"[..]), ("auto", "site", b"the first\n")]
    {
        reload(&server, &folder, &format!("root = \"{root}\"\nsend = \"{sender}\"\n"));
        becomes_true(SOON, "what can change has", || serves(page, sender));
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    may_become_zerocopy_again(config, &folder);
}

/// Sockets opened for zero-copy sends suit every sender.
fn may_become_zerocopy_again(config: &Config, folder: &TempFolder) {
    let config = Config { sender: Sender::Zerocopy, ..*config };
    let text = |sender| format!("root = \"site\"\nsend = \"{sender}\"\n");
    let file = folder.write("tenfold.toml", text("zerocopy"));
    let server = Launch::bare(&config).without("--send").flag("--config", file.display()).start();
    let large = tenfold_tests::site::bytes(8 << 20, 8);
    for sender in ["zerocopy", "sendfile", "zerocopy"] {
        reload(&server, folder, &text(sender));
        becomes_true(SOON, "the sender is another one", || server.status()["send"] == sender);
        assert!(server.get("/large.bin").body == large, "{sender}");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Zero-copy sends hold locked memory of the user. The ring of a worker that starts is locked memory too.
fn clients_that_do_not_read_leave_memory_for_new_workers(config: &Config) {
    for topology in [config.topology, Topology::Threads] {
        leave_memory(&Config { sender: Sender::Zerocopy, topology, ..*config });
    }
}

fn leave_memory(config: &Config) {
    let folder = folder();
    let file = folder.write("tenfold.toml", "root = \"site\"\nsend = \"zerocopy\"\n");
    let server = Launch::bare(config).without("--send").flag("--config", file.display()).start();
    let mut waiting: Vec<_> = (0..60).map(|_| server.connect()).collect();
    waiting.iter_mut().for_each(|wire| wire.get("/large.bin"));
    becomes_true(SOON, "sends hold all memory that they may", || {
        server.status()["substituted"].as_u64() > Some(0)
    });
    // Former workers stay with their rings.
    for (root, page) in [("new", &b"another folder\n"[..]), ("site", b"the first\n")].repeat(3) {
        reload(&server, &folder, &format!("root = \"{root}\"\nsend = \"zerocopy\"\n"));
        becomes_true(SOON, "the other folder is served", || server.get("/").body == page);
    }
    drop(waiting);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Otherwise accepted connections would end with their worker if another worker cannot start.
fn workers_accept_when_all_can_serve(config: &Config) {
    const NO_EPOLL: CallFailure = CallFailure { calls: "epoll_create1", error: "EMFILE", when: "1+" };
    let folder = folder();
    // The thread that accepts needs no epoll instance.
    let server = start(&Config { topology: Topology::Handoff, ..*config }, &folder, "root = \"site\"\n");
    let (over, tracer) = (AtomicBool::new(false), Tracer::inject(&[server.process], &[NO_EPOLL]));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _over = EndOnDrop(&over);
            for _ in 0..10 {
                let before = server.errors().len();
                reload(&server, &folder, "root = \"new\"\n");
                is_said(&server, before, "the old one stays in use");
            }
        });
        while !over.load(Ordering::Relaxed) {
            assert_eq!(server.get("/").body, b"the first\n");
        }
    });
    assert!(tracer.failed(&NO_EPOLL) >= 10, "no worker wanted one");
    drop(tracer);
    reload(&server, &folder, "root = \"new\"\n");
    serves_new_folder(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A download continues; new connections use the new site.
fn a_reload_interrupts_no_request(config: &Config) {
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\n");
    let large = tenfold_tests::site::bytes(8 << 20, 8);
    let mut wire = server.connect();
    wire.get("/large.bin");
    assert_eq!(wire.head().status, 200);
    wire.expect_body(&large[..1000]);
    reload(&server, &folder, "root = \"new\"\n");
    becomes_true(SOON, "the reload succeeds", || server.status()["reloads"]["succeeded"] == 1);
    wire.expect_body(&large[1000..]);
    drop(wire);
    serves_new_folder(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A request may be on its way to the old worker, and a close would lose it. Its response announces the close.
fn an_idle_connection_outlives_a_reload(config: &Config) {
    if config.engine == Engine::Naive {
        // The old worker closes it for the next connection in the backlog.
        return;
    }
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\n");
    let mut idle = server.connect();
    assert_eq!(idle.fetch("/").body, b"the first\n");
    let former = server.workers();
    reload(&server, &folder, "root = \"new\"\n");
    serves_new_folder(&server);
    idle.expect_retirement("/", b"the first\n");
    becomes_true(SOON, "the former workers end", || !former.iter().any(|worker| worker.is_running()));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Clients send pipelined requests, and pause between them. They connect again after `Connection: close`.
fn requests_beside_reloads_lose_nothing(config: &Config) {
    const RELOADS: usize = 10;
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\n");
    let over = AtomicBool::new(false);
    let client = |pause: u64| {
        let mut wire = server.connect();
        let mut answered = 0;
        while !over.load(Ordering::Relaxed) {
            wire.send(request("GET", "/", &[]).repeat(3));
            for _ in 0..3 {
                let response = wire.response();
                assert_eq!(response.status, 200);
                answered += 1;
                if response.field("Connection") == Some("close") {
                    wire.expect_end();
                    wire = server.connect();
                    break;
                }
            }
            // Connections are busy, idle for moments, or idle for the whole of a reload.
            thread::sleep(Duration::from_millis(pause));
        }
        answered
    };
    thread::scope(|scope| {
        let at_end = EndOnDrop(&over);
        let client = &client;
        let clients = [0, 7, 300].map(|pause| scope.spawn(move || client(pause)));
        for reloads in 1..=RELOADS {
            server.process.signal(Signal::HUP);
            becomes_true(SOON, "the reload succeeds", || server.status()["reloads"]["succeeded"] == reloads);
        }
        drop(at_end);
        assert!(clients.into_iter().all(|client| client.join().expect("no response is missing") > 0));
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The load generator repeats only requests that GOAWAY leaves out, and counts every other lost request. A worker that
/// ends a connection too early loses some, and so does one that reports another last stream.
fn streams_during_reloads_lose_nothing(config: &Config) {
    const RELOADS: usize = 10;
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\n");
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let words = ["bench", "--quiet", "--json", "--http", "2", "--streams", "8", "-c", "4", "-d", "60s"];
    let mut bench = Command::new(&binary.path);
    bench.args(words).arg(server.address.to_string()).stdin(Stdio::null());
    // It warns of other programs.
    bench.stdout(Stdio::piped()).stderr(Stdio::null());
    let bench = bench.spawn().expect("the load generator runs");
    let is_loaded = || server.status()["requests"].as_u64() > Some(100);
    becomes_true(SOON, "the load has begun", is_loaded);
    for reloads in 1..=RELOADS {
        server.process.signal(Signal::HUP);
        becomes_true(SOON, "the reload succeeds", || server.status()["reloads"]["succeeded"] == reloads);
    }
    Process(bench.id()).signal(Signal::INT);
    let output = bench.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let run = &report["runs"][0];
    assert_eq!(run["errors"], serde_json::json!({}), "{:#}", run["examples"]);
    assert!(run["http2"]["goaways"]["NO_ERROR"].as_u64() >= Some(4), "{:#}", run["http2"]);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The worker is not root and cannot read the folder: it reports this and exits. Until the supervisor has waited for
/// it, the new generation is a failed one.
fn the_last_reload_wins_even_after_a_failed_one(config: &Config) {
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\n");
    for round in 0..10 {
        folder.allow("new", 0o700);
        reload(&server, &folder, "root = \"new\"\n");
        // The time of the failure differs in each round.
        std::thread::sleep(std::time::Duration::from_millis(round));
        let (index, page) =
            if round % 2 == 0 { ("other", b"the other\n") } else { ("index", b"the first\n") };
        reload(&server, &folder, &format!("root = \"site\"\nindex = \"{index}.html\"\n"));
        becomes_true(SOON, "the last configuration is served", || server.get("/").body == page);
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// In a container, the leader of the session and the process that sends HUP have no number if they are outside.
fn a_server_in_a_container_reloads(_: &Config) {
    let folder = folder();
    let control = folder.at("control");
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut container = Command::new(tools::program("unshare"))
        .args(["--pid", "--fork", "--mount-proc"])
        .args([&binary.path, Path::new("serve"), &folder.at("site")])
        .args(["--listen", "127.0.0.1:0", "--access-log", "off", "--control"])
        .arg(&control)
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    becomes_true(SOON, "it serves", || ask_status(&control).is_ok());
    let server = Process(container.id()).children()[0];
    server.signal(Signal::HUP);
    becomes_true(SOON, "it reloads", || ask_status(&control).is_ok_and(|status| status["generation"] == 2));
    server.signal(Signal::TERM);
    assert!(container.wait().expect("it is our child").success());
}

/// A download in each of many configurations. Above the bound, the oldest download ends within its time.
fn slow_downloads_delay_no_reload(config: &Config) {
    let folder = folder();
    let server = start(config, &folder, "root = \"site\"\ndrain-timeout = \"300ms\"\n");
    // A worker of the former configuration may accept a connection before it retires.
    let newest_serves = || {
        let status = server.status();
        let workers = status["workers"].as_array().expect("a list");
        let serves = |worker: &Value| worker["connections"]["open"] != 0;
        workers.iter().any(|worker| worker["generation"] == status["generation"] && serves(worker))
    };
    let mut downloads = Vec::new();
    for reloads in 1..=10 {
        becomes_true(SOON, "the newest configuration serves a download", || {
            let mut wire = server.connect();
            // Otherwise the buffers of both ends could hold the file, and its worker would end.
            wire.take_little();
            wire.send(request("GET", "/large.bin", &[("Connection", "close")]));
            assert_eq!(wire.head().status, 200);
            downloads.push(wire);
            newest_serves()
        });
        server.process.signal(Signal::HUP);
        becomes_true(SOON, "the reload does not wait", || server.status()["reloads"]["succeeded"] == reloads);
    }
    server.expect_report("the oldest (number 1) ends within 300ms (drain-timeout)");
    server.expect_report("responses of a former configuration are cut off");
    let length = 8 << 20;
    let mut whole = downloads.into_iter().map(|mut wire| wire.rest().0.len() >= length);
    assert!(!whole.next().expect("there are ten or more"), "the oldest was not cut off");
    assert!(whole.last().expect("there are ten or more"), "the newest was cut off");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
