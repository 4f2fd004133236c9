//! `tenfold bench` against servers with known behaviour, most of them faulty.

mod http2;
mod machines;
mod peer;
mod ring;
mod sealed;
mod usage;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use http2::{
    http2_closed_and_open_loops_make_their_requests, http2_needs_a_server_with_http2,
    http2_obeys_the_limits_of_the_server, http2_resets_and_goaways_are_errors_by_kind,
};
use machines::{
    a_paused_agent_makes_a_run_invalid, agents_share_a_plan, an_agent_that_fails_is_named,
    an_interrupt_ends_all_agents, lost_agents_make_a_run_invalid, nothing_of_one_machine_changes,
};
use peer::{FaultyServer, ok};
use ring::*;
use sealed::*;
use serde_json::Value;
use tenfold_engine::Engine;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::EndOnDrop;
use tenfold_tests::{binary, tools};
use usage::{
    a_request_without_room_is_sent_later, a_run_ends_by_time_or_by_requests_whichever_comes_first,
    a_short_run_names_its_few_samples, an_endless_response_does_not_outlast_the_run,
    an_interrupt_prints_the_results_so_far, assertions_and_validity_are_exit_codes,
    compare_names_the_settings_that_differ, http_1_0_is_persistent_only_if_asked,
    reports_are_parsed_and_compared, unusable_files_are_reported_before_the_run,
    wrong_usage_is_one_line_and_exit_code_2,
};

pub(crate) const THEME: Theme = Theme {
    name: "bench",
    cases: cases![
        Once: a_stall_counts_from_the_due_time_of_requests, starved_connections_are_counted,
            a_wrong_response_is_an_error, every_framing_is_parsed, connections_that_fail_are_errors_by_kind,
            a_number_of_requests_is_made_exactly, a_known_server_agrees_with_littles_law,
            every_url_form_reaches_the_server, wrong_usage_is_one_line_and_exit_code_2,
            assertions_and_validity_are_exit_codes, an_interrupt_prints_the_results_so_far,
            reports_are_parsed_and_compared, unusable_files_are_reported_before_the_run,
            urls_are_requested_in_order_or_at_random, scheduled_connections_live_for_their_time,
            idle_and_slow_connections_are_counted_apart,
            a_run_ends_by_time_or_by_requests_whichever_comes_first, a_short_run_names_its_few_samples,
            compare_names_the_settings_that_differ, http_1_0_is_persistent_only_if_asked,
            processes_share_a_plan, the_choice_of_io_is_reported, ring_a_stall, ring_starved_connections,
            ring_wrong_answers, ring_framing, ring_errors_by_kind, ring_a_number_of_requests,
            ring_littles_law, ring_order_of_urls, ring_connections_by_schedule, ring_an_interrupt,
            ring_exit_codes, ring_errors_of_connections_for_one_request,
            ring_connect_and_first_byte_are_apart, ring_long_bodies, ring_idle_connections_are_counted_apart,
            https_handshakes_are_counted_and_timed, https_serves_every_shape_of_load,
            https_moves_long_bodies_both_ways, https_refuses_what_it_cannot_trust,
            https_without_tls_behind_it_is_explained, https_truncation_is_an_error_and_counted,
            https_speaks_tls_1_2_too, an_endless_response_does_not_outlast_the_run, ring_an_endless_response,
            a_request_without_room_is_sent_later, ring_a_request_without_room,
            http2_closed_and_open_loops_make_their_requests, http2_needs_a_server_with_http2,
            http2_obeys_the_limits_of_the_server, http2_resets_and_goaways_are_errors_by_kind,
            a_paused_agent_makes_a_run_invalid, agents_share_a_plan, lost_agents_make_a_run_invalid, an_interrupt_ends_all_agents,
            an_agent_that_fails_is_named, nothing_of_one_machine_changes;
    ],
};

const NANOSECONDS: f64 = 1e3;

fn bench(words: &[&str]) -> Output {
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    // A run that hangs must not block the suite.
    let mut command = Command::new(tools::program("timeout"));
    command.arg("60").arg(&server.path).arg("bench").args(ring::before()).args(words).stdin(Stdio::null());
    without_others(command.output().expect("timeout runs"))
}

