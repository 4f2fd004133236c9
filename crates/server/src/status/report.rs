//! The report of a running server, as its control socket sends it and as `tenfold status` prints it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tenfold_engine::Sender;
use tenfold_tls::certificates::facts::CertificateFacts;

use crate::diagnostics::day;
use crate::diagnostics::latest::{LatestMessage, LatestMessages};
use crate::status::counters::{Counter, REFUSALS, Sums};
use crate::status::latency::Observed;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatusReport {
    pub(crate) version: String,
    /// The id of the supervisor.
    pub(crate) process: u32,
    pub(crate) uptime_seconds: u64,
    /// The number of loaded configurations, including the first.
    pub(crate) generation: u32,
    pub(crate) draining: bool,
    /// Whether new requests are served.
    pub(crate) ready: bool,
    pub(crate) reloads: ReloadCounts,
    #[serde(default)]
    pub(crate) upgrades: UpgradeCounts,
    /// Workers that replaced a dead worker.
    pub(crate) restarts: u64,
    /// Replaced workers whose loop had stopped turning.
    #[serde(default)]
    pub(crate) stuck: u64,
    pub(crate) listen: Vec<String>,
    pub(crate) engine: String,
    pub(crate) topology: String,
    pub(crate) send: String,
    /// The accounts process; `None` without members.
    pub(crate) accounts: Option<HelperReport>,
    /// Requests by method, and latencies; `None` without an admin listener.
    pub(crate) observed: Option<Observed>,
    /// The process that signs for the newest configuration; `None` if workers have the keys.
    pub(crate) signing: Option<HelperReport>,
    /// The certificates of the newest configuration, in the order of their ends. Of certificates with the same first
    /// name, the report has only the first that ends.
    #[serde(default)]
    pub(crate) certificates: Vec<CertificateReport>,
    /// The names of hosts with a site of their own.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    #[serde(default)]
    pub(crate) diagnostics: DiagnosticsReport,
    /// The sum over all workers, including ended ones.
    #[serde(flatten)]
    pub(crate) total: Numbers,
    pub(crate) workers: Vec<WorkerReport>,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CertificateReport {
    /// Its DNS names and addresses.
    pub(crate) names: Vec<String>,
    /// The last second of its validity, since 1970.
    pub(crate) expires_unix_seconds: i64,
}

impl CertificateReport {
    pub(crate) fn of(facts: &CertificateFacts) -> CertificateReport {
        let names = facts.names.iter().map(|name| name.escape_debug().to_string());
        CertificateReport {
            names: names.chain(facts.addresses.iter().map(IpAddr::to_string)).collect(),
            expires_unix_seconds: facts.not_after,
        }
    }

    /// The first name, which labels its metric.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// The whole days until its end, in words.
    pub(crate) fn left(&self, now: u64) -> String {
        let seconds = self.expires_unix_seconds.saturating_sub_unsigned(now);
        match seconds {
            ..0 => "expired".to_owned(),
            0..172_800 => format!("{} h left", seconds / 3600),
            _ => format!("{} days left", seconds / 86_400),
        }
    }
}

/// The messages at the levels `error` and `warn`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DiagnosticsReport {
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
    /// The latest of these, the newest first. Messages that name a requested file are missing.
    pub(crate) latest: Vec<MessageReport>,
}

/// The first line of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MessageReport {
    pub(crate) unix_seconds: u64,
    /// `error` or `warning`.
    pub(crate) level: String,
    pub(crate) text: String,
}

