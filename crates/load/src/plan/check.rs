//! The check of a plan. It refuses contradictions and settings without effect: with these, a run would silently differ
//! from the request of the user.

use std::net::IpAddr;

use tenfold_sys::uring::Ring;

use crate::error::LoadError;
use crate::plan::expect::Expect;
use crate::plan::io::{ChosenIo, IoBackend, IoChoice};
use crate::plan::pacer::Arrivals;
use crate::plan::url::{ServerAddress, TargetUrl};
use crate::plan::{FORBIDDEN_FIELDS, LoadPlan, RequestVersion, ResponseEnd, UrlOrder, WarmUp};
use crate::plan::{TlsOptions, server_name};

const NO_TLS: &str = "io_uring here does not support https";

impl LoadPlan {
    /// Chooses the I/O.
    pub(crate) fn choose_io(&self) -> Result<ChosenIo, LoadError> {
        let of = |means, why: &str| Ok(ChosenIo { means, why: why.to_owned() });
        let missing = || Ring::connects().map_err(|(step, error)| format!("{step}: {error}")).err();
        match self.io {
            IoChoice::Epoll => of(IoBackend::Epoll, "as requested"),
            IoChoice::Uring => match missing() {
                None => of(IoBackend::Uring, "as requested"),
                Some(what) => Err(LoadError::Failed(format!(
                    "--io uring needs sockets and their options in io_uring (Linux 6.7): {what}; use --io epoll"
                ))),
            },
            IoChoice::Auto if self.has_tls() => of(IoBackend::Epoll, NO_TLS),
            IoChoice::Auto if self.per_connection() > 1 => of(IoBackend::Epoll, "connections persist"),
            IoChoice::Auto => match self.unsupported_by_uring().map(str::to_owned).or_else(missing) {
                None => of(IoBackend::Uring, "each request has a connection of its own"),
                Some(why) => of(IoBackend::Epoll, &why),
            },
        }
    }

