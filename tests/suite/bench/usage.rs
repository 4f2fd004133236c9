//! The command line of `tenfold bench`: refusals in one line, exit codes, an interrupt, reports as input.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tenfold_tests::binary;
use tenfold_tests::process::Process;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};

use super::peer::{FaultyServer, ok};
use super::ring::before;
use super::{bench, expect_code, measured, number, said};

pub(super) fn wrong_usage_is_one_line_and_exit_code_2() {
    for (words, why) in [
        (&["http://"][..], "no host"),
        (&["ftp://localhost"], "http and https"),
        (&[], "URL"),
        (&["localhost", "-c", "0"], "connection"),
        (&["localhost", "-c", "many"], "--connections"),
        (&["localhost", "-d", "soon"], "--duration"),
        (&["localhost", "--rate", "-5"], "--rate"),
        (&["localhost", "--assert", "p98<1ms"], "p99"),
        (&["localhost", "--hold", "1s"], "--connection-rate"),
        (&["localhost", "-c", "3", "-t", "4"], "shared"),
        (&["localhost", "-H", "nonsense"], "--header"),
        (&["localhost", "--source", "here"], "--source"),
        (&["localhost", "-c", "5000000"], "ulimit"),
        // Contradictions.
        (&["localhost", "--http", "1.0", "--requests-per-connection", "5"], "--keep-alive"),
        (&["localhost", "-H", "Connection: close", "--requests-per-connection", "5"], "one request"),
        (&["localhost", "--completion", "end", "--requests-per-connection", "5"], "allows one request"),
        (&["localhost", "-m", "HEAD", "--expect-length", "5"], "HEAD"),
        (&["localhost", "-H", "Content-Length: 5"], "0 bytes"),
        (&["localhost", "-d", "1s", "--warm-up", "2s"], "leaves nothing"),
        (&["localhost", "-c", "0", "--idle", "1", "--hold", "1s", "--connection-rate", "5"], "--connections"),
        // Settings without effect.
        (&["localhost", "--keep-alive"], "--http 1.0"),
        (&["localhost", "--arrivals", "constant"], "--rate or --connection-rate"),
        (&["localhost", "--seed", "5"], "--random or --arrivals"),
        (&["localhost", "--random"], "several URLs"),
        (&["localhost", "--slow-rate", "1k"], "--slow-readers or --slow-writers"),
        (&["unix:/tmp/s", "--join-ack"], "TCP"),
        (&["unix:/tmp/s", "--source", "127.0.0.2"], "TCP"),
        (&["localhost:1", "localhost:2", "-c", "1"], "2 servers"),
        (&["localhost", "-c", "0", "--idle", "5", "--expect-status", "200"], "only idle"),
        (&["localhost", "--insecure"], "https"),
        (&["localhost", "--tls-resume", "off"], "https"),
        (&["https://localhost", "--insecure", "--ca", "a.pem"], "--ca"),
        (&["https://localhost", "--sni", "not a name"], "--sni"),
        (&["https://localhost", "--io", "uring"], "--io uring: io_uring here does not support https"),
        // Huge numbers.
        (&["localhost", "-t", "100000", "--processes", "100000"], "--threads"),
        (&["localhost", "-t", "1000", "--processes", "1000", "-c", "9"], "shared"),
        (&["localhost", "--hold", "1h", "--connection-rate", "1e9"], "ulimit"),
        (&["localhost", "--slow-readers", "1", "--slow-rate", "9"], "--slow-rate"),
    ] {
        let output = expect_code(2, words, &[why]);
        assert_eq!(said(&output).trim_end().lines().count(), 1, "{words:?}: {}", said(&output));
    }
    expect_code(2, &["localhost", "--no-such-flag"], &["--no-such-flag"]);
    expect_code(1, &["no-such-host.invalid", "-n", "1"], &["no-such-host.invalid"]);
    expect_code(0, &["--help"], &["--rate", "Exit codes"]);
}

