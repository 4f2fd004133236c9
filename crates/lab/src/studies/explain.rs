//! `lab explain`: the system calls of one request, with the source lines that make them.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenfold_engine::Engine;
use tenfold_sys::lifecycle;

use super::{call_sites, words};
use crate::experiment::subject::Workload;
use crate::trial::bench::{OwnServer, Workbench, interrupted};
use crate::trial::server::RunningServer;
use crate::trial::site::TrialSite;
use crate::trial::tracer::{self, TraceDetail};

/// The parts of a trace.
const PARTS: [&str; 3] =
    ["The first request, on a new connection", "The second, on the open connection", "The client closes"];
/// The size of the requested file.
const BYTES: u64 = 1067;
/// Time for the calls that follow a response.
const PAUSE: Duration = Duration::from_millis(250);
/// The age of a file above which the file cache trusts it for a second.
const AGE: Duration = Duration::from_millis(2_100);
/// The traced connections. Once a second, a request compares the cached file with the disk; in one of the rounds, no
/// request does.
const ROUNDS: usize = 4;
/// Time for a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// The traced calls of one connection with two requests.
#[derive(Debug)]
pub struct Explanation {
    engine: Engine,
    parts: [Vec<TracedCall>; 3],
}

#[derive(Clone, Debug, PartialEq)]
struct TracedCall {
    name: String,
    arguments: String,
    result: String,
    /// Consecutive repetitions of the call, or of its iteration.
    times: usize,
}

impl Explanation {
    /// Starts a server with this engine, and traces two requests and the end of their connection. Returns `None` if a
    /// signal interrupts it.
    pub fn trace(engine: Engine, own: &OwnServer) -> Result<Option<Explanation>, String> {
        lifecycle::install_worker_signals().map_err(|error| format!("cannot catch signals: {error}"))?;
        let traced = Explanation::of_server(engine, own);
        // A signal also ends the server and the tracer, so their failure does not count.
        if interrupted() { Ok(None) } else { traced.map(Some) }
    }

    fn of_server(engine: Engine, own: &OwnServer) -> Result<Explanation, String> {
        let site = TrialSite::new()?;
        let (file, kept) = (site.file(BYTES)?, site.folder().to_owned());
        let processors = Vec::new();
        let bench = Workbench {
            own: own.clone(),
            site,
            served: None,
            kept,
            address: std::net::Ipv4Addr::LOCALHOST,
            server_processors: processors.clone(),
            client_processors: processors,
            until: None,
        };
        let cell = words::cell(&engine.to_string(), &Workload::default())?;
        let server = RunningServer::start(&bench, "explain", &cell, Some(TraceDetail::Arguments))?;
        // Caches the file.
        visit(server.address, &file.path, &mut Vec::new())?;
        sleep(AGE);
        // Finds it unchanged.
        visit(server.address, &file.path, &mut Vec::new())?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let mut times = Vec::new();
            visit(server.address, &file.path, &mut times)?;
            rounds.push(times);
        }
        let (supervisor, text) = (server.process(), server.end_trace()?);
        let rounds = rounds.iter().map(|times| parts(&text, supervisor, times));
        Ok(Explanation { engine, parts: fewest_lookups(rounds) })
    }

    /// Numbered rows for the page of this model in the book.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut number = 0;
        for (title, calls) in PARTS.iter().zip(&self.parts) {
            let _ = writeln!(text, "{title}:\n\n| | call | purpose | function |\n| --- | --- | --- | --- |");
            for call in calls {
                number += 1;
                let site = call_sites::find(self.engine, &call.name, &call.arguments);
                let _ = writeln!(text, "| {number} | {} |", call_sites::row(&call.name, site));
            }
            text.push('\n');
        }
        text
    }
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model = self.engine.model();
        writeln!(f, "{}: {}\n{}", model.name, model.summary, model.file)?;
        let mut number = 0;
        for (title, calls) in PARTS.iter().zip(&self.parts) {
            writeln!(f, "\n{title}:")?;
            for call in calls {
                number += 1;
                let TracedCall { name, arguments, result, times } = call;
                let shown: String = arguments.chars().take(100).collect();
                let cut = if shown.len() < arguments.len() { "..." } else { "" };
                let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
                writeln!(f, "{number:>3}  {name}({shown}{cut}) = {result}{times}")?;
                let site = call_sites::find(self.engine, name, arguments);
                match site.and_then(|site| Some((site.purpose, site.line()?))) {
                    Some((purpose, line)) => {
                        writeln!(f, "     {purpose}")?;
                        let (path, at) = (line.path, line.number);
                        writeln!(f, "     {path}:{at}, fn {}: {}", line.function, line.text)?;
                    }
                    None => writeln!(f, "     {}", call_sites::OTHER)?,
                }
            }
        }
        Ok(())
    }
}