    /// The reason why `io_uring` cannot serve the plan here, if there is one.
    fn unsupported_by_uring(&self) -> Option<&'static str> {
        if self.urls.iter().any(|url| matches!(url.server, ServerAddress::Unix(_))) {
            return Some("io_uring here does not support Unix sockets");
        }
        if self.has_tls() {
            return Some(NO_TLS);
        }
        if self.slow_readers + self.slow_writers > 0 {
            return Some("io_uring here does not support slow connections");
        }
        if self.version == RequestVersion::Http2 {
            return Some("io_uring here does not support HTTP/2");
        }
        (self.sources.count() > 0).then_some("io_uring here does not support --source")
    }

    /// Checks the plan as a whole.
    pub fn check(&self) -> Result<(), LoadError> {
        let why = self
            .check_sizes()
            .or_else(|| self.check_schedules())
            .or_else(|| self.check_shape())
            .or_else(|| self.check_http2())
            .or_else(|| self.check_requests())
            .or_else(|| self.check_connections())
            .or_else(|| self.check_tls());
        why.map_or(Ok(()), |why| Err(LoadError::Usage(why)))
    }

    /// The last transfer coding that the fields of requests name; None without such a field.
    pub(crate) fn transfer_coding(&self) -> Option<&str> {
        let is_coding = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("transfer-encoding");
        let (_, value) = self.headers.iter().rfind(is_coding)?;
        Some(value.rsplit(',').next().unwrap_or_default().trim())
    }

    fn check_sizes(&self) -> Option<String> {
        let (connections, workers, servers) = (self.active(), self.workers(), self.servers());
        let zero = [self.threads, self.processes, self.pipeline, self.streams, self.repeat].contains(&0);
        let too_many =
            |count: u32, what: &str, most: u32| format!("{count} {what} are too many; the limit is {most}");
        first(&[
            (self.urls.is_empty(), "a run needs a URL; name one, or a file of URLs with --urls"),
            (zero, "threads, processes, pipelined requests, streams and runs must be at least 1"),
            (self.requests_per_connection == Some(0), "--requests-per-connection must be at least 1"),
            (self.all_connections() == 0, "a run needs at least one connection"),
            (
                self.threads > LoadPlan::MOST_THREADS,
                &too_many(self.threads, "threads in a process", LoadPlan::MOST_THREADS),
            ),
            (
                self.processes > LoadPlan::MOST_PROCESSES,
                &too_many(self.processes, "processes", LoadPlan::MOST_PROCESSES),
            ),
            (
                (1..workers).contains(&connections),
                &format!(
                    "{connections} connections cannot be shared by {workers} threads; use at least {workers}"
                ),
            ),
            (
                (1..servers).contains(&(connections as usize)),
                &format!("{connections} connections do not reach {servers} servers; use at least {servers}"),
            ),
        ])
    }

    fn check_schedules(&self) -> Option<String> {
        let (held, ends) = (self.hold.is_some(), self.duration.is_some() || self.requests.is_some());
        let makes_requests = self.rate.is_some() || held || self.requests.is_some();
        let rates = || [self.rate, self.connection_rate].into_iter().flatten();
        let ramps = rates().any(|rate| rate.is_ramp());
        let poisson = self.arrivals == Arrivals::Poisson;
        first(&[
            (!ends, "a run needs an end: a duration, or a number of requests"),
            (
                self.active() == 0 && makes_requests,
                "without active connections nothing makes requests; use --connections",
            ),
            (
                held && self.connection_rate.is_none(),
                "--hold needs --connection-rate, the number of new connections per second",
            ),
            (
                held && (self.rate.is_some() || self.requests.is_some()),
                "--hold gives each connection its own schedule; remove --rate and --requests",
            ),
            (self.duration.is_none() && ramps, "a ramp needs --duration, over which the rate changes"),
            (
                poisson && rates().next().is_none(),
                "--arrivals has no effect without --rate or --connection-rate",
            ),
        ])
        .or_else(|| match (self.warm_up, self.duration) {
            (WarmUp::For(cut), Some(time)) if cut >= time => {
                Some(format!("a warm-up of {cut:?} leaves nothing of a run of {time:?}"))
            }
            _ => None,
        })
    }

    fn check_shape(&self) -> Option<String> {
        let several = self.requests_per_connection.is_some_and(|count| count > 1);
        let closes = (several || self.hold.is_some()) && !self.persists();
        let http10 = self.version == RequestVersion::Http10;
        let least = LoadPlan::LEAST_SLOW_RATE;
        let expects_body = self.expect.length.is_some_and(|length| length > 0) || self.expect.hash.is_some();
        first(&[
            (
                several && self.completion == ResponseEnd::End,
                "--completion end allows one request on a connection; remove --requests-per-connection",
            ),
            (
                closes && http10,
                "HTTP/1.0 closes a connection after one response; add --keep-alive for more requests",
            ),
            (closes, "'Connection: close' allows one request on a connection"),
            (self.keep_alive && !http10, "--keep-alive has no effect without --http 1.0"),
            (
                self.pipeline > 1 && (self.per_connection() == 1 || http10),
                "--pipeline needs persistent HTTP/1.1 connections",
            ),
            (
                self.method == "HEAD" && expects_body,
                "a response to HEAD has no body; remove --expect-length and --expect-hash",
            ),
            (self.slow_rate < least, &format!("--slow-rate must be at least {least} bytes per second")),
        ])
        .or_else(|| {
            let length = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let bytes = self.body.len();
            let (name, value) = length.filter(|(_, value)| *value != bytes.to_string())?;
            Some(format!("--header '{name}: {value}' contradicts the body, which has {bytes} bytes"))
        })
    }

    /// Checks that settings apply to the version of HTTP.
    fn check_http2(&self) -> Option<String> {
        if self.version != RequestVersion::Http2 {
            return (self.streams > 1).then(|| "--streams needs --http 2".to_owned());
        }
        first(&[
            (self.pipeline > 1, "--pipeline applies to HTTP/1.1; use --streams with --http 2"),
            (
                self.completion == ResponseEnd::End,
                "--completion end applies to HTTP/1: a response of HTTP/2 ends with its stream",
            ),
        ])
        .or_else(|| {
            let forbidden = |name: &str, value: &str| {
                let is = |other: &str| name.eq_ignore_ascii_case(other);
                FORBIDDEN_FIELDS.iter().any(|other| is(other)) || (is("te") && value != "trailers")
            };
            let (name, value) = self.headers.iter().find(|(name, value)| forbidden(name, value))?;
            let remedy = match name.eq_ignore_ascii_case("connection") {
                true => "; --requests-per-connection replaces connections",
                false => "",
            };
            Some(format!("HTTP/2 does not allow --header '{name}: {value}' (RFC 9113 §8.2.2){remedy}"))
        })
    }

    /// Checks that settings of requests have connections that make requests, and that a random order has several URLs.
    fn check_requests(&self) -> Option<String> {
        let about_requests = self.pipeline > 1
            || self.streams > 1
            || self.requests_per_connection.is_some()
            || self.method != "GET"
            || !(self.headers.is_empty() && self.body.is_empty())
            || self.version != RequestVersion::default()
            || self.completion != ResponseEnd::default()
            || self.order != UrlOrder::default()
            || self.expect != Expect::default();
        let given = |name: &str| self.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if let Some(coding) = self.transfer_coding().filter(|_| self.version != RequestVersion::Http2) {
            if !coding.eq_ignore_ascii_case("chunked") {
                return Some(format!("a request cannot end with transfer coding {coding:?}; use chunked"));
            }
            if self.version == RequestVersion::Http10 || given("content-length") {
                return Some(
                    "Transfer-Encoding goes neither with HTTP/1.0 nor with Content-Length; remove one of them"
                        .into(),
                );
            }
        }
        first(&[
            (
                about_requests && u64::from(self.idle) == self.all_connections(),
                "a run with only idle connections makes no requests; remove the settings of requests",
            ),
            (
                self.order == UrlOrder::Random && self.urls.len() == self.servers(),
                "--random needs several URLs of a server",
            ),
        ])
    }

    /// Checks that settings of connections apply to the servers of the plan.
    fn check_connections(&self) -> Option<String> {
        let only_unix = self.urls.iter().all(|url| matches!(url.server, ServerAddress::Unix(_)));
        if only_unix && (self.sources.count() > 0 || self.join_ack) {
            return Some("--source and --join-ack apply to TCP, not to Unix sockets".into());
        }
        if let Some(why) = self.unsupported_by_uring().filter(|_| self.io == IoChoice::Uring) {
            return Some(format!("--io uring: {why}; use --io epoll"));
        }
        let literal = |url: &TargetUrl| match &url.server {
            ServerAddress::Host(..) => url.host().parse::<IpAddr>().ok(),
            ServerAddress::Unix(_) => None,
        };
        let from = self.sources.nth(0)?;
        let to = self.urls.iter().filter_map(literal).find(|to| to.is_ipv4() != from.is_ipv4())?;
        Some(format!("cannot connect from {from} to {to}: one is IPv4, the other IPv6"))
    }

    fn check_tls(&self) -> Option<String> {
        let TlsOptions { insecure, ca, sni, .. } = &self.tls;
        first(&[
            (
                self.tls != TlsOptions::default() && !self.has_tls(),
                "--insecure, --ca, --sni and --tls-resume have no effect without an https URL",
            ),
            (*insecure && ca.is_some(), "--insecure accepts every certificate; remove --ca"),
        ])
        .or_else(|| {
            let name = sni.as_deref()?;
            server_name(name).err().map(|why| format!("--sni: {why}"))
        })
        .or_else(|| {
            let mut hosts = self.urls.iter().filter(|url| url.tls && sni.is_none()).map(TargetUrl::host);
            hosts.find_map(|host| server_name(host).err())
        })
    }

    /// The number of servers that the URLs name.
    fn servers(&self) -> usize {
        self.urls.iter().map(TargetUrl::origin).collect::<std::collections::HashSet<_>>().len()
    }
}