impl DiagnosticsReport {
    pub(crate) fn of(messages: &LatestMessages) -> DiagnosticsReport {
        let (errors, warnings) = messages.counts();
        let report = |message: LatestMessage| MessageReport {
            unix_seconds: message.unix_seconds,
            level: if message.is_error { "error" } else { "warning" }.to_owned(),
            text: message.text,
        };
        DiagnosticsReport { errors, warnings, latest: messages.all().into_iter().map(report).collect() }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The results of reloads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReloadCounts {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// Whether the last reload failed.
    pub(crate) last_failed: bool,
    /// The time of loading the current configuration, in seconds since 1970.
    pub(crate) loaded_unix_seconds: u64,
    /// The lines of the reason of the last failure; empty for the admin listener.
    #[serde(default)]
    pub(crate) last_failure: Vec<String>,
}

/// The most lines of a reason that are kept, and the most characters of each.
const MOST_LINES: usize = 200;
const LONGEST_LINE: usize = 1000;

impl ReloadCounts {
    /// Counts a reload that succeeded.
    pub(crate) fn succeed(&mut self) {
        self.last_failed = false;
        self.succeeded += 1;
    }

    /// Counts a reload that failed.
    pub(crate) fn fail(&mut self, why: &str) {
        self.last_failed = true;
        self.failed += 1;
        let kept = why.lines().take(MOST_LINES).map(|line| line.chars().take(LONGEST_LINE).collect());
        self.last_failure = kept.collect();
    }

    /// Records that a new configuration serves.
    pub(crate) fn loaded(&mut self) {
        self.loaded_unix_seconds = now();
    }
}

/// The results of upgrades to another program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UpgradeCounts {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// The reason of the last failure.
    pub(crate) last_failure: Option<String>,
    /// The path of the program, if the last upgrade executed the former file again.
    #[serde(default)]
    pub(crate) same_file: Option<String>,
}

impl UpgradeCounts {
    /// Counts a failed upgrade.
    pub(crate) fn failed(&mut self, why: &str) {
        self.failed += 1;
        self.last_failure = Some(why.to_owned());
    }
}

/// A helper process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HelperReport {
    /// `None` while a replacement starts.
    pub(crate) process: Option<i32>,
    /// The number of replacements.
    pub(crate) replaced: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerReport {
    /// The number of the worker, from 1; `None` for the accepting thread of the topology `handoff`.
    pub(crate) worker: Option<usize>,
    pub(crate) generation: u32,
    pub(crate) process: Option<i32>,
    pub(crate) state: String,
    pub(crate) restarts: u64,
    /// Bytes of memory that the process of the worker occupies (`man 5 proc_pid_statm`).
    pub(crate) memory: Option<u64>,
    /// The worker's share of all requests in this report, from 0 to 1; `None` without requests.
    pub(crate) share: Option<f64>,
    #[serde(flatten)]
    pub(crate) numbers: Numbers,
}

impl std::fmt::Display for StatusReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let draining = if self.draining { ", draining" } else { "" };
        writeln!(f, "tenfold {} on {}{draining}", self.version, self.listen.join(", "))?;
        writeln!(
            f,
            "process {}, up {}, configuration {}",
            self.process,
            uptime(self.uptime_seconds),
            self.generation
        )?;
        writeln!(f, "engine {}, topology {}, send {}\n", self.engine, self.topology, self.send)?;
        writeln!(
            f,
            "{:<8} {:>8} {:<11} {:>6} {:>10} {:>12} {:>7} {:>15} {:>8}",
            "worker", "process", "state", "open", "accepted", "requests", "share", "bytes", "restarts"
        )?;
        for worker in &self.workers {
            let process = worker.process.map_or("-".to_owned(), |process| process.to_string());
            let restarts = worker.restarts.to_string();
            let name = worker.name();
            let share = worker.share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
            row(f, [&name, &process, &worker.state, &share, &restarts], &worker.numbers)?;
        }
        row(f, ["all", "", "", "", ""], &self.total)?;
        let counts = |all: &BTreeMap<String, u64>| {
            let some: Vec<_> = all
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            if some.is_empty() { "none".to_owned() } else { some.join(", ") }
        };
        writeln!(f, "\nresponses  {}", counts(&self.total.responses))?;
        writeln!(f, "refusals   {}", counts(&self.total.refusals))?;
        let RequestVersions { http_1_0, http_1_1, http_2 } = self.total.versions;
        let versions = [("HTTP/1.0", http_1_0), ("HTTP/1.1", http_1_1), ("HTTP/2", http_2)];
        writeln!(f, "versions   {}", counts(&versions.map(|(name, count)| (name.to_owned(), count)).into()))?;
        let Http2Ends { client_resets, server_resets, ref goaways } = self.total.http2;
        if http_2 + client_resets + server_resets + goaways.values().sum::<u64>() > 0 {
            writeln!(
                f,
                "http2      {client_resets} streams reset by clients, {server_resets} by the server; GOAWAY: {}",
                counts(goaways)
            )?;
        }
        writeln!(f, "evicted    {} idle connections, for new ones", self.total.connections.evicted)?;
        if self.send == Sender::Zerocopy.to_string() {
            let Zerocopy { sends, copied } = self.total.zerocopy;
            writeln!(f, "zerocopy   {sends} sends, {copied} of them copied by the kernel")?;
        }
        let Handshakes { full, resumed, failed } = self.total.tls;
        if full + resumed + failed > 0 {
            writeln!(f, "tls        {full} full handshakes, {resumed} resumed, {failed} failed")?;
        }
        if self.total.substituted > 0 {
            writeln!(f, "senders    {} pieces of files copied instead", self.total.substituted)?;
        }
        for (name, helper) in [("accounts", &self.accounts), ("signing", &self.signing)] {
            let Some(HelperReport { process, replaced }) = helper else { continue };
            let process = process.map_or("none".to_owned(), |process| process.to_string());
            writeln!(f, "{name:<10} process {process}, replaced {replaced} times")?;
        }
        let Numbers { log_lines, log_lines_lost, log_lines_dropped, .. } = self.total;
        writeln!(f, "log lines  {log_lines} written, {log_lines_lost} lost, {log_lines_dropped} dropped")?;
        if self.total.refused_calls > 0 {
            writeln!(f, "sandbox    {} system calls refused", self.total.refused_calls)?;
        }
        if self.stuck > 0 {
            writeln!(f, "stuck      {} workers, which were killed", self.stuck)?;
        }
        writeln!(f, "panics     {}", self.total.panics)?;
        self.write_facts(f)
    }
}