/// Removes the finding about other programs from an output, because cases run concurrently.
fn without_others(mut output: Output) -> Output {
    let text = said(&output);
    // A report with this finding cannot be compared.
    let json = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut fields = json.split("\"others\": ");
    let first = fields.next().unwrap_or_default().to_owned();
    let rest =
        fields.map(|rest| format!("\"others\": 0.0,{}", rest.split_once(',').map_or("", |(_, rest)| rest)));
    output.stdout = rest.fold(first, |text, rest| text + &rest).into_bytes();
    let mut doubts =
        text.lines().filter(|line| line.contains("invalid: ") || line.contains("cannot evaluate "));
    let is_other = |line: &str| line.contains("invalid: ") && line.contains(": other programs run: ");
    if output.status.code() == Some(4) && doubts.all(is_other) {
        let failed = text.contains("tenfold: error: assertion failed: ");
        output.status = ExitStatus::from_raw(if failed { 3 << 8 } else { 0 });
    }
    output
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The first run in the output of `--json`.
#[track_caller]
fn measured(words: &[&str]) -> Value {
    let output = bench(&[&["--json", "--warm-up", "off"], words].concat());
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{words:?}: {error}: {}", said(&output)));
    report["runs"][0].clone()
}

/// A run in which the generator was never late by `most` microseconds, or the first run if all were late. A pause of
/// the machine would hide the behaviour of the server.
#[track_caller]
fn undisturbed(most: f64, run: impl Fn() -> Value) -> Value {
    first_fit(run, |run| number(run, "/generator/delay_us/max") < most)
}

/// The first fit result of several attempts, or the first result.
fn first_fit<T>(result: impl Fn() -> T, is_fit: impl Fn(&T) -> bool) -> T {
    const MORE: usize = 3;
    let first = result();
    if is_fit(&first) { first } else { (0..MORE).map(|_| result()).find(is_fit).unwrap_or(first) }
}

#[track_caller]
fn number(run: &Value, path: &str) -> f64 {
    let found = run.pointer(path).unwrap_or_else(|| panic!("no {path} in {run:#}"));
    found.as_f64().unwrap_or_else(|| panic!("{path} is {found}"))
}

#[track_caller]
fn expect_code(code: i32, words: &[&str], says: &[&str]) -> Output {
    let output = bench(words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
    for word in says {
        assert!(said(&output).contains(word), "{word:?} is not in what {words:?} said: {}", said(&output));
    }
    output
}

fn a_stall_counts_from_the_due_time_of_requests() {
    const STALL: Duration = Duration::from_millis(500);
    let stall_us = STALL.as_nanos() as f64 / NANOSECONDS;
    let run = undisturbed(stall_us / 2.0, || {
        // The server stalls for a tenth of the time: requests of that time wait for its end.
        let (begin, stall) = (Instant::now(), Arc::new(Mutex::new(None)));
        let peer = FaultyServer::start(move |stream, _| {
            let until = {
                let mut stall = stall.lock().expect("no holder panics");
                if stall.is_none() && begin.elapsed() > Duration::from_secs(2) {
                    *stall = Some(Instant::now() + STALL);
                }
                *stall
            };
            if let Some(left) = until.and_then(|until| until.checked_duration_since(Instant::now())) {
                // The stall is the fault of this server.
                thread::sleep(left);
            }
            ok(stream, "hello")
        });
        measured(&["-c", "10", "-d", "5s", "--rate", "500", &peer.address.to_string()])
    });
    let (p99, most) = (number(&run, "/latency_us/percentiles/p99"), number(&run, "/latency_us/max"));
    let uncorrected = number(&run, "/uncorrected_us/percentiles/p99");
    assert!(p99 >= 0.85 * stall_us, "p99 is {p99} us");
    assert!(most >= stall_us, "the longest is {most} us");
    assert!(uncorrected < p99 / 4.0, "from sending, p99 is {uncorrected} us, and {p99} us from the schedule");
    // Each of the 500 requests per second is counted, including those answered after the end.
    assert_eq!((number(&run, "/schedule/asked"), &run["errors"]), (500.0, &serde_json::json!({})), "{run:#}");
    // A busy machine also delays the generator, but by milliseconds.
    let reasons = run["invalid"].as_array().expect("a list");
    assert!(reasons.iter().all(|why| why.to_string().contains("its own delay")), "{run:#}");
    let own = number(&run, "/generator/delay_us/max");
    assert!(own < stall_us / 2.0, "the server was late, and not the generator: {run:#}");
}

fn starved_connections_are_counted() {
    let of = |engine| Launch::new(&Config::of(engine), site::shared());
    let servers = [(of(Engine::Naive), 1), (of(Engine::Pool).flag("--pool-threads", 4), 4)];
    for (launch, served) in servers {
        let server = launch.start();
        let run = measured(&["-c", "16", "-d", "1s", &format!("{}/1k.html", server.address)]);
        let starved = 16 - served;
        assert_eq!(number(&run, "/connections/never_answered"), f64::from(starved), "{run:#}");
        let fairness = number(&run, "/fairness");
        assert!(fairness <= f64::from(served) / 16.0 + 1e-6, "{fairness} with {served} of 16 served");
        assert!(
            number(&run, "/answers") > 16.0,
            "a served connection gets one response after another: {run:#}"
        );
        let note = format!("{starved} of 16 connections never got a response");
        assert!(run["notes"].to_string().contains(&note), "{run:#}");
    }
}

fn a_wrong_response_is_an_error() {
    let peer = FaultyServer::start(|stream, head| match head {
        _ if head.contains("/missing") => {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").is_ok()
        }
        _ => ok(stream, "hello"),
    });
    let at = |path: &str| format!("{}{path}", peer.address);
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let right = ["-n", "20", &at("/"), "--expect-length", "5", "--expect-hash", hello];
    expect_code(0, &right, &["20 responses OK"]);
    for (words, kind) in [
        (vec!["--expect-length", "6"], "length"),
        (vec!["--expect-hash", &hello.replace('2', "3")], "hash"),
        (vec!["--expect-status", "206,304"], "status"),
    ] {
        let run = measured(&[&["-n", "20", &at("/")], words.as_slice()].concat());
        assert_eq!(number(&run, &format!("/errors/{kind}")), 20.0, "{run:#}");
        assert_eq!(number(&run, "/answers"), 0.0, "a wrong answer is counted: {run:#}");
        assert!(run["latency_us"].is_null(), "a wrong answer is timed: {run:#}");
        assert!(run["generator"]["per_answer_us"].is_null(), "it cost what a right answer costs: {run:#}");
    }
    let missing = measured(&["-n", "20", &at("/missing")]);
    assert_eq!((number(&missing, "/errors/status"), number(&missing, "/statuses/404")), (20.0, 20.0));
    let both = ["-v", "-n", "1k", "-c", "1", &at("/"), &at("/missing"), "--expect-status", "200,404"];
    let said = ["1,000 responses OK", "  up to ", " %  #", "200: 500, 404: 500"];
    expect_code(0, &both, &said);
    expect_code(0, &["-n", "20", &at("/missing"), "--expect-status", "404"], &["20 responses OK"]);
}

fn every_framing_is_parsed() {
    let peer = FaultyServer::start(|stream, head| {
        let answer: &[u8] = match head {
            _ if head.contains("/chunked") => {
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
            }
            _ if head.contains("/interim") => {
                b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"
            }
            _ if head.contains("/end") => b"HTTP/1.1 200 OK\r\n\r\nabcde",
            _ if head.contains("/short") => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde",
            _ if head.contains("/noise") => b"SSH-2.0-OpenSSH\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
        };
        // Two pieces, split within the head.
        let (first, second) = answer.split_at(20.min(answer.len()));
        let written = stream.write_all(first).is_ok();
        // The pieces come apart.
        thread::sleep(Duration::from_millis(1));
        let goes_on = !["/end", "/short"].iter().any(|path| head.contains(path));
        written && stream.write_all(second).is_ok() && goes_on
    });
    let at = |path: &str| format!("{}{path}", peer.address);
    for path in ["/length", "/chunked", "/interim", "/end"] {
        let run = measured(&["-n", "30", "-c", "3", "--expect-length", "5", &at(path)]);
        assert_eq!(
            (number(&run, "/answers"), &run["errors"]),
            (30.0, &serde_json::json!({})),
            "{path}: {run:#}"
        );
    }
    assert_eq!(number(&measured(&["-n", "10", "-c", "2", &at("/short")]), "/errors/closed"), 10.0);
    assert_eq!(number(&measured(&["-n", "10", "-c", "2", &at("/noise")]), "/errors/malformed"), 10.0);
}

fn connections_that_fail_are_errors_by_kind() {
    let reserved = ReservedAddress::new();
    let nobody = reserved.to_string();
    let output = expect_code(1, &["-d", "5s", &nobody], &["refused", &nobody]);
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    // With fewer requests than connections too.
    expect_code(1, &["-n", "2", "-c", "5", &nobody], &["cannot connect to", "refused"]);

    let hangs_up = FaultyServer::start(|_, _| false);
    let run = measured(&["-n", "20", "-c", "2", &hangs_up.address.to_string()]);
    let errors: f64 = ["closed", "reset"].iter().filter_map(|kind| run["errors"][kind].as_f64()).sum();
    assert_eq!(errors, 20.0, "{run:#}");
    assert!(run["invalid"].to_string().contains("no response was OK"), "{run:#}");

    let silent = FaultyServer::start(|_, _| true);
    let run = measured(&["-n", "4", "-c", "2", "--timeout", "300ms", &silent.address.to_string()]);
    assert_eq!(number(&run, "/errors/timeout"), 4.0, "{run:#}");
    assert_eq!(number(&run, "/connections/never_answered"), 2.0, "{run:#}");
}

/// A server that counts requests, and announces the close of each connection after `most` responses.
fn counting(most: u64) -> (FaultyServer, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let peer = FaultyServer::start(move |stream, _| {
        let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
        if number.is_multiple_of(most) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return false;
        }
        ok(stream, "x")
    });
    (peer, count)
}

fn a_number_of_requests_is_made_exactly() {
    for words in [
        &["-c", "7", "-t", "3"][..],
        &["-c", "4", "--pipeline", "8"],
        &["-c", "4", "--requests-per-connection", "1"],
        &["-c", "4", "--requests-per-connection", "1", "--join-ack"],
        &["-c", "4", "--requests-per-connection", "3", "--http", "1.0", "--keep-alive"],
        &["-c", "4", "--http", "1.0"],
        &["-c", "4", "--rate", "5000"],
        &["-c", "4", "--rate", "5000", "--arrivals", "poisson", "-t", "2"],
    ] {
        let (peer, count) = counting(u64::MAX);
        let address = peer.address.to_string();
        let run = measured(&[&["-n", "1001", &address], words].concat());
        assert_eq!(number(&run, "/answers"), 1001.0, "{words:?}: {run:#}");
        assert_eq!(count.load(Ordering::Relaxed), 1001, "{words:?}");
        assert_eq!(run["errors"], serde_json::json!({}), "{words:?}");
    }
    // An announced close is no error, and later pipelined requests are repeated.
    let (peer, _) = counting(10);
    let run = measured(&["-n", "200", "-c", "1", "--pipeline", "4", &peer.address.to_string()]);
    assert_eq!((number(&run, "/answers"), &run["errors"]), (200.0, &serde_json::json!({})), "{run:#}");
}

fn a_known_server_agrees_with_littles_law() {
    let peer = FaultyServer::start(|stream, _| {
        // The latency of a response.
        thread::sleep(Duration::from_millis(10));
        ok(stream, "hello")
    });
    let run = measured(&["-c", "20", "-d", "1s", &peer.address.to_string()]);
    let (rate, latency) = (number(&run, "/rate"), number(&run, "/latency_us/mean") / 1e6);
    // Fewer than twenty requests are in flight while the generator waits for a processor. Both numbers show this.
    let counted = number(&run, "/little/counted");
    assert!((rate * latency / counted - 1.0).abs() <= 0.05, "{rate} x {latency}, {counted} counted");
    assert!(counted <= 20.1, "{run:#}");
    assert!(latency >= 0.01, "no answer comes sooner than the server sends it: {latency}");
    assert!(rate <= 2_000.0, "twenty at once, a hundred a second each: {rate}");
    assert_eq!(run["invalid"], serde_json::json!([]));
}

fn every_url_form_reaches_the_server() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let answer = move |stream: &mut std::net::TcpStream, head: &str| {
        heard.lock().expect("no holder panics").push(head.to_owned());
        ok(stream, "")
    };
    let (four, six) = (FaultyServer::start(answer.clone()), FaultyServer::listen("[::1]:0", answer));
    let (port, other) = (four.address.port(), six.address.port());
    for (url, line, host) in [
        (format!("127.0.0.1:{port}"), "GET / ", format!("127.0.0.1:{port}")),
        (format!("http://127.0.0.1:{port}?a=b"), "GET /?a=b ", format!("127.0.0.1:{port}")),
        (format!("HTTP://localhost:{port}/x#y"), "GET /x ", format!("localhost:{port}")),
        (format!("http://[::1]:{other}/a"), "GET /a ", format!("[::1]:{other}")),
    ] {
        expect_code(0, &["-n", "1", "-c", "1", &url], &["1 responses OK"]);
        let head = seen.lock().expect("no holder panics").pop().expect("a request came");
        assert!(head.starts_with(line) && head.contains(&format!("Host: {host}\r\n")), "{url}: {head}");
    }
    let folder = TempFolder::new("bench");
    let socket = folder.at("socket");
    let listen = format!("unix:{}", socket.display());
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).flag("--listen", &listen).start();
    expect_code(
        0,
        &["-n", "5", &format!("{listen}:/1k.html"), "--expect-length", "1024"],
        &["5 responses OK"],
    );
    drop(server);
}

