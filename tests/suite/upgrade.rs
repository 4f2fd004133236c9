//! `tenfold upgrade`: the new program in the same process loses no request, and a program that cannot serve changes
//! nothing.

mod again;
mod certificates;
mod databases;
mod fronts;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::seal::{get_once, new_client};
use tenfold_tests::server::{Server, ask_status};
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true};
use tenfold_tests::tools;
use tenfold_tests::visitor::Visitor;
use tenfold_tests::wire::Wire;

use again::*;
use certificates::*;
use databases::*;
use fronts::*;

pub(crate) const THEME: Theme = Theme {
    name: "upgrade",
    cases: cases![
        Own on WORKERS + ANOTHER: an_upgrade_interrupts_no_request;
        Own on DRIVERS + ANOTHER_CONCURRENT: no_request_fails_under_load,
            an_idle_connection_outlives_an_upgrade;
        Own on DRIVERS: a_tls_session_is_resumed_after_an_upgrade,
            nginx_that_keeps_connections_sees_no_failure, haproxy_that_keeps_connections_sees_no_failure;
        Many: members_of_a_database_server_stay_logged_in;
        Own on EPOLL: a_program_that_cannot_serve_changes_nothing, a_unix_listener_and_the_log_go_on,
            passed_sockets_go_on, members_stay_logged_in, former_workers_end_with_the_server,
            what_cannot_be_opened_refuses_an_upgrade, a_server_ends_if_neither_program_can_start,
            a_server_ends_if_no_worker_can_start, the_former_program_serves_if_no_new_worker_can,
            a_log_on_standard_output_goes_on, an_order_goes_on_after_an_upgrade,
            a_check_ends_before_the_server, an_exchanged_link_leads_to_the_new_program,
            a_socket_of_an_ended_process_upgrades_nothing, the_end_of_the_server_ends_the_wait;
        OwnAsRoot on EPOLL: a_server_without_root_is_upgraded, the_first_process_of_a_container_is_upgraded,
            h96_no_helper_remembers_the_keys_of_tickets;
    ],
};

/// A folder with a site and a copy of the server.
fn folder() -> TempFolder {
    let folder = TempFolder::new("upgrade");
    folder.write("site/index.html", "the page\n");
    folder.write("site/large.bin", site::bytes(8 << 20, 8));
    put(&folder, &binary::server().expect("the server").path);
    folder
}

fn program(folder: &TempFolder) -> PathBuf {
    folder.at("tenfold")
}

/// Puts a copy of `source` at the path of the program. Another process writes it: a fork of this one could have the file
/// open for writing while it is executed.
fn put(folder: &TempFolder, source: &Path) {
    let new = folder.at("tenfold.new");
    let copied = Command::new("cp").arg(source).arg(&new).status().expect("coreutils");
    assert!(copied.success());
    folder.allow("tenfold.new", 0o755);
    fs::rename(new, program(folder)).expect("our own folder");
}

fn put_script(folder: &TempFolder, script: &str) {
    let source = folder.write("script", format!("#!/bin/sh\n{script}\n"));
    put(folder, &source);
}

fn start(config: &Config, folder: &TempFolder) -> Server {
    Launch::new(config, &folder.at("site")).program(&program(folder)).start()
}

/// Runs `tenfold upgrade`. Returns its exit code and its output.
fn upgrade(server: &Server) -> (Option<i32>, String) {
    let control = server.at("control").display().to_string();
    let output = tenfold(&["upgrade", "--control", &control]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("it is text"))
}

/// Upgrades to another copy of the same program.
#[track_caller]
fn succeeds(server: &Server, folder: &TempFolder) {
    let before = server.status();
    put(folder, &binary::server().expect("the server").path);
    let (code, said) = upgrade(server);
    assert_eq!(code, Some(0), "{said}\n{}", server.errors());
    assert!(said.contains(&format!("process {}: upgraded from", server.process.0)), "{said}");
    let after = server.status();
    assert_eq!(after["process"], before["process"]);
    assert_eq!(
        after["upgrades"]["succeeded"],
        before["upgrades"]["succeeded"].as_u64().expect("a count") + 1
    );
}