impl WorkerReport {
    /// The number of the worker in words.
    pub(crate) fn name(&self) -> String {
        self.worker.map_or("accepts".to_owned(), |number| number.to_string())
    }
}

impl StatusReport {
    /// The state of the server in a word.
    pub(crate) fn state(&self) -> &'static str {
        match (self.draining, self.ready) {
            (true, _) => "draining",
            (_, true) => "serving",
            _ if self.workers.iter().any(|worker| worker.state == "stuck") => "stuck",
            _ => "starting",
        }
    }

    /// Writes the certificates, hosts and latest messages, if there are any.
    pub(crate) fn write_facts(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        let now = now();
        for certificate in &self.certificates {
            writeln!(f, "expires    {} {}", certificate.left(now), certificate.names.join(" "))?;
        }
        if !self.hosts.is_empty() {
            writeln!(f, "hosts      {}", self.hosts.join(" "))?;
        }
        for MessageReport { unix_seconds, level, text } in self.diagnostics.latest.iter().rev() {
            writeln!(f, "{level:<10} {} {text}", day::moment(*unix_seconds))?;
        }
        Ok(())
    }
}

fn row(f: &mut std::fmt::Formatter<'_>, words: [&str; 5], numbers: &Numbers) -> std::fmt::Result {
    let [worker, process, state, share, restarts] = words;
    let ConnectionCounts { open, accepted, .. } = numbers.connections;
    let (requests, bytes) = (numbers.requests, numbers.bytes);
    writeln!(
        f,
        "{worker:<8} {process:>8} {state:<11} {open:>6} {accepted:>10} {requests:>12} {share:>7} {bytes:>15} \
         {restarts:>8}"
    )
}

/// A time in its two greatest units.
pub(crate) fn uptime(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) connections: ConnectionCounts,
    pub(crate) requests: u64,
    #[serde(default)]
    pub(crate) versions: RequestVersions,
    #[serde(default)]
    pub(crate) http2: Http2Ends,
    /// Responses by status code, for the codes that occurred.
    pub(crate) responses: BTreeMap<String, u64>,
    /// Refusals by reason.
    pub(crate) refusals: BTreeMap<String, u64>,
    /// Bytes given to the kernel.
    pub(crate) bytes: u64,
    /// Pieces of files that were copied because the sender's resources were unavailable.
    pub(crate) substituted: u64,
    pub(crate) zerocopy: Zerocopy,
    pub(crate) tls: Handshakes,
    /// Responses from a worker's memory; counted only if there is an admin listener.
    pub(crate) cache_hits: u64,
    pub(crate) offload: OffloadCounts,
    pub(crate) log_lines: u64,
    pub(crate) log_lines_lost: u64,
    pub(crate) log_lines_dropped: u64,
    pub(crate) panics: u64,
    /// System calls that the sandbox answered with EPERM.
    pub(crate) refused_calls: u64,
}