/// Makes two requests on one connection. Appends the start times of the requests and the close, and the time of the
/// end.
fn visit(address: SocketAddr, path: &str, times: &mut Vec<Duration>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot request {path} from {address}: {error}");
    let mut now = || times.push(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    now();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    for _ in 0..2 {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).map_err(failed)?;
        let mut bytes = Vec::new();
        let body = |bytes: &[u8]| bytes.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4);
        while body(&bytes).is_none_or(|begin| bytes.len() < begin + BYTES as usize) {
            let mut part = [0; 4096];
            match stream.read(&mut part) {
                Ok(0) => {
                    return Err(format!("{address} closed the connection before the end of the response"));
                }
                Ok(count) => bytes.extend(&part[..count]),
                // The kernel can interrupt this receive when it frees the ring of the probe for uring.
                Err(error) if error.kind() == ErrorKind::Interrupted && !interrupted() => {}
                Err(error) => return Err(failed(error)),
            }
        }
        sleep(PAUSE);
        now();
    }
    stream.shutdown(Shutdown::Write).map_err(failed)?;
    // The end of the input: the server closed the connection, or its process ended.
    stream.read_to_end(&mut Vec::new()).map_err(failed)?;
    sleep(PAUSE);
    now();
    Ok(())
}

/// The round in which the requests caused the fewest lookups of a file.
fn fewest_lookups(rounds: impl Iterator<Item = [Vec<TracedCall>; 3]>) -> [Vec<TracedCall>; 3] {
    let lookups = |parts: &[Vec<TracedCall>; 3]| {
        parts.iter().flatten().filter(|call| call.name.starts_with("openat")).count()
    };
    rounds.min_by_key(lookups).unwrap_or_default()
}

/// The calls that returned in each part, except the supervisor's.
fn parts(text: &str, supervisor: u32, times: &[Duration]) -> [Vec<TracedCall>; 3] {
    let mut parts = [const { Vec::new() }; 3];
    for call in tracer::completed(text) {
        let part = times.iter().rposition(|begin| *begin <= call.returned);
        // With debug assertions, the standard library checks each descriptor before its close.
        let checks = call.text.starts_with("fcntl(") && call.text.contains("F_GETFD");
        if let Some(part) = part.and_then(|part| parts.get_mut(part))
            && let Some(shown) = parsed(&call.text)
            && !checks
            && call.task != supervisor.to_string()
        {
            push(part, shown);
        }
    }
    parts
}

/// A line such as `close(5) = 0`.
fn parsed(line: &str) -> Option<TracedCall> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?.to_owned();
    let is_name = name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    is_name.then(|| TracedCall { name: name.to_owned(), arguments, result: result.to_owned(), times: 1 })
}

/// Appends a call. A repeated iteration without work is counted instead.
fn push(calls: &mut Vec<TracedCall>, call: TracedCall) {
    let same = |a: &TracedCall, b: &TracedCall| a.name == b.name && a.result == b.result;
    calls.push(call);
    for length in 1..=3 {
        let Some(begin) = calls.len().checked_sub(2 * length) else { return };
        let (before, last) = calls[begin..].split_at(length);
        let in_vain = last.iter().any(|call| call.result.starts_with("-1"));
        if in_vain && before.iter().zip(last).all(|(a, b)| same(a, b)) {
            calls.truncate(begin + length);
            calls[begin..].iter_mut().for_each(|call| call.times += 1);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_without_lookups_is_shown() {
        let round = |names: &[&str]| {
            let call = |name: &&str| parsed(&format!("{name}(4) = 0")).expect("a call");
            [Vec::new(), names.iter().map(call).collect(), Vec::new()]
        };
        let (cached, checked) = (round(&["recvfrom", "write"]), round(&["recvfrom", "openat2", "write"]));
        assert_eq!(fewest_lookups([checked.clone(), cached.clone(), checked].into_iter()), cached);
    }

    #[test]
    fn a_trace_is_divided_joined_and_shortened() {
        let text = "7 1.0 accept4(3,  <unfinished ...>\n9 1.1 ppoll([], 2) = 1\n7 1.5 <... accept4 resumed>NULL) = 4 <0.5>\n\
            7 1.6 recvfrom(4, 0x1) = -1 EAGAIN <0.5>\n7 2.6 clock_nanosleep(1) = 0\n7 2.7 recvfrom(4, 0x1) = -1 EAGAIN\n\
            7 2.8 clock_nanosleep(1) = 0\n7 3.1 fcntl(4, F_GETFD) = 1\n7 3.2 close(4)       = 0\n7 3.3 exit(0) = ?\n\
            7 3.4 +++ exited with 0 +++\n8 3.6 close(9) = 0";
        let times = [1.2, 2.0, 3.0, 3.5].map(Duration::from_secs_f64);
        let parts = parts(text, 9, &times);
        let names =
            parts.map(|part| part.iter().map(|c| format!("{}*{}", c.name, c.times)).collect::<Vec<_>>());
        assert_eq!(names[0], ["accept4*1"]);
        assert_eq!(names[1], ["recvfrom*2", "clock_nanosleep*2"]);
        assert_eq!(names[2], ["close*1", "exit*1"]);
    }
}