/// A download continues with the old worker. New connections are served concurrently if the engine supports it.
fn an_upgrade_interrupts_no_request(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let large = site::bytes(8 << 20, 8);
    let mut wire = server.connect();
    wire.get("/large.bin");
    assert_eq!(wire.head().status, 200);
    wire.expect_body(&large[..1000]);
    succeeds(&server, &folder);
    assert_eq!(server.get("/").body, b"the page\n", "a new worker serves beside the download");
    wire.expect_body(&large[1000..]);
    drop(wire);
    let descriptors = server.process.descriptors().len();
    succeeds(&server, &folder);
    assert_eq!(server.process.descriptors().len(), descriptors, "no descriptor is left over");
    assert_eq!(server.get("/").body, b"the page\n");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Each release is a folder, and a link leads to the current release. An upgrade without a change of the link reports
/// that nothing has changed.
fn an_exchanged_link_leads_to_the_new_program(config: &Config) {
    let folder = folder();
    let program = |release: &str| folder.at(&format!("{release}/tenfold"));
    for release in ["first", "second"] {
        folder.make(release);
        let copied = Command::new("cp").arg(self::program(&folder)).arg(program(release)).status();
        assert!(copied.expect("coreutils").success());
    }
    let exchange = |release: &str| {
        symlink(release, folder.at("next")).expect("our own folder");
        fs::rename(folder.at("next"), folder.at("current")).expect("our own folder");
    };
    exchange("first");
    let server = Launch::new(config, &folder.at("site")).program(&program("current")).start();
    let executes = || fs::read_link(format!("/proc/{}/exe", server.process.0)).expect("it is ours");
    for (release, said) in [("first", "still the file that ran before"), ("second", "upgraded from")] {
        exchange(release);
        let (code, output) = upgrade(&server);
        assert!(code == Some(0) && output.contains(said), "{release}: {output}");
        assert_eq!(executes(), program(release));
    }
    server.expect_report("the same program again");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Keep-alive clients, which obey `Connection: close`, and clients with a connection for each request.
fn no_request_fails_under_load(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let (end, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    let ask = |persistent: bool| {
        let mut kept: Option<Wire> = None;
        while !end.load(Ordering::Relaxed) {
            let mut wire = kept.take().unwrap_or_else(|| server.connect());
            wire.get("/");
            let response = wire.response();
            assert_eq!((response.status, &response.body[..]), (200, &b"the page\n"[..]));
            requests.fetch_add(1, Ordering::Relaxed);
            kept = (persistent && response.field("Connection") != Some("close")).then_some(wire);
        }
    };
    thread::scope(|scope| {
        let at_end = EndOnDrop(&end);
        let clients: Vec<_> =
            [true, true, false].map(|persistent| scope.spawn(move || ask(persistent))).into();
        for _ in 0..3 {
            succeeds(&server, &folder);
            let before = requests.load(Ordering::Relaxed);
            becomes_true(SOON, "clients are served", || {
                requests.load(Ordering::Relaxed) > before + 20 || clients.iter().any(|it| it.is_finished())
            });
        }
        drop(at_end);
        clients.into_iter().for_each(|client| client.join().expect("no request fails"));
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn an_idle_connection_outlives_an_upgrade(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let mut idle = server.connect();
    assert_eq!(idle.fetch("/").body, b"the page\n");
    succeeds(&server, &folder);
    idle.expect_retirement("/", b"the page\n");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_tls_session_is_resumed_after_an_upgrade(config: &Config) {
    let folder = folder();
    let server = start(&config.over_tls(), &folder);
    let client = new_client();
    let resumes = || get_once(server.address, &client, "localhost", "/").expect("an exchange").resumed;
    assert!(!resumes(), "there is no session yet");
    succeeds(&server, &folder);
    assert!(resumes(), "after an upgrade");
    succeeds(&server, &folder);
    assert!(resumes(), "after another one");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Programs that fail before or after their execution. An upgrade to a good program then succeeds.
fn a_program_that_cannot_serve_changes_nothing(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let good = binary::server().expect("the server").path.display();
    let check = format!("case \"$TENFOLD_HANDOVER\" in check*) exec {good} \"$@\";; *)");
    let failures = [
        ("exit 0".to_owned(), "exited with code 0"),
        ("exit 7".to_owned(), "exited with code 7"),
        ("exec sleep 600".to_owned(), "did not check the configuration within 6s"),
        (format!("TENFOLD_HANDOVER=check:0 exec {good} \"$@\""), "exited with code"),
        (format!("{check} exec {good} serve /nonexistent;; esac"), "the new program could not start"),
    ];
    for (count, (script, why)) in failures.into_iter().enumerate() {
        put_script(&folder, &script);
        let (code, said) = upgrade(&server);
        assert_eq!(code, Some(1), "{script}: {said}");
        assert!(said.contains(why), "{script}: {said}");
        server.expect_report(why);
        assert_eq!(server.get("/").body, b"the page\n", "{script}");
        let status = server.status();
        assert_eq!(status["process"], server.process.0, "{script}");
        assert_eq!(status["upgrades"]["failed"], count as u64 + 1, "{script}");
    }
    fs::remove_file(program(&folder)).expect("our own file");
    let (code, said) = upgrade(&server);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot run"), "{said}");
    succeeds(&server, &folder);
    assert_eq!(server.get("/").body, b"the page\n");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_unix_listener_and_the_log_go_on(config: &Config) {
    let folder = folder();
    folder.allow(".", 0o755);
    let path = folder.at("site.sock");
    let launch = Launch::new(config, &folder.at("site")).program(&program(&folder));
    let server = launch.flag("--listen", format!("unix:{}", path.display())).start();
    let ask = || {
        let mut wire = Wire::connect_unix(&path);
        wire.get("/");
        assert_eq!(wire.response().body, b"the page\n");
    };
    ask();
    succeeds(&server, &folder);
    ask();
    becomes_true(SOON, "both requests have a line", || server.log().lines().count() == 2);
    let control = server.at("control");
    assert!(control.exists());
    server.process.signal(rustix::process::Signal::TERM);
    assert!(server.ends_within(SOON).success());
    assert!(!path.exists() && !control.exists(), "the last program removes the files of sockets");
}

fn passed_sockets_go_on(config: &Config) {
    let folder = folder();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let config = Config { topology: tenfold_engine::Topology::Threads, ..*config };
    let launch = Launch::new(&config, &folder.at("site")).program(&program(&folder));
    let server = launch.passing(listener).start_at(address);
    succeeds(&server, &folder);
    assert_eq!(server.get("/").body, b"the page\n");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn members_stay_logged_in(config: &Config) {
    let folder = folder();
    let server = Launch::new(config, &folder.at("site")).program(&program(&folder)).members().start();
    let mut visitor = Visitor::new(&server);
    let password = "a long enough password";
    assert_eq!(visitor.register("ada", password).status, 303);
    assert_eq!(visitor.log_in("ada", password).status, 303);
    let greets = |visitor: &mut Visitor| visitor.get("/account/").status == 200;
    assert!(greets(&mut visitor));
    let accounts = server.status()["accounts"]["process"].as_u64().expect("it runs");
    let accounts = Process(accounts as u32);
    // It does not end by itself.
    accounts.signal(rustix::process::Signal::STOP);
    succeeds(&server, &folder);
    assert!(greets(&mut visitor), "the session is in the database");
    drop(visitor);
    becomes_true(SOON, "the former accounts process has ended", || !accounts.is_running());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Also workers with connections that an upgrade has left.
fn former_workers_end_with_the_server(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let mut idle = server.connect();
    assert_eq!(idle.fetch("/").status, 200);
    let before = server.workers();
    succeeds(&server, &folder);
    assert!(before.iter().any(|worker| worker.is_running()), "it has a connection");
    server.process.signal(rustix::process::Signal::INT);
    assert!(server.ends_within(SOON).success());
    assert!(before.iter().all(|worker| !worker.is_running()));
}

/// The id of the process that bound the socket may now be another process's.
fn a_socket_of_an_ended_process_upgrades_nothing(_: &Config) {
    const LISTEN: &str = "import os, socket, sys, time
at = socket.socket(socket.AF_UNIX)
at.bind(sys.argv[1])
at.listen()
if os.fork(): os._exit(0)
print(flush=True)
time.sleep(60)";
    let folder = TempFolder::new("planted");
    let control = folder.at("control");
    let mut command = Command::new(tools::program("python3"));
    let mut planted =
        command.args(["-c", LISTEN]).arg(&control).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let output = planted.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("it listens");
    planted.wait().expect("it has ended");
    let output = tenfold(&["upgrade", "--control", &control.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("that began to listen at") && said.contains("has ended"), "{said}");
    let control = control.display().to_string();
    let planted = Process::all().into_iter().filter(|process| process.words().contains(&control));
    planted.for_each(|process| process.signal(rustix::process::Signal::KILL));
}

/// The ended process keeps its id, because this parent has not reaped it.
fn the_end_of_the_server_ends_the_wait(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let started = folder.at("started");
    put_script(&folder, &format!("touch {}; exec sleep 5", started.display()));
    thread::scope(|scope| {
        let upgraded = scope.spawn(|| upgrade(&server));
        becomes_true(SOON, "the new program runs", || started.exists());
        server.process.signal(rustix::process::Signal::KILL);
        let (code, said) = upgraded.join().expect("it ends");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("process {} has ended", server.process.0)), "{said}");
    });
}

/// The server has a Unix listener, an admin listener and members. Its user upgrades it, and then root does.
fn a_server_without_root_is_upgraded(_: &Config) {
    let (folder, state) = (folder(), TempFolder::new("upgrade-nobody"));
    folder.allow(".", 0o755);
    state.allow(".", 0o777);
    let at = |name: &str| state.at(name).display().to_string();
    let mut server = tools::as_nobody(&program(&folder));
    server.arg("serve").arg(folder.at("site"));
    server.args(["--listen", &format!("unix:{}", at("site")), "--admin", &format!("unix:{}", at("admin"))]);
    server.args([
        "--accounts",
        &format!("sqlite:{}", at("members.db")),
        "--protect",
        "/members/",
        "--control",
        &at("control"),
    ]);
    let as_user = tools::as_nobody(&program(&folder));
    is_upgraded(server, &at("control"), |process| process, vec![as_user, Command::new(program(&folder))]);
}

fn the_first_process_of_a_container_is_upgraded(_: &Config) {
    let folder = folder();
    folder.allow(".", 0o755);
    let control = folder.at("control").display().to_string();
    let mut server = Command::new(tools::program("unshare"));
    server
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(program(&folder))
        .arg("serve")
        .arg(folder.at("site"));
    server.args(["--listen", "127.0.0.1:0", "--control", &control]);
    let inside = |process: Process| process.children()[0];
    is_upgraded(server, &control, inside, vec![Command::new(program(&folder))]);
}

/// Starts `server`, runs `tenfold upgrade` by each of `upgrades`, and ends the process that `of` finds.
#[track_caller]
fn is_upgraded(mut server: Command, control: &str, of: impl Fn(Process) -> Process, upgrades: Vec<Command>) {
    let mut child = server.args(["--access-log", "off"]).stderr(Stdio::null()).spawn().expect("it runs");
    becomes_true(SOON, "it serves", || ask_status(Path::new(control)).is_ok());
    for mut upgrade in upgrades {
        let output = upgrade.args(["upgrade", "--control", control]).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    of(Process(child.id())).signal(rustix::process::Signal::TERM);
    let end = child.wait().expect("it is our child");
    assert!(end.success(), "{end}");
}