/// Answered requests by the version of HTTP.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RequestVersions {
    pub(crate) http_1_0: u64,
    pub(crate) http_1_1: u64,
    pub(crate) http_2: u64,
}

/// The ends of HTTP/2 streams and connections.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Http2Ends {
    /// RST_STREAM frames of clients.
    pub(crate) client_resets: u64,
    /// RST_STREAM frames of the server with an error.
    pub(crate) server_resets: u64,
    /// GOAWAY frames of the server by their code: `no-error`, `enhance-your-calm`, and `error` for all others.
    pub(crate) goaways: BTreeMap<String, u64>,
}

/// TLS handshakes by their results.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handshakes {
    pub(crate) full: u64,
    pub(crate) resumed: u64,
    pub(crate) failed: u64,
}

/// The results of zero-copy sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Zerocopy {
    /// Sends whose memory the kernel has released.
    pub(crate) sends: u64,
    /// Zero-copy sends that the kernel copied.
    pub(crate) copied: u64,
}

/// Jobs of other threads: passwords, compression, large folders.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OffloadCounts {
    /// Jobs in the queue or in progress.
    pub(crate) pending: u64,
    pub(crate) begun: u64,
    pub(crate) rejected: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConnectionCounts {
    pub(crate) open: u64,
    pub(crate) accepted: u64,
    /// Idle connections closed for new ones.
    pub(crate) evicted: u64,
}