pub(super) fn unusable_files_are_reported_before_the_run() {
    let folder = TempFolder::new("bench-files");
    let asked = Arc::new(AtomicU64::new(0));
    let counted = asked.clone();
    let peer = FaultyServer::start(move |stream, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        ok(stream, "hello")
    });
    let address = peer.address.to_string();
    let written = |name: &str, text: &str| folder.write(name, text).display().to_string();
    let (broken, other) = (written("broken.json", "{\"urls\": [}"), written("other.json", "{\"a\": 1}"));
    let none = r#"{"urls": [], "plan": "", "runs": [], "environment":
        {"version": "", "kernel": "", "processor": "", "processors": 1, "load": ""}}"#;
    let (none, nowhere) = (written("none.json", none), folder.at("no-folder/file").display().to_string());
    let here = folder.at("").display().to_string();
    for words in [
        &[&address, "--body", &nowhere][..],
        &[&address, "--body", &here],
        &["--urls", &nowhere],
        &[&address, "--hdr", &here],
        &[&address, "--hdr", &nowhere],
        &[&address, "--report", &nowhere],
        &["compare", &broken, &broken],
        &["compare", &other, &other],
        &["compare", &none, &none],
        &["compare", &here, &here],
    ] {
        let output = expect_code(1, words, &[]);
        assert_eq!(said(&output).trim_end().lines().count(), 1, "{words:?}: {}", said(&output));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0, "a run was made whose result could not be written");
}

pub(super) fn assertions_and_validity_are_exit_codes() {
    let peer = FaultyServer::start(|stream, _| ok(stream, "hello"));
    let address = peer.address.to_string();
    let with = |claim: &'static str| ["-n", "200", "-c", "2", &address, "--assert", claim].map(str::to_owned);
    let code = |claim, code, says: &[&str]| {
        let words = with(claim);
        expect_code(code, &words.iter().map(String::as_str).collect::<Vec<_>>(), says);
    };
    code("errors==0", 0, &[]);
    code("p50<1h", 2, &["not a time"]);
    code("p50<10s", 0, &[]);
    code("p50<1ns", 3, &["assertion failed: p50<1ns: p50 is "]);
    code("p99.9<10s", 4, &["cannot evaluate p99.9<10s: too few samples for p99.9 (200; 10,000 needed)"]);
    // A million requests per second exceed the generator or the server.
    let limited = ["-d", "1s", "-c", "500", "--rate", "1000000", &address];
    let output = bench(&limited);
    assert!([0, 4].contains(&output.status.code().unwrap_or(-1)), "{}", said(&output));
    let doubts = ["the generator was the limit", "the server did not keep up", "the generator was late"];
    assert!(doubts.iter().any(|doubt| said(&output).contains(doubt)), "{}", said(&output));
}

pub(super) fn a_run_ends_by_time_or_by_requests_whichever_comes_first() {
    let peer = FaultyServer::start(|stream, _| ok(stream, "hello"));
    let address = peer.address.to_string();
    for more in [&["-t", "2"][..], &["--rate", "1000"]] {
        let begin = Instant::now();
        let run = measured(&[&["-n", "50", "-d", "20", &address], more].concat());
        assert_eq!(number(&run, "/answers"), 50.0, "{run:#}");
        assert!(begin.elapsed() < Duration::from_secs(10), "-n 50 took {:?}", begin.elapsed());
        let run = measured(&[&["-n", "1000000000", "-d", "1", &address], more].concat());
        let elapsed = number(&run, "/elapsed");
        assert!((0.9..10.0).contains(&elapsed) && number(&run, "/answers") > 50.0, "{run:#}");
    }
}

pub(super) fn an_endless_response_does_not_outlast_the_run() {
    let body = "1\r\nx\r\n".repeat(1 << 18);
    let peer = FaultyServer::start(move |stream, _| {
        let begun = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_ok();
        while begun && stream.write_all(body.as_bytes()).is_ok() {}
        false
    });
    let address = peer.address.to_string();
    // Connections for one request are not watched before their first receive.
    for more in [&[][..], &["--requests-per-connection", "1"]] {
        let run = measured(&[&["-c", "2", "-d", "1", &address], more].concat());
        assert!((0.9..10.0).contains(&number(&run, "/elapsed")), "{run:#}");
        let bytes = number(&run, "/bytes");
        assert!(bytes > 1e6 && number(&run, "/answers") == 0.0, "{bytes} bytes: {run:#}");
        let run = measured(&[&["-c", "2", "-n", "2", "--timeout", "500ms", &address], more].concat());
        assert_eq!(number(&run, "/errors/timeout"), 2.0, "{run:#}");
    }
}

