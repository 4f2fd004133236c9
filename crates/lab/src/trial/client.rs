//! The load: `tenfold bench` as a process on the processors of clients.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_load::{RunSummary, output};

use crate::experiment::subject::{EndOfResponse, Workload};
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::server::spawn_pinned;
use crate::trial::site::SiteFile;

/// The time after its duration at which a load is killed.
const GRACE: Duration = Duration::from_secs(20);

/// The requested resource, and the expected response.
pub(crate) struct LoadTarget<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) file: Option<&'a SiteFile>,
    /// A file of URLs instead of the path. Each request takes a random URL, and those of a page take the next.
    pub(crate) urls: Option<&'a Path>,
    /// The seed of random choices.
    pub(crate) seed: u64,
}

/// The arguments of `tenfold`.
pub(crate) fn words(load: &Workload, target: &LoadTarget<'_>, milliseconds: u64) -> Vec<String> {
    let mut words: Vec<String> = ["bench", "--quiet", "--json", "--timeout", "10s"].map(str::to_owned).into();
    let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    match load.page {
        Some(files) => {
            add("requests", files.to_string());
            add("repeat", load.pages().to_string());
        }
        None => add("duration", format!("{milliseconds}ms")),
    }
    if load.http2 {
        add("http", "2".to_owned());
        add("streams", load.page.unwrap_or(1).to_string());
    }
    match (load.connection_rate, load.hold_seconds) {
        (Some(rate), hold) => {
            add("connection-rate", rate.to_string());
            add("hold", format!("{}s", hold.unwrap_or(1)));
        }
        (None, _) => add("connections", load.active().to_string()),
    }
    add("expect-status", target.status.to_string());
    if let Some(file) = target.file {
        add("expect-length", file.bytes.to_string());
    }
    if let Some(file) = target.file.filter(|_| load.hash) {
        add("expect-hash", file.hash.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    if let Some(threads) = load.threads {
        add("threads", threads.to_string());
    }
    if let Some(rate) = load.rate {
        add("rate", rate.to_string());
    }
    if let Some(depth) = load.pipeline {
        add("pipeline", depth.to_string());
    }
    if load.completion == EndOfResponse::End {
        add("completion", "end".to_owned());
    } else if load.close {
        add("requests-per-connection", "1".to_owned());
    }
    load.headers.iter().for_each(|field| add("header", field.clone()));
    if let Some(urls) = target.urls {
        add("urls", urls.display().to_string());
        if load.page.is_none() {
            add("seed", target.seed.to_string());
            words.push("--random".to_owned());
        }
        return words;
    }
    let path = if load.bare_url { "" } else { target.path };
    words.push(format!("http://{}{path}", target.address));
    words
}

/// Runs the load to its end. A load of pages is the sum of its runs, with the latencies of the first.
pub(crate) fn run(bench: &Workbench, words: &[String], milliseconds: u64) -> Result<RunSummary, String> {
    let mut command = Command::new(&bench.own.program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn_pinned(command, &bench.client_processors)
        .map_err(|error| format!("cannot start the load generator: {error}"))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let ended = wait(&mut child, bench.patience(Duration::from_millis(milliseconds) + GRACE));
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    ended?;
    let report = output::read_json(&out).map_err(|_| {
        let said = err.lines().last().unwrap_or("it said nothing");
        format!("the load generator failed: {said}")
    })?;
    report.runs.into_iter().reduce(sum).ok_or_else(|| "the load generator made no run".to_owned())
}

/// Adds a run to the sum of the runs before it.
pub(super) fn sum(mut all: RunSummary, next: RunSummary) -> RunSummary {
    all.elapsed += next.elapsed;
    all.measured += next.measured;
    all.answers += next.answers;
    all.rate = all.answers as f64 / all.measured;
    all.bytes += next.bytes;
    next.errors.into_iter().for_each(|(kind, count)| *all.errors.entry(kind).or_default() += count);
    all.connections.never_answered += next.connections.never_answered;
    all.invalid.extend(next.invalid);
    all
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_string(&mut text);
        }
        text
    })
}

fn wait(child: &mut Child, most: Duration) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Err(error) => return Err(format!("cannot wait for the load generator: {error}")),
            Ok(None) => {}
        }
        let late = begin.elapsed() > most;
        if late || interrupted() {
            let _ = child.kill();
            let _ = child.wait();
            let why = if late { "the load generator did not end in time" } else { "interrupted" };
            return Err(why.to_owned());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_command() {
        let address = "127.0.0.1:80".parse().expect("an address");
        let load = Workload { connections: Some(16), close: true, ..Workload::default() };
        let file = SiteFile { path: "/x".to_owned(), bytes: 5, hash: [0xab; 32] };
        let target = LoadTarget { address, path: "/x", status: 200, file: Some(&file), urls: None, seed: 1 };
        let words = words(&load, &target, 350);
        let text = words.join(" ");
        assert!(
            text.starts_with("bench --quiet --json --timeout 10s --duration 350ms --connections 16"),
            "{text}"
        );
        assert!(
            text.ends_with("--expect-length 5 --requests-per-connection 1 http://127.0.0.1:80/x"),
            "{text}"
        );
        let load = Workload { bare_url: true, connection_rate: Some(5), hash: true, ..Workload::default() };
        let text = super::words(&load, &target, 350).join(" ");
        assert!(
            text.contains("--connection-rate 5 --hold 1s") && text.contains("--expect-hash abab"),
            "{text}"
        );
        assert!(text.ends_with(" http://127.0.0.1:80"), "{text}");
        let urls = LoadTarget { file: None, urls: Some(Path::new("/x.urls")), ..target };
        let text = super::words(&Workload::default(), &urls, 350).join(" ");
        assert!(text.ends_with("--expect-status 200 --urls /x.urls --seed 1 --random"), "{text}");
        let load = Workload {
            page: Some(60),
            pages: Some(5),
            http2: true,
            connections: Some(1),
            ..Workload::default()
        };
        let text = super::words(&load, &urls, 350).join(" ");
        assert!(text.contains("--requests 60 --repeat 5 --http 2 --streams 60 --connections 1"), "{text}");
        assert!(!text.contains("--duration") && text.ends_with("--urls /x.urls"), "{text}");
    }
}