impl Numbers {
    /// The counters in `sums`, by their names.
    pub(crate) fn of(sums: &Sums) -> Numbers {
        Numbers {
            connections: ConnectionCounts {
                open: sums.open(),
                accepted: sums.of(Counter::Accepted),
                evicted: sums.of(Counter::Evicted),
            },
            requests: sums.requests(),
            versions: RequestVersions {
                http_1_0: sums.of(Counter::Http10),
                http_1_1: sums.of(Counter::Http11),
                http_2: sums.of(Counter::Http2),
            },
            http2: Http2Ends {
                client_resets: sums.of(Counter::ClientResets),
                server_resets: sums.of(Counter::ServerResets),
                goaways: [
                    ("no-error", Counter::GoAwayNoError),
                    ("enhance-your-calm", Counter::GoAwayCalm),
                    ("error", Counter::GoAwayError),
                ]
                .map(|(code, counter)| (code.to_owned(), sums.of(counter)))
                .into(),
            },
            responses: sums.responses().map(|(status, count)| (status.to_string(), count)).collect(),
            refusals: REFUSALS.iter().map(|&(counter, name)| (name.to_owned(), sums.of(counter))).collect(),
            bytes: sums.of(Counter::Sent),
            substituted: sums.of(Counter::Substituted),
            zerocopy: Zerocopy { sends: sums.of(Counter::HeldSends), copied: sums.of(Counter::HeldCopied) },
            tls: Handshakes {
                full: sums.of(Counter::TlsFull),
                resumed: sums.of(Counter::TlsResumed),
                failed: sums.of(Counter::TlsFailed),
            },
            cache_hits: sums.of(Counter::CacheHits),
            offload: OffloadCounts {
                pending: sums.of(Counter::WorkBegun).saturating_sub(sums.of(Counter::WorkEnded)),
                begun: sums.of(Counter::WorkBegun),
                rejected: sums.of(Counter::WorkRejected),
            },
            log_lines: sums.of(Counter::Lines),
            log_lines_lost: sums.of(Counter::LinesLost),
            log_lines_dropped: sums.of(Counter::LinesDropped),
            panics: sums.of(Counter::Panicked),
            refused_calls: sums.of(Counter::RefusedCalls),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::status::counters::{REFUSALS, Sums};

    use super::*;

    pub(in crate::status) fn report() -> StatusReport {
        StatusReport {
            version: "1".into(),
            process: 10,
            uptime_seconds: 61,
            generation: 1,
            draining: false,
            ready: true,
            upgrades: UpgradeCounts::default(),
            reloads: ReloadCounts::default(),
            restarts: 0,
            stuck: 0,
            listen: vec!["127.0.0.1:8080".into()],
            engine: "epoll".into(),
            topology: "single".into(),
            send: "auto".into(),
            accounts: None,
            observed: None,
            signing: None,
            certificates: Vec::new(),
            hosts: Vec::new(),
            diagnostics: DiagnosticsReport::default(),
            total: Numbers::of(&Sums::default()),
            workers: vec![WorkerReport {
                worker: Some(1),
                generation: 1,
                process: Some(11),
                state: "serving".into(),
                restarts: 0,
                memory: None,
                share: None,
                numbers: Numbers::of(&Sums::default()),
            }],
        }
    }

    #[test]
    fn a_report_survives_its_json_and_has_every_reason() {
        let text = serde_json::to_string(&report()).expect("it can be written");
        let again: StatusReport = serde_json::from_str(&text).expect("it can be read");
        assert_eq!(again.to_string(), report().to_string());
        assert_eq!(again.total.refusals.len(), REFUSALS.len());
    }

    #[test]
    fn a_report_is_a_table_for_people() {
        assert_eq!(
            report().to_string(),
            "tenfold 1 on 127.0.0.1:8080\n\
             process 10, up 1 min 1 s, configuration 1\n\
             engine epoll, topology single, send auto\n\
             \n\
             worker    process state         open   accepted     requests   share           bytes restarts\n\
             1              11 serving          0          0            0       -               0        0\n\
             all                                0          0            0                       0         \n\
             \n\
             responses  none\n\
             refusals   none\n\
             versions   none\n\
             evicted    0 idle connections, for new ones\n\
             log lines  0 written, 0 lost, 0 dropped\n\
             panics     0\n"
        );
    }

    #[test]
    fn the_accounts_process_is_shown_if_there_is_one() {
        let accounts = HelperReport { process: Some(12), replaced: 1 };
        let signing = Some(HelperReport { process: None, replaced: 4 });
        let text = StatusReport { accounts: Some(accounts), signing, ..report() }.to_string();
        let line = "\naccounts   process 12, replaced 1 times\n\
                    signing    process none, replaced 4 times\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn certificates_hosts_and_messages_are_shown_if_there_are_any() {
        let certificate = |name: &str, expires: u64| CertificateReport {
            names: vec![name.to_owned(), "192.0.2.1".to_owned()],
            expires_unix_seconds: expires as i64,
        };
        assert_eq!(certificate("a.test", 86_400 * 3).left(1), "2 days left");
        assert_eq!(certificate("a.test", 172_800).left(1), "47 h left");
        assert_eq!(certificate("a.test", 1).left(2), "expired");
        let mut report = report();
        report.certificates = vec![certificate("a.test", now() + 86_400 * 30 + 60)];
        report.hosts = vec!["a.test".to_owned(), "b.test".to_owned()];
        let message = |unix_seconds, level: &str, text: &str| MessageReport {
            unix_seconds,
            level: level.to_owned(),
            text: text.to_owned(),
        };
        report.diagnostics.latest = vec![message(60, "error", "newer"), message(0, "warning", "older")];
        let expected = "\nexpires    30 days left a.test 192.0.2.1\n\
                        hosts      a.test b.test\n\
                        warning    1970-01-01T00:00:00Z older\n\
                        error      1970-01-01T00:01:00Z newer\n";
        assert!(report.to_string().ends_with(expected), "{report}");
    }

    #[test]
    fn copied_zero_copy_sends_are_reported() {
        let mut report = report();
        report.send = "zerocopy".into();
        report.total.zerocopy = Zerocopy { sends: 7, copied: 5 };
        report.total.substituted = 3;
        let text = report.to_string();
        assert!(text.contains("\nzerocopy   7 sends, 5 of them copied by the kernel\n"), "{text}");
        assert!(text.contains("\nsenders    3 pieces of files copied instead\n"), "{text}");
    }
}