/// The server answers each other request before it reads the body, which then fills the buffers before the next one.
pub(super) fn a_request_without_room_is_sent_later() {
    const BODY: usize = 2 << 20;
    let folder = TempFolder::new("bench-room");
    let body = folder.write("body", "x".repeat(BODY)).display().to_string();
    let peer = FaultyServer::accept("127.0.0.1:0", |stream| {
        let mut reader = BufReader::new(stream);
        let (mut head, mut early) = (String::new(), true);
        while reader.read_line(&mut head).is_ok_and(|count| count > 0) {
            if head.ends_with("\r\n\r\n") {
                let answered = !early || ok(reader.get_mut(), "early");
                // Meanwhile the body fills the buffers.
                thread::sleep(Duration::from_millis(50));
                let received = reader.read_exact(&mut vec![0; BODY]).is_ok();
                if !answered || !received || !early && !ok(reader.get_mut(), "late") {
                    return;
                }
                (head, early) = (String::new(), !early);
            }
        }
    });
    let address = peer.address.to_string();
    let words = ["-n", "6", "-c", "1", "--timeout", "5s", "--method", "POST", "--body", &body, &address];
    let run = measured(&words);
    assert_eq!((number(&run, "/answers"), &run["errors"]), (6.0, &json!({})), "{run:#}");
}

pub(super) fn a_short_run_names_its_few_samples() {
    let peer = FaultyServer::start(|stream, _| ok(stream, "hello"));
    let (folder, address) = (TempFolder::new("bench-short"), peer.address.to_string());
    let output = expect_code(0, &["-n", "40", &address], &["no interval: too few samples (40 responses"]);
    assert!(!said(&output).contains('±'), "{}", said(&output));
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<_> = names.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["rate", "p50", "p99", "p99.9", "max", "errors", "starved", "verdict"]);
    let short = folder.write("short.json", bench(&["--json", "-n", "1", "-c", "1", &address]).stdout);
    let short = short.display().to_string();
    let output = expect_code(0, &["compare", &short, &short], &[]);
    assert_eq!(said(&output).matches("not compared: ").count(), 4, "{}", said(&output));
    let why = "not compared: too few runs have it (0 in A, 0 in B; 2 needed)";
    assert!(said(&output).contains(why), "{}", said(&output));
}

pub(super) fn compare_names_the_settings_that_differ() {
    let peer = FaultyServer::start(|stream, head| ok(stream, "hello") && !head.contains("close"));
    let (folder, address) = (TempFolder::new("bench-differs"), peer.address.to_string());
    let report = |name: &str, words: &[&str]| {
        let output = bench(&[&["--json", "-n", "40", "-c", "2", &address], words].concat());
        folder.write(name, output.stdout).display().to_string()
    };
    let (kept, closed) = (report("kept.json", &[]), report("closed.json", &["-H", "Connection: close"]));
    let output =
        expect_code(0, &["compare", &kept, &closed], &["--header: none in A, Connection: close in B"]);
    let text = said(&output);
    let label =
        |name: &str| text.lines().find(|line| line.starts_with(name)).map(|line| line[3..].to_owned());
    assert_ne!(label("A "), label("B "), "{text}");
    let output = expect_code(0, &["compare", &kept, &kept], &[]);
    assert!(!said(&output).contains("differs"), "{}", said(&output));
    let named = report("named.json", &["--label", "the named one"]);
    let output = expect_code(0, &["compare", &kept, &closed, &named], &["relative", "Connection: close in "]);
    let text = said(&output);
    let ranks: Vec<_> = text.lines().filter(|line| line.contains("/s ")).collect();
    assert!(ranks.len() == 3 && ranks[0].starts_with(" 1  ") && ranks[0].contains(" 1.000"), "{text}");
    assert_eq!(ranks.iter().filter(|line| line.contains("  the named one  ")).count(), 1, "{text}");
    expect_code(2, &["compare", &kept], &["REPORT"]);
}

