//! The report as metrics: OpenMetrics 1.0 if the client requests it, otherwise the older text format of Prometheus.

use std::fmt::{Error, Write};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::latency::Histogram;
use super::report::Numbers;
use super::report::StatusReport;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    OpenMetrics,
    Prometheus,
}

impl MetricsFormat {
    /// The format for the values of `Accept`: OpenMetrics only if the client names it.
    pub(crate) fn accepted<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> MetricsFormat {
        let open = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).to_ascii_lowercase();
            text.split(',').any(|range| {
                let mut pieces = range.split(';').map(str::trim);
                let named = pieces.next() == Some("application/openmetrics-text");
                let weight = pieces.find_map(|piece| piece.strip_prefix("q=")).map(str::parse::<f32>);
                named && weight.is_none_or(|weight| weight.is_ok_and(|weight| weight > 0.0))
            })
        };
        if fields.any(open) { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus }
    }

    /// The media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            MetricsFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The metrics of a report.
pub(crate) fn text_of(report: Arc<StatusReport>, format: MetricsFormat) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ReportMetrics(report)));
    let mut open = String::new();
    text::encode(&mut open, &registry).expect("a string takes all that is written");
    match format {
        MetricsFormat::OpenMetrics => open,
        MetricsFormat::Prometheus => older(&open),
    }
}

/// Converts OpenMetrics to the older format: the description of a counter has the name of its sample, and no line marks
/// the end.
fn older(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let counters: Vec<_> =
        open.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    for line in open.lines().filter(|line| *line != "# EOF") {
        let described = line.strip_prefix("# ").and_then(|rest| rest.split_once(' '));
        let counter = described.and_then(|(what, rest)| {
            let (name, rest) = rest.split_once(' ')?;
            counters.contains(&name).then_some((what, name, rest))
        });
        let written = match counter {
            Some((what, name, rest)) => writeln!(text, "# {what} {name}_total {rest}"),
            None => writeln!(text, "{line}"),
        };
        written.expect("a string takes all that is written");
    }
    text
}

#[derive(Debug)]
struct ReportMetrics(Arc<StatusReport>);

/// A label and its value.
type Label<'a> = (&'static str, &'a str);

/// Encodes all metrics of a report.
struct Encoder<'e>(DescriptorEncoder<'e>);

impl Encoder<'_> {
    fn counters<'l>(
        &mut self,
        (name, help): (&str, &str),
        samples: impl IntoIterator<Item = (Vec<Label<'l>>, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        samples.into_iter().try_for_each(|(labels, count)| {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
        })
    }

    fn gauges<'l>(
        &mut self,
        (name, help): (&str, &str),
        samples: impl IntoIterator<Item = (Vec<Label<'l>>, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        samples
            .into_iter()
            .try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_gauge(&value))
    }

    fn counter(&mut self, name: &str, count: u64, help: &str) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    fn gauge(&mut self, name: &str, value: u64, help: &str) -> Result<(), Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn histogram(&mut self, name: &str, help: &str, times: &Histogram) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(times.seconds(), times.count(), &times.by_power(), None)
    }
}

/// Encodes metrics without labels: kind, name, value and description.
macro_rules! metrics {
    ($to:ident: $($kind:ident $name:literal = $value:expr, $help:literal;)*) => {
        $($to.$kind($name, $value, $help)?;)*
    };
}

impl Collector for ReportMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (report, mut encoder) = (&self.0, Encoder(encoder));
        encode_server(report, &mut encoder)?;
        encode_requests(report, &mut encoder)?;
        encode_connections(&report.total, &mut encoder)?;
        encode_workers(report, &mut encoder)
    }
}