/// The reason of the first condition that is true.
fn first(reasons: &[(bool, &str)]) -> Option<String> {
    reasons.iter().find(|(is_wrong, _)| *is_wrong).map(|(_, why)| (*why).to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::TrustFile;
    use crate::plan::pacer::ArrivalRate;

    fn plan(change: impl FnOnce(&mut LoadPlan)) -> Result<(), LoadError> {
        let mut plan = LoadPlan::new(vec!["http://127.0.0.1/".parse().expect("a URL")]);
        change(&mut plan);
        plan.check()
    }

    type PlanEdit = fn(&mut LoadPlan);

    #[track_caller]
    fn refused(all: &[(PlanEdit, &str)]) {
        for (change, why) in all {
            let said = plan(change).expect_err(why).to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn contradictions_are_refused_with_a_reason() {
        assert!(plan(|_| {}).is_ok());
        refused(&[
            (|plan| plan.urls.clear(), "needs a URL"),
            (|plan| plan.pipeline = 0, "at least 1"),
            (|plan| (plan.threads, plan.connections) = (4, Some(3)), "cannot be shared"),
            (|plan| plan.hold = Some(Duration::from_secs(1)), "--connection-rate"),
            (|plan| (plan.pipeline, plan.requests_per_connection) = (2, Some(1)), "--pipeline"),
            (|plan| (plan.pipeline, plan.version) = (2, RequestVersion::Http10), "--pipeline"),
            (|plan| plan.sources = "::1".parse().expect("an address"), "IPv4"),
            (
                |plan| {
                    (plan.duration, plan.requests) = (None, Some(1));
                    plan.rate = Some(ArrivalRate { from: 1.0, to: 2.0 });
                },
                "--duration",
            ),
            (
                |plan| (plan.completion, plan.requests_per_connection) = (ResponseEnd::End, Some(5)),
                "allows one request",
            ),
            (|plan| (plan.method, plan.expect.length) = ("HEAD".into(), Some(5)), "HEAD"),
            (|plan| plan.headers = vec![("content-length".into(), "5".into())], "0 bytes"),
            (|plan| plan.warm_up = WarmUp::For(Duration::from_secs(10)), "leaves nothing"),
        ]);
        let held = |plan: &mut LoadPlan| {
            (plan.hold, plan.connection_rate) =
                (Some(Duration::from_secs(1)), Some(ArrivalRate::constant(5.0)));
        };
        assert!(plan(held).is_ok());
    }

    #[test]
    fn settings_of_another_version_are_refused() {
        fn http2(plan: &mut LoadPlan) {
            plan.version = RequestVersion::Http2;
        }
        refused(&[
            (|plan| plan.streams = 2, "--streams needs --http 2"),
            (|plan| plan.streams = 0, "at least 1"),
            (
                |plan| {
                    http2(plan);
                    plan.pipeline = 2;
                },
                "use --streams",
            ),
            (
                |plan| {
                    http2(plan);
                    plan.completion = ResponseEnd::End;
                },
                "ends with its stream",
            ),
            (
                |plan| {
                    http2(plan);
                    plan.keep_alive = true;
                },
                "--keep-alive has no effect",
            ),
            (
                |plan| {
                    http2(plan);
                    plan.headers = vec![("Connection".into(), "close".into())];
                },
                "--requests-per-connection",
            ),
            (
                |plan| {
                    http2(plan);
                    plan.headers = vec![("TE".into(), "gzip".into())];
                },
                "does not allow --header 'TE: gzip'",
            ),
            (
                |plan| {
                    http2(plan);
                    plan.io = IoChoice::Uring;
                },
                "io_uring here does not support HTTP/2",
            ),
        ]);
        let many = |plan: &mut LoadPlan| {
            http2(plan);
            (plan.streams, plan.requests_per_connection) = (4096, Some(1));
            plan.headers = vec![("te".into(), "trailers".into())];
        };
        assert!(plan(many).is_ok());
    }

    #[test]
    fn settings_without_effect_are_refused() {
        refused(&[
            (|plan| plan.arrivals = Arrivals::Poisson, "--rate"),
            (|plan| plan.order = UrlOrder::Random, "several URLs"),
            (|plan| (plan.connections, plan.idle, plan.pipeline) = (Some(0), 5, 2), "only idle"),
            (|plan| (plan.connections, plan.idle, plan.expect.length) = (Some(0), 5, Some(1)), "only idle"),
            (
                |plan| {
                    plan.urls = vec!["unix:/s".parse().expect("a URL")];
                    plan.join_ack = true;
                },
                "TCP",
            ),
            (
                |plan| {
                    plan.urls = ["a", "b", "a/c"].map(|url| url.parse().expect("a URL")).to_vec();
                    plan.connections = Some(1);
                },
                "do not reach 2 servers",
            ),
        ]);
        assert!(plan(|plan| (plan.connections, plan.idle) = (Some(0), 5)).is_ok());
        assert!(plan(|plan| (plan.method, plan.expect.length) = ("HEAD".into(), Some(0))).is_ok());
        let two = ["a/b", "a/c"].map(|url| url.parse().expect("a URL"));
        assert!(plan(|plan| (plan.urls, plan.order) = (two.to_vec(), UrlOrder::Random)).is_ok());
    }

    #[test]
    fn settings_of_tls_are_checked() {
        fn https(plan: &mut LoadPlan) {
            plan.urls = vec!["https://localhost/".parse().expect("a URL")];
        }
        assert!(plan(https).is_ok());
        refused(&[
            (|plan| plan.tls.insecure = true, "without an https URL"),
            (|plan| plan.tls.resume = false, "without an https URL"),
            (
                |plan| {
                    https(plan);
                    let ca = TrustFile { path: "a.pem".into(), pem: Vec::new() };
                    (plan.tls.insecure, plan.tls.ca) = (true, Some(ca));
                },
                "remove --ca",
            ),
            (
                |plan| {
                    https(plan);
                    plan.tls.sni = Some("not a name".into());
                },
                "--sni: \"not a name\"",
            ),
            (
                |plan| {
                    https(plan);
                    plan.io = IoChoice::Uring;
                },
                "does not support https",
            ),
        ]);
    }

    #[test]
    fn settings_that_a_ring_does_not_support_are_refused() {
        let sources = |plan: &mut LoadPlan| plan.sources = "127.0.0.2".parse().expect("an address");
        assert!(plan(sources).is_ok());
        refused(&[
            (|plan| (plan.io, plan.slow_readers) = (IoChoice::Uring, 1), "slow connections"),
            (|plan| (plan.io, plan.slow_writers) = (IoChoice::Uring, 1), "slow connections"),
            (
                |plan| (plan.io, plan.sources) = (IoChoice::Uring, "127.0.0.2".parse().expect("an address")),
                "--source",
            ),
            (
                |plan| (plan.io, plan.urls) = (IoChoice::Uring, vec!["unix:/s".parse().expect("a URL")]),
                "Unix sockets",
            ),
        ]);
        assert!(plan(|plan| plan.io = IoChoice::Uring).is_ok());
    }

    #[test]
    fn huge_numbers_are_refused_without_overflow() {
        refused(&[
            (|plan| plan.threads = 1_025, "too many"),
            (|plan| (plan.threads, plan.processes) = (100_000, 100_000), "too many"),
            (|plan| plan.slow_rate = 9, "10 bytes"),
            (
                |plan| {
                    (plan.threads, plan.processes) = (LoadPlan::MOST_THREADS, LoadPlan::MOST_PROCESSES);
                    plan.connections = Some(10);
                },
                "cannot be shared",
            ),
        ]);
        let mut plan = LoadPlan::new(vec!["a".parse().expect("a URL")]);
        (plan.hold, plan.connection_rate) = (Some(Duration::MAX), Some(ArrivalRate::constant(1e9)));
        assert_eq!(plan.active(), u32::MAX);
    }
}
