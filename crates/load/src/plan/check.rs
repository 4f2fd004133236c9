//! Consistency of a plan. Contradictions are refused, and so are settings without effect: otherwise the run would
//! silently differ from the one that the user asked for.

use std::net::IpAddr;

use crate::error::LoadError;
use crate::plan::expect::Expect;
use crate::plan::io::IoChoice;
use crate::plan::io::unsupported;
use crate::plan::pacer::Arrivals;
use crate::plan::url::{ServerAddress, TargetUrl};
use crate::plan::{LoadPlan, RequestVersion, ResponseEnd, UrlOrder, WarmUp};

impl LoadPlan {
    /// Checks the plan as a whole.
    ///
    /// # Errors
    /// [`LoadError::Usage`], in one line, if the plan is inconsistent.
    pub fn check(&self) -> Result<(), LoadError> {
        let why = self
            .check_sizes()
            .or_else(|| self.check_schedules())
            .or_else(|| self.check_shape())
            .or_else(|| self.check_requests())
            .or_else(|| self.check_connections());
        why.map_or(Ok(()), |why| Err(LoadError::Usage(why)))
    }

    fn check_sizes(&self) -> Option<String> {
        if self.urls.is_empty() {
            return Some("a run needs a URL; name one, or a file of URLs with --urls".into());
        }
        if [self.threads, self.processes, self.pipeline, self.repeat].contains(&0) {
            return Some("threads, processes, pipelined requests and runs must be at least 1".into());
        }
        for (count, most, what) in [
            (self.threads, LoadPlan::MOST_THREADS, "threads in a process"),
            (self.processes, LoadPlan::MOST_PROCESSES, "processes"),
        ] {
            if count > most {
                return Some(format!("{count} {what} are too many; the limit is {most}"));
            }
        }
        if self.all_connections() == 0 {
            return Some("a run needs at least one connection".into());
        }
        let workers = self.workers();
        if (1..workers).contains(&self.active()) {
            return Some(format!(
                "{} connections cannot be shared by {workers} threads; use at least {workers} connections",
                self.active()
            ));
        }
        let servers = self.servers();
        if (1..servers).contains(&(self.active() as usize)) {
            return Some(format!(
                "{} connections do not reach {servers} servers; use at least {servers} connections",
                self.active()
            ));
        }
        None
    }

    fn check_schedules(&self) -> Option<String> {
        if self.duration.is_none() && self.requests.is_none() {
            return Some("a run needs an end: a duration, or a number of requests".into());
        }
        let asks = self.rate.is_some() || self.hold.is_some() || self.requests.is_some();
        if self.active() == 0 && asks {
            return Some("without active connections nothing makes requests; use --connections".into());
        }
        if self.hold.is_some() {
            if self.connection_rate.is_none() {
                return Some(
                    "--hold needs --connection-rate, the number of new connections per second".into(),
                );
            }
            if self.rate.is_some() || self.requests.is_some() {
                return Some(
                    "--hold gives each connection its own schedule; remove --rate and --requests".into(),
                );
            }
        }
        let mut rates = [self.rate, self.connection_rate].into_iter().flatten();
        if self.duration.is_none() && rates.clone().any(|rate| rate.is_ramp()) {
            return Some("a ramp needs --duration, over which the rate changes".into());
        }
        if self.arrivals == Arrivals::Poisson && rates.next().is_none() {
            return Some("--arrivals has no effect without --rate or --connection-rate".into());
        }
        match (self.warm_up, self.duration) {
            (WarmUp::For(cut), Some(time)) if cut >= time => {
                Some(format!("a warm-up of {cut:?} leaves nothing of a run of {time:?}"))
            }
            _ => None,
        }
    }

    fn check_shape(&self) -> Option<String> {
        if self.completion == ResponseEnd::End && self.requests_per_connection.is_some_and(|count| count > 1)
        {
            return Some(
                "--completion end allows one request on a connection; remove --requests-per-connection"
                    .into(),
            );
        }
        if self.requests_per_connection.is_some_and(|count| count > 1) || self.hold.is_some() {
            match (self.persists(), self.version) {
                (true, _) => {}
                (false, RequestVersion::Http10) => {
                    return Some(
                        "HTTP/1.0 closes a connection after one response; add --keep-alive for more requests"
                            .into(),
                    );
                }
                (false, RequestVersion::Http11) => {
                    return Some("'Connection: close' allows one request on a connection".into());
                }
            }
        }
        if self.keep_alive && self.version == RequestVersion::Http11 {
            return Some("--keep-alive has no effect without --http 1.0".into());
        }
        if self.pipeline > 1 && (self.per_connection() == 1 || self.version == RequestVersion::Http10) {
            return Some("--pipeline needs persistent HTTP/1.1 connections".into());
        }
        if self.requests_per_connection == Some(0) {
            return Some("--requests-per-connection must be at least 1".into());
        }
        if self.slow_rate < LoadPlan::LEAST_SLOW_RATE {
            return Some(format!(
                "--slow-rate must be at least {} bytes per second",
                LoadPlan::LEAST_SLOW_RATE
            ));
        }
        if self.method == "HEAD"
            && (self.expect.length.is_some_and(|length| length > 0) || self.expect.hash.is_some())
        {
            return Some("a response to HEAD has no body; remove --expect-length and --expect-hash".into());
        }
        let length = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if let Some((name, value)) = length.filter(|(_, value)| *value != self.body.len().to_string()) {
            return Some(format!(
                "--header '{name}: {value}' contradicts the body, which has {} bytes",
                self.body.len()
            ));
        }
        None
    }

    /// Checks that settings of requests have connections that make requests, and that a random order has several URLs.
    fn check_requests(&self) -> Option<String> {
        let about_requests = self.pipeline > 1
            || self.requests_per_connection.is_some()
            || self.method != "GET"
            || !(self.headers.is_empty() && self.body.is_empty())
            || self.version != RequestVersion::default()
            || self.completion != ResponseEnd::default()
            || self.order != UrlOrder::default()
            || self.expect != Expect::default();
        if about_requests && u64::from(self.idle) == self.all_connections() {
            return Some(
                "a run with only idle connections makes no requests; remove the settings of requests".into(),
            );
        }
        if self.order == UrlOrder::Random && self.urls.len() == self.servers() {
            return Some("--random needs several URLs of a server".into());
        }
        None
    }

    /// Checks that settings of connections apply to the servers of the plan.
    fn check_connections(&self) -> Option<String> {
        let only_unix = self.urls.iter().all(|url| matches!(url.server, ServerAddress::Unix(_)));
        if only_unix && (self.sources.count() > 0 || self.join_ack) {
            return Some("--source and --join-ack apply to TCP, not to Unix sockets".into());
        }
        if let Some(why) = unsupported(self).filter(|_| self.io == IoChoice::Uring) {
            return Some(format!("--io uring: {why}; use --io epoll"));
        }
        let literal = |url: &TargetUrl| match &url.server {
            ServerAddress::Host(host, _) => host.parse::<IpAddr>().ok(),
            ServerAddress::Unix(_) => None,
        };
        let from = self.sources.nth(0)?;
        let to = self.urls.iter().filter_map(literal).find(|to| to.is_ipv4() != from.is_ipv4())?;
        Some(format!("cannot connect from {from} to {to}: one is IPv4, the other IPv6"))
    }

    /// The number of servers that the URLs name.
    fn servers(&self) -> usize {
        self.urls.iter().map(|url| &url.server).collect::<std::collections::HashSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
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
