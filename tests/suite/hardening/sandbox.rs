//! Processes may make only the system calls that they need. On a request for `/.attempt/NAME`, a server of the suite
//! makes a call on the thread that answers.

use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch};
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true, eventually};

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Own on WORKERS + ANOTHER: h79_every_process_that_serves_is_confined,
            h79_a_fatal_call_ends_the_worker_by_name,
            h79_an_unlisted_call_is_refused_counted_and_reported_once,
            h79_a_worker_opens_nothing_outside_its_folders;
        Own on DISPATCHES: h79_threads_of_a_pool_are_confined;
        Own on EPOLL: h79_a_replacement_worker_reports_again;
        Own on DRIVERS + ANOTHER: h79_calls_of_intruders_end_the_worker,
            h79_every_thread_of_a_worker_has_its_filter, h79_options_that_reach_other_processes_are_refused,
            h79_handlers_and_filters_stay_as_they_are, h79_a_memory_fault_ends_the_worker,
            h79_no_process_that_serves_starts_or_signals_another,
            h79_arguments_that_reach_other_processes_are_refused;
        Own on ENGINES: h79_the_wait_of_another_model_ends_the_worker;
        Once: h79_without_filters_the_server_does_not_start;
    ],
};

fn start(config: &Config) -> Server {
    Launch::new(config, site::shared()).attempts().start()
}