fn urls_are_requested_in_order_or_at_random() {
    let folder = TempFolder::new("bench-urls");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let peer = FaultyServer::start(move |stream, head| {
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        heard.lock().expect("no holder panics").push(target);
        ok(stream, "")
    });
    let lines: String = (0..4).map(|number| format!("http://{}/{number}\n", peer.address)).collect();
    let list = folder.write("urls", format!("# four\n\n{lines}")).display().to_string();
    let order = |words: &[&str]| {
        expect_code(0, &[&["-n", "40", "-c", "1", "--urls", &list], words].concat(), &["40 responses OK"]);
        std::mem::take(&mut *seen.lock().expect("no holder panics"))
    };
    let expected: Vec<String> = (0..40).map(|number| format!("/{}", number % 4)).collect();
    assert_eq!(order(&[]), expected);
    assert_eq!(order(&["--pipeline", "3"]), expected);
    let random = order(&["--random", "--seed", "5"]);
    assert_ne!(random, expected);
    assert_eq!(order(&["--random", "--seed", "5"]), random, "a seed repeats itself");
    assert_ne!(order(&["--random", "--seed", "6"]), random);
}

/// [`on_time`] for runs without a schedule, in which the generator does not measure its delay: this process measures
/// its own delay.
#[track_caller]
fn steady(most: Duration, run: impl Fn() -> Value) -> Value {
    const TICK: Duration = Duration::from_millis(5);
    let watched = || {
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let late = scope.spawn(|| {
                let mut late = Duration::ZERO;
                while !ended.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    // A late end of this pause is a pause of the machine.
                    thread::sleep(TICK);
                    late = late.max(begin.elapsed() - TICK);
                }
                late
            });
            let end = EndOnDrop(&ended);
            let run = run();
            drop(end);
            (run, late.join().expect("it does not panic"))
        })
    };
    first_fit(watched, |(_, late)| *late < most).0
}

