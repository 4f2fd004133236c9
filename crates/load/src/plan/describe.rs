//! A plan in words: one line for a report, and every setting by its flag for a comparison.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::plan::pacer::Arrivals;
use crate::plan::{LoadPlan, RequestVersion, ResponseEnd, UrlOrder, WarmUp};

impl LoadPlan {
    /// Every setting that may change a result, by its flag. A report lists URLs separately.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let time = |value: Duration| format!("{} s", value.as_secs_f64());
        let switch = |value: bool| (if value { "on" } else { "off" }).to_owned();
        let warm_up = match self.warm_up {
            WarmUp::Rule => "auto".to_owned(),
            WarmUp::Nothing => "off".to_owned(),
            WarmUp::For(value) => time(value),
        };
        let headers: Vec<String> = self.headers.iter().map(shown_field).collect();
        let arrivals = if self.arrivals == Arrivals::Poisson { "poisson" } else { "constant" };
        let completion = if self.completion == ResponseEnd::End { "end" } else { "length" };
        let version = match self.version {
            RequestVersion::Http10 => "1.0",
            RequestVersion::Http11 => "1.1",
            RequestVersion::Http2 => "2",
        };
        let statuses: Vec<String> = self.expect.statuses.iter().map(u16::to_string).collect();
        [
            ("connections", self.active().to_string()),
            ("threads", self.threads.to_string()),
            ("processes", self.processes.to_string()),
            ("agents", optional(self.part.map(|part| part.machines))),
            ("duration", optional(self.duration.map(time))),
            ("requests", optional(self.requests)),
            ("rate", optional(self.rate)),
            ("arrivals", arrivals.to_owned()),
            ("connection-rate", optional(self.connection_rate)),
            ("hold", optional(self.hold.map(time))),
            ("timeout", time(self.timeout)),
            ("repeat", self.repeat.to_string()),
            ("warm-up", warm_up),
            (
                "requests-per-connection",
                optional(Some(self.per_connection()).filter(|count| *count < u64::MAX)),
            ),
            ("pipeline", self.pipeline.to_string()),
            ("streams", self.streams.to_string()),
            ("method", self.method.clone()),
            ("header", optional(Some(headers.join("; ")).filter(|text| !text.is_empty()))),
            ("body", format!("{} bytes", self.body.len())),
            ("http", version.to_owned()),
            ("keep-alive", switch(self.keep_alive)),
            ("completion", completion.to_owned()),
            ("random", switch(self.order == UrlOrder::Random)),
            ("seed", self.seed.to_string()),
            ("idle", self.idle.to_string()),
            ("slow-readers", self.slow_readers.to_string()),
            ("slow-writers", self.slow_writers.to_string()),
            ("slow-rate", self.slow_rate.to_string()),
            ("source", format!("{} addresses", self.sources.count())),
            ("join-ack", switch(self.join_ack)),
            ("insecure", switch(self.tls.insecure)),
            ("ca", optional(self.tls.ca.as_ref().map(|file| file.path.display()))),
            ("sni", optional(self.tls.sni.as_ref())),
            ("tls-resume", switch(self.tls.resume)),
            ("expect-status", optional(Some(statuses.join(",")).filter(|text| !text.is_empty()))),
            ("expect-length", optional(self.expect.length)),
            ("expect-hash", switch(self.expect.hash.is_some())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

fn optional(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// A field as it is sent. Users share reports, so credentials are hidden.
fn shown_field((name, value): &(String, String)) -> String {
    let secret = ["authorization", "proxy-authorization", "cookie"];
    match secret.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
        true => format!("{name}: (hidden)"),
        false => format!("{name}: {value}"),
    }
}

/// The run in one line.
impl fmt::Display for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        match self.hold {
            Some(hold) => write!(
                f,
                "{} new connections/s, each open for {:.1} s",
                self.connection_rate.map_or_else(String::new, |rate| rate.to_string()),
                hold.as_secs_f64()
            )?,
            None => f.write_str(&plural(u64::from(self.active()), "connection"))?,
        }
        if self.per_connection() < u64::MAX {
            write!(f, ", {} each", plural(self.per_connection(), "request"))?;
        }
        if self.pipeline > 1 {
            write!(f, ", {} pipelined", self.pipeline)?;
        }
        if self.version == RequestVersion::Http2 {
            write!(f, ", HTTP/2 with {} each", plural(self.streams.into(), "stream"))?;
        }
        for (count, what) in
            [(self.idle, "idle"), (self.slow_readers, "slow readers"), (self.slow_writers, "slow writers")]
        {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        match (&self.rate, self.arrivals) {
            (None, _) => f.write_str(", closed loop")?,
            (Some(rate), Arrivals::Constant) => write!(f, ", {rate} evenly spaced requests/s")?,
            (Some(rate), Arrivals::Poisson) => write!(f, ", {rate} requests/s, Poisson")?,
        }
        if let Some(part) = self.part {
            let (agents, threads) = (part.machines.into(), part.workers.into());
            return write!(f, ", divided among {}, {}", plural(agents, "agent"), plural(threads, "thread"));
        }
        write!(f, ", {}", plural(u64::from(self.threads), "thread"))?;
        if self.processes > 1 {
            write!(f, " in each of {} processes", self.processes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_show_fields_and_hide_credentials() {
        let mut plan = LoadPlan::new(vec!["http://127.0.0.1/".parse().expect("a URL")]);
        plan.headers = [("Connection", "close"), ("authorization", "Bearer secret")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        let settings = plan.settings();
        assert_eq!(settings["header"], "Connection: close; authorization: (hidden)");
        assert_eq!(settings["requests-per-connection"], "1", "a request that says close is the last one");
        assert!(plan.to_string().contains(", 1 request each"));
    }
}