/// Makes the server attempt a call, and returns whether a response came.
fn attempt(server: &Server, call: &str) -> bool {
    let request = format!("GET /.attempt/{call} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut wire = server.connect();
    wire.send(request);
    // A connection whose process has ended is reset or closed.
    wire.rest().0.starts_with(b"HTTP/1.1 404 ")
}

/// The result when a worker attempts to open a file by its path.
fn opened(server: &Server, path: &str) -> String {
    assert!(attempt(server, &format!("open{path}")));
    let begin = format!("attempt to open {path}: ");
    let line = || server.errors().lines().find_map(|line| Some(line.split_once(&begin)?.1.to_owned()));
    eventually(SOON, "the attempt is told", line)
}

/// Checks that a call ends the worker that makes it, and that another worker serves.
#[track_caller]
fn is_fatal(server: &Server, call: &str, reported: &str) {
    let before = server.workers();
    assert!(!attempt(server, call), "an answer came behind {call}");
    let line = format!("ended by its sandbox, which forbids {reported}");
    server.expect_report(&line);
    if !server.config.process_per_connection() {
        let replaced = || {
            let now = server.workers();
            now.len() == before.len() && now != before
        };
        becomes_true(SOON, "another worker", replaced);
    }
    // A new worker may not listen yet, so the request waits.
    assert_eq!(server.get("/1k.html").status, 200, "behind {call}");
}

fn h79_every_process_that_serves_is_confined(config: &Config) {
    let server = Launch::new(config, site::shared()).members().start();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let confined: Vec<_> = server.process.with_descendants().into_iter().skip(1).collect();
    assert!(confined.len() > config.processes(), "workers and the accounts: {confined:?}");
    for process in confined {
        let field = |name| process.status(name).unwrap_or_default();
        assert_eq!((field("Seccomp").as_str(), field("NoNewPrivs").as_str()), ("2", "1"), "{process:?}");
    }
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h79_a_fatal_call_ends_the_worker_by_name(config: &Config) {
    is_fatal(&start(config), "ptrace", "the system call ptrace (");
}

fn h79_threads_of_a_pool_are_confined(config: &Config) {
    is_fatal(&start(config), "connect", "the system call connect (");
}

fn h79_calls_of_intruders_end_the_worker(config: &Config) {
    const CALLS: [&str; 7] =
        ["execve", "process_vm_readv", "connect", "io_uring_setup", "clone", "unshare", "ppoll"];
    for call in CALLS {
        is_fatal(&start(config), call, &format!("the system call {call} ("));
    }
    // A call of the x32 table.
    if cfg!(target_arch = "x86_64") {
        is_fatal(&start(config), "getpid", "system call number 1073741863");
    }
}

/// Each wait of any model.
fn h79_the_wait_of_another_model_ends_the_worker(config: &Config) {
    let own = |call: &str| match config.engine {
        Engine::Epoll | Engine::Libevent | Engine::Asio | Engine::AsioProactor => call.starts_with("epoll_"),
        Engine::Poll => call == "poll",
        Engine::Select => call == "pselect6",
        Engine::Uring => call == "io_uring_enter",
        _ => false,
    };
    for call in ["select", "pselect6", "poll", "epoll_wait", "epoll_pwait", "io_uring_enter"] {
        if !own(call) {
            is_fatal(&start(config), call, &format!("the system call {call} ("));
        }
    }
}

/// With `fork`, the process of a connection may do what its parent does.
fn h79_no_process_that_serves_starts_or_signals_another(config: &Config) {
    if config.engine == Engine::Fork {
        return;
    }
    for (call, reported) in [("fork", "clone"), ("kill", "kill"), ("tgkill", "tgkill")] {
        is_fatal(&start(config), call, &format!("the system call {reported} ("));
    }
}

fn h79_an_unlisted_call_is_refused_counted_and_reported_once(config: &Config) {
    const TIMES: usize = 6;
    let server = start(config);
    for _ in 0..TIMES {
        assert!(attempt(&server, "bind"), "serving goes on");
    }
    becomes_true(SOON, "each is counted", || server.status()["refused_calls"] == TIMES);
    let report = "the sandbox refused the system call bind (";
    server.expect_report(report);
    let reports = server.errors().matches(report).count();
    assert!((1..=config.processes()).contains(&reports), "{reports} reports: {}", server.errors());
    assert_eq!(server.get("/1k.html").status, 200);
}

fn h79_a_replacement_worker_reports_again(config: &Config) {
    let server = start(config);
    for worker in 1..=2 {
        assert!(attempt(&server, "bind") && attempt(&server, "bind"), "serving goes on");
        let reports = || server.errors().matches("the sandbox refused the system call bind (").count();
        becomes_true(SOON, &format!("worker {worker} reports it once"), || reports() == worker);
        is_fatal(&server, "ptrace", "the system call ptrace (");
    }
}

fn h79_handlers_and_filters_stay_as_they_are(config: &Config) {
    let server = start(config);
    for call in ["rt_sigaction", "seccomp"] {
        assert!(attempt(&server, call), "it is refused, and no more");
        let line = format!("the sandbox refused the system call {call} (");
        server.expect_report(&line);
    }
    is_fatal(&server, "ptrace", "the system call ptrace (");
}

/// The runtime of Rust handles SIGSEGV and restores the default action, which ends the process.
fn h79_a_memory_fault_ends_the_worker(config: &Config) {
    let server = start(config);
    assert!(!attempt(&server, "fault"), "an answer came");
    if config.engine != Engine::Fork {
        let line = "was killed by signal 11 (SEGV: segmentation fault); another takes its place";
        server.expect_report(line);
    }
    assert_eq!(server.get("/1k.html").status, 200, "{}", server.errors());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h79_every_thread_of_a_worker_has_its_filter(config: &Config) {
    // The process has a filter for `clone3` and a filter for all other calls. A ring is made before its thread gets one.
    let expected = if config.engine == Engine::Uring { "3" } else { "2" };
    // The processes of `fork` have no other threads.
    if config.engine == Engine::Fork {
        return;
    }
    let server = Launch::new(config, site::shared()).flag("--log-mode", "async").start();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let filters = |worker: Process| -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", worker.0)).expect("it is there");
        let statuses =
            tasks.map(|task| std::fs::read_to_string(task.expect("a thread").path().join("status")));
        let field = |status: String| {
            let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
            line.expect("Linux 5.9").trim().to_owned()
        };
        statuses.map(|status| field(status.expect("a thread's status"))).collect()
    };
    for worker in server.workers() {
        becomes_true(SOON, "each thread has as many filters as the others", || {
            let found = filters(worker);
            found.len() > 1 && found.iter().all(|count| count == expected)
        });
    }
}

/// A connection by MSG_FASTOPEN, a datagram socket to any Unix socket, and signals through a descriptor.
fn h79_arguments_that_reach_other_processes_are_refused(config: &Config) {
    let server = Launch::new(config, site::shared()).members().attempts().start();
    // A filter does not see the sends of a ring.
    let connects = (config.engine != Engine::Uring).then_some("sendto");
    for call in ["socketpair", "fcntl"].into_iter().chain(connects) {
        assert!(attempt(&server, call), "it is refused, and no more");
        let line = format!("the sandbox refused the system call {call} (");
        server.expect_report(&line);
    }
}

/// SO_ATTACH_REUSEPORT_CBPF takes the connections of other workers.
fn h79_options_that_reach_other_processes_are_refused(config: &Config) {
    let server = start(config);
    assert!(attempt(&server, "setsockopt"), "it is refused, and no more");
    becomes_true(SOON, "each is counted", || server.status()["refused_calls"] == 1);
    assert_eq!(server.get("/1k.html").status, 200);
}

fn h79_a_worker_opens_nothing_outside_its_folders(config: &Config) {
    let folder = TempFolder::new("outside");
    folder.write("file", "anybody may read it");
    folder.allow(".", 0o755);
    let server = start(config);
    let outside = opened(&server, &folder.at("file").display().to_string());
    match server.errors().contains("this kernel has no Landlock") {
        true => assert_eq!(outside, "Ok(())"),
        false => assert!(outside.contains("PermissionDenied"), "{outside}"),
    }
    assert_eq!(opened(&server, &site::shared().join("1k.html").display().to_string()), "Ok(())");
}

fn h79_without_filters_the_server_does_not_start() {
    let launch = Launch::new(&Config::of(Engine::Epoll), site::shared()).flag("--listen", ANY_PORT);
    let inject = ["-e", "trace=seccomp", "-e", "inject=seccomp:error=ENOSYS", "-o", "/dev/null"];
    let output = launch.through("strace", &inject).refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the sandbox needs seccomp filters that raise SIGSYS"), "{said}");
}