fn encode_server(report: &StatusReport, to: &mut Encoder<'_>) -> Result<(), Error> {
    let StatusReport { version, engine, topology, send, .. } = report;
    let build = vec![
        ("version", &version[..]),
        ("engine", &engine[..]),
        ("topology", &topology[..]),
        ("send", &send[..]),
    ];
    to.gauges(("tenfold_build_info", "The version, and the mechanisms that run"), [(build, 1)])?;
    let reloads = &report.reloads;
    metrics! { to:
        gauge "tenfold_uptime_seconds" = report.uptime_seconds, "Time since the server started";
        gauge "tenfold_ready" = u64::from(report.ready), "Whether new requests are served";
    }
    to.counters(
        ("tenfold_config_reloads", "Reloads of the configuration, by result"),
        [(vec![("result", "success")], reloads.succeeded), (vec![("result", "failure")], reloads.failed)],
    )?;
    metrics! { to:
        gauge "tenfold_config_last_reload_successful" = u64::from(!reloads.last_failed), "Whether the last reload succeeded";
        gauge "tenfold_config_loaded_timestamp_seconds" = reloads.loaded_unix_seconds, "When the configuration that serves was loaded";
    }
    let upgrades = &report.upgrades;
    to.counters(
        ("tenfold_upgrades", "Upgrades to another program, by result"),
        [(vec![("result", "success")], upgrades.succeeded), (vec![("result", "failure")], upgrades.failed)],
    )?;
    let ends = report.certificates.iter().map(|certificate| {
        let end = u64::try_from(certificate.expires_unix_seconds).unwrap_or_default();
        (vec![("name", certificate.name())], end)
    });
    to.gauges(
        ("tenfold_certificate_expires_timestamp_seconds", "When a certificate expires, by its first name"),
        ends,
    )?;
    metrics! { to:
        gauge "tenfold_hosts" = report.hosts.len() as u64, "Names of hosts with a site of their own";
    }
    let diagnostics = &report.diagnostics;
    to.counters(
        ("tenfold_diagnostics", "Messages of the server, by level"),
        [(vec![("level", "error")], diagnostics.errors), (vec![("level", "warning")], diagnostics.warnings)],
    )
}

fn encode_requests(report: &StatusReport, to: &mut Encoder<'_>) -> Result<(), Error> {
    let total = &report.total;
    if let Some(observed) = &report.observed {
        let by = observed
            .requests
            .iter()
            .map(|(method, class, count)| (vec![("method", &method[..]), ("status", &class[..])], *count));
        to.counters(("tenfold_requests", "Answered requests, by method and class of status"), by)?;
        to.histogram(
            "tenfold_first_byte_seconds",
            "Time from a complete request head until the first byte of the response is sent or ready to be",
            &observed.first_byte,
        )?;
        to.histogram(
            "tenfold_response_seconds",
            "Time from a complete request head until the system has taken the last byte of the response",
            &observed.last_byte,
        )?;
    }
    let versions = total.versions;
    to.counters(
        ("tenfold_requests_by_version", "Answered requests, by version of HTTP"),
        [("1.0", versions.http_1_0), ("1.1", versions.http_1_1), ("2", versions.http_2)]
            .map(|(version, count)| (vec![("version", version)], count)),
    )?;
    to.counters(
        ("tenfold_http2_resets", "HTTP/2 streams that ended with RST_STREAM, by side"),
        [("client", total.http2.client_resets), ("server", total.http2.server_resets)]
            .map(|(side, count)| (vec![("side", side)], count)),
    )?;
    let goaways = total.http2.goaways.iter().map(|(code, count)| (vec![("code", &code[..])], *count));
    to.counters(("tenfold_http2_goaways", "HTTP/2 connections that ended with GOAWAY, by code"), goaways)?;
    let codes = total.responses.iter().map(|(code, count)| (vec![("code", &code[..])], *count));
    to.counters(("tenfold_responses", "Responses by status code, refusals included"), codes)?;
    let reasons = total.refusals.iter().map(|(reason, count)| (vec![("reason", &reason[..])], *count));
    to.counters(("tenfold_refusals", "Refused requests and connections, by reason"), reasons)?;
    metrics! { to:
        counter "tenfold_sent_bytes" = total.bytes, "Bytes that the system has taken";
        counter "tenfold_cache_hits" = total.cache_hits, "Responses that a worker had whole in memory, for files without encodings";
        gauge "tenfold_offload_pending" = total.offload.pending, "Work that other threads do, or that waits for them";
        counter "tenfold_offload_jobs" = total.offload.begun, "Work that was given to other threads";
        counter "tenfold_offload_rejected" = total.offload.rejected, "Work for which the queue was full";
    }
    Ok(())
}