pub(super) fn http_1_0_is_persistent_only_if_asked() {
    let fields = Arc::new(Mutex::new(Vec::new()));
    let heard = fields.clone();
    let peer = FaultyServer::start(move |stream, head| {
        let field = head.lines().find(|line| line.to_ascii_lowercase().starts_with("connection:"));
        heard.lock().expect("no holder panics").push(field.map(str::to_owned));
        let keep_alive = if field.is_some() { "Connection: keep-alive\r\n" } else { "" };
        let head = format!("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n{keep_alive}\r\nx");
        stream.write_all(head.as_bytes()).is_ok() && field.is_some()
    });
    let address = peer.address.to_string();
    let run = measured(&["--http", "1.0", "-n", "6", "-c", "2", &address]);
    assert_eq!((number(&run, "/answers"), number(&run, "/connections/made")), (6.0, 6.0), "{run:#}");
    assert_eq!(std::mem::take(&mut *fields.lock().expect("no holder panics")), vec![None; 6]);
    let run = measured(&["--http", "1.0", "--keep-alive", "-n", "6", "-c", "2", &address]);
    assert_eq!((number(&run, "/answers"), number(&run, "/connections/made")), (6.0, 2.0), "{run:#}");
    let kept = Some("Connection: keep-alive".to_owned());
    assert_eq!(std::mem::take(&mut *fields.lock().expect("no holder panics")), vec![kept; 6]);
}

pub(super) fn an_interrupt_prints_the_results_so_far() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let peer = FaultyServer::start(move |stream, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        ok(stream, "hello")
    });
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    for processes in ["1", "2"] {
        asked.store(0, Ordering::Relaxed);
        let mut command = Command::new(&server.path);
        command.arg("bench").args(before());
        command.args(["-d", "60s", "-c", "4", "--processes", processes]);
        command.arg(peer.address.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it was built");
        becomes_true(SOON, "it is under way", || asked.load(Ordering::Relaxed) > 100);
        let begin = Instant::now();
        Process(child.id()).signal(Signal::INT);
        let output = child.wait_with_output().expect("our own child");
        assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?} to end", begin.elapsed());
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        let text = said(&output);
        assert!(text.contains("interrupted") && text.contains("responses OK"), "{text}");
    }
}

pub(super) fn reports_are_parsed_and_compared() {
    let folder = TempFolder::new("bench-reports");
    let measure = |name: &str, pause: u64| {
        let peer = FaultyServer::start(move |stream, _| {
            // The latency of a response.
            thread::sleep(Duration::from_millis(pause));
            ok(stream, "hello")
        });
        let words = ["--json", "-d", "1s", "-c", "4", "--repeat", "3", &peer.address.to_string()];
        let output = bench(&words);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        folder.write(name, &output.stdout).display().to_string()
    };
    let (slow, fast) = (measure("slow.json", 50), measure("fast.json", 2));
    let output = expect_code(0, &["compare", &slow, &fast], &["the logarithms of runs", "rate"]);
    let text = said(&output);
    let rate = text.lines().find(|line| line.starts_with("rate")).expect("rates are compared");
    assert!(rate.contains("B is better"), "{text}");
    expect_code(1, &["compare", &slow, "/nonexistent.json"], &["/nonexistent.json"]);

    let peer = FaultyServer::start(|stream, _| ok(stream, "hello"));
    let (address, hdr) = (peer.address.to_string(), folder.at("out.hgrm"));
    let hdr_name = hdr.display().to_string();
    let output = expect_code(0, &["--csv", "--repeat", "2", "-n", "100", &address, "--hdr", &hdr_name], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!((widths.len(), widths[0] == widths[1]), (3, true), "{text}");
    let page = folder.at("report.html");
    expect_code(0, &["--repeat", "2", "-n", "2000", &address, "--report", &page.display().to_string()], &[]);
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("<td>200</td><td class=\"number\">2,000</td>") && page.contains("<svg"), "{page}");
    assert!(page.contains(&format!("<h1>http://{address}/</h1>")) && page.ends_with("</html>\n"), "{page}");
    let curve = std::fs::read_to_string(hdr).expect("it was written");
    assert!(curve.contains("Total count    =          100]"), "{curve}");
}
