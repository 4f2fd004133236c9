//! With each timer, waits end at their deadline, and not earlier.

use std::time::{Duration, Instant};

use tenfold_engine::TimerKind;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::{Theme, each_at_once};
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true, not_before, with_deadlines};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "timers",
    cases: cases![
        Own on ENGINES: every_timer_ends_every_wait, blocking_engines_reject_timer_choices;
        Own on EPOLL + URING: many_idle_connections_end_and_active_ones_persist;
    ],
};

const HEAD: Duration = Duration::from_millis(400);
const IDLE: Duration = Duration::from_millis(700);
/// The upper bound of a wait: on a busy machine, a timer may be seconds late.
const LATE: Duration = Duration::from_secs(8);

fn keeps_timers(config: &Config) -> bool {
    config.engine.model().driver != tenfold_engine::Driver::Blocking
}

fn launch(config: &Config, kind: TimerKind, head: Duration, idle: Duration) -> Launch {
    Launch::new(config, site::shared())
        .flag("--timer", kind)
        .flag("--head-timeout", format!("{}ms", head.as_millis()))
        .flag("--idle-timeout", format!("{}ms", idle.as_millis()))
}

#[track_caller]
fn passed(begin: Instant, least: Duration, what: &str) {
    not_before(least, begin);
    assert!(begin.elapsed() < LATE, "{what}: {:?}, and not {least:?} or a little more", begin.elapsed());
}

fn every_timer_ends_every_wait(config: &Config) {
    each_at_once(TimerKind::ALL.iter().filter(|_| keeps_timers(config)), |choice| {
        let server = launch(config, *choice, HEAD, IDLE).start();
        // An incomplete head. The server's wait begins at its accept, which may be before connect() returns here.
        let begin = Instant::now();
        let mut slow = server.connect();
        slow.send("GET / HTTP/1.1\r\n");
        assert_eq!(slow.response().status, 408, "{choice:?}");
        passed(begin, HEAD, "a head");
        // A connection that is idle after a response.
        let mut resting = server.connect();
        let begin = Instant::now();
        resting.get("/1k.html");
        assert_eq!(resting.response().status, 200, "{choice:?}");
        resting.expect_end();
        passed(begin, IDLE, "a rest");
        server.stop().unwrap_or_else(|why| panic!("{choice:?}: {why}"));
    });
}

fn many_idle_connections_end_and_active_ones_persist(config: &Config) {
    // The cases mostly wait.
    each_at_once(TimerKind::ALL.iter().filter(|_| keeps_timers(config)), |choice| {
        with_deadlines(|idle| {
            let server = launch(config, *choice, LATE, idle).start();
            let mut asked = Instant::now();
            let resting: Option<Vec<_>> = (0..100).map(|_| server.idle()).collect();
            let mut resting = resting.unwrap_or_else(|| panic!("{choice:?}: a new connection is not idle"));
            let mut busy = resting.pop().expect("there are a hundred");
            let begin = Instant::now();
            while begin.elapsed() < 2 * idle {
                let before = std::mem::replace(&mut asked, Instant::now());
                let sent = busy.try_send(&request("GET", "/1k.html", &[])).is_ok();
                let Some(response) = sent.then(|| busy.try_response()).flatten() else {
                    not_before(idle, before);
                    return false;
                };
                assert_eq!(response.status, 200, "{choice:?}: a busy connection goes on");
                // Many requests in the time of an idle connection.
                std::thread::sleep(idle / 20);
            }
            resting.iter_mut().for_each(|wire| wire.expect_end());
            // The count of connections falls shortly after the peer's end, and the last connection is idle now.
            becomes_true(SOON, "one is left at most", || {
                server.status()["connections"]["open"].as_u64().is_some_and(|open| open <= 1)
            });
            drop(busy);
            server.stop().unwrap_or_else(|why| panic!("{choice:?}: {why}"));
            true
        });
    });
}

fn blocking_engines_reject_timer_choices(config: &Config) {
    if keeps_timers(config) {
        return;
    }
    let engine = config.engine.to_string();
    let output = tenfold(&["serve", ".", "--engine", &engine, "--timer", "list"]);
    assert_eq!(output.status.code(), Some(2), "{engine}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("timer is for engines ") && said.contains(&format!("not {engine}")), "{said}");
}