fn encode_connections(total: &Numbers, to: &mut Encoder<'_>) -> Result<(), Error> {
    metrics! { to:
        gauge "tenfold_connections" = total.connections.open, "Open connections";
        counter "tenfold_connections_accepted" = total.connections.accepted, "Accepted connections";
        counter "tenfold_connections_evicted" = total.connections.evicted, "Idle connections that were closed for new ones";
    }
    let tls = &total.tls;
    to.counters(
        ("tenfold_tls_handshakes", "TLS handshakes, by result"),
        [("full", tls.full), ("resumed", tls.resumed), ("failed", tls.failed)]
            .map(|(result, count)| (vec![("result", result)], count)),
    )?;
    to.counters(
        ("tenfold_log_lines", "Lines of the access log, by result"),
        [("written", total.log_lines), ("lost", total.log_lines_lost), ("dropped", total.log_lines_dropped)]
            .map(|(result, count)| (vec![("result", result)], count)),
    )?;
    metrics! { to:
        counter "tenfold_panics" = total.panics, "Panics of workers";
        counter "tenfold_refused_calls" = total.refused_calls, "System calls that the sandbox refused";
    }
    Ok(())
}

fn encode_workers(report: &StatusReport, to: &mut Encoder<'_>) -> Result<(), Error> {
    let names: Vec<_> =
        report.workers.iter().map(|worker| (worker.name(), worker.generation.to_string())).collect();
    let all = || report.workers.iter().zip(&names);
    let count = |state: &str| report.workers.iter().filter(|worker| worker.state == state).count() as u64;
    to.gauges(
        ("tenfold_workers", "Workers, by state"),
        ["starting", "serving", "stuck", "restarting", "draining", "failed"]
            .map(|state| (vec![("state", state)], count(state))),
    )?;
    metrics! { to:
        counter "tenfold_worker_restarts" = report.restarts, "Workers that took the place of one that died";
        counter "tenfold_workers_stuck" = report.stuck, "Workers that were killed because their loop was stuck";
    }
    let memory = all().filter_map(|(worker, (name, generation))| {
        Some((vec![("worker", &name[..]), ("generation", &generation[..])], worker.memory?))
    });
    to.gauges(("tenfold_worker_memory_bytes", "Memory that the process of a worker occupies"), memory)?;
    let requests = all().filter(|(worker, _)| worker.worker.is_some()).map(|(worker, (name, generation))| {
        (vec![("worker", &name[..]), ("generation", &generation[..])], worker.numbers.requests)
    });
    to.counters(("tenfold_worker_requests", "Requests that a worker answered"), requests)?;
    let open = all().map(|(worker, (name, generation))| {
        let labels = vec![("worker", &name[..]), ("generation", &generation[..])];
        (labels, worker.numbers.connections.open)
    });
    to.gauges(("tenfold_worker_connections", "Open connections of a worker"), open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_names_counters_as_their_samples_are_named() {
        let open = "# HELP a_x Some.\n# TYPE a_x counter\na_x_total 1\n# HELP b Other.\n# TYPE b gauge\nb 2\n# EOF\n";
        let expected = "# HELP a_x_total Some.\n# TYPE a_x_total counter\na_x_total 1\n# HELP b Other.\n# TYPE b gauge\nb 2\n";
        assert_eq!(older(open), expected);
    }

    #[test]
    fn openmetrics_is_for_clients_that_name_it() {
        for (accept, expected) in [
            ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3", MetricsFormat::OpenMetrics),
            ("text/plain, Application/OpenMetrics-Text", MetricsFormat::OpenMetrics),
            ("application/openmetrics-text;q=0", MetricsFormat::Prometheus),
            ("application/openmetrics-texts, */*", MetricsFormat::Prometheus),
        ] {
            assert_eq!(MetricsFormat::accepted([accept.as_bytes()].into_iter()), expected, "{accept}");
        }
        assert_eq!(MetricsFormat::accepted(std::iter::empty()), MetricsFormat::Prometheus);
    }
}