fn scheduled_connections_live_for_their_time() {
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    let url = format!("{}/1k.html", server.address);
    let words = ["-d", "2s", "--connection-rate", "200", "--hold", "1s", &url];
    let run = steady(Duration::from_millis(40), || measured(&words));
    let made = number(&run, "/connections/made");
    assert!((390.0..=400.0).contains(&made), "{run:#}");
    let most = number(&run, "/connections/most_at_once");
    assert!((150.0..=260.0).contains(&most), "200 a second that live for one: {most}");
    // On a busy machine the last requests are unfinished.
    assert_eq!(number(&run, "/answers") + number(&run, "/unfinished"), made, "{run:#}");
    assert_eq!(run["errors"], serde_json::json!({}));
}

fn idle_and_slow_connections_are_counted_apart() {
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    let url = format!("{}/1k.html", server.address);
    let words = ["--idle", "50", "--slow-readers", "3", "--slow-writers", "3", "--slow-rate", "4000"];
    let run = measured(&[&["-d", "2s", "-c", "4", &url], &words[..]].concat());
    assert_eq!(number(&run, "/connections/idle_held"), 50.0, "{run:#}");
    assert_eq!(number(&run, "/connections/most_at_once"), 60.0, "{run:#}");
    let slow = number(&run, "/connections/slow_answers");
    assert!((1.0..200.0).contains(&slow), "4,000 bytes a second are a few answers of a kilobyte: {slow}");
    assert!(number(&run, "/answers") > slow, "those who are not slow are not held up: {run:#}");
    assert_eq!(run["errors"], serde_json::json!({}));
}

fn processes_share_a_plan() {
    let (peer, count) = counting(u64::MAX);
    let address = peer.address.to_string();
    let words = ["-n", "500", "-c", "6", "--processes", "3", "--source", "127.0.0.2-127.0.0.4", &address];
    let run = measured(&words);
    assert_eq!((number(&run, "/answers"), number(&run, "/connections/made")), (500.0, 6.0), "{run:#}");
    assert_eq!(count.load(Ordering::Relaxed), 500);
}
