//! The page of the admin listener. Its script requests the page again and replaces the parts that changed, so every
//! number is written here. A number of `/metrics` is a `data` element with the name and labels of its metric.

use std::fmt::{self, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tenfold_chart::{Curve, Lines, escape};
use tenfold_site::inline_digest;

use super::readings::{Interval, SPAN};
use crate::diagnostics::day;
use crate::status::metrics::{self, MetricsFormat};
use crate::status::report::{CertificateReport, MessageReport, StatusReport, WorkerReport, uptime};

/// The page, with placeholders for its title and content.
const PAGE: &str = include_str!("../../../templates/admin.html");

/// The most rows of a table, and the most hosts.
const MOST: usize = 64;
/// The number of days before its end from which a certificate is marked.
const SOON: u64 = 14;

/// The `Content-Security-Policy`: the style and the script of the page, and requests to the same listener.
pub(super) static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        inline_digest(PAGE, "style"),
        inline_digest(PAGE, "script")
    )
});

/// The page for a report and the rates before it, at `now` in seconds since 1970.
pub(super) fn html(report: &Arc<StatusReport>, intervals: &[Interval], now: u64) -> String {
    let text = metrics::text_of(Arc::clone(report), MetricsFormat::Prometheus);
    let source = PageSource { report, samples: Samples::of(&text), intervals, now };
    let title = format!("Tenfold on {}", report.listen.join(", "));
    let (before, rest) = PAGE.split_once("{title}").expect("the template has a title");
    let (between, after) = rest.split_once("{content}").expect("the template has a content");
    let mut page = format!("{before}{}{between}", escape(&title));
    source.write(&mut page).expect("writing to a String does not fail");
    page + after
}

/// The samples of `/metrics`, in their order.
struct Samples<'m>(Vec<(&'m str, &'m str)>);

impl<'m> Samples<'m> {
    fn of(text: &'m str) -> Samples<'m> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Samples(lines.filter_map(|line| line.rsplit_once(' ')).collect())
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok())
    }

    /// The number of a metric, shown in this form. Without a sample there is no number.
    fn number(&self, name: &str, form: impl Fn(f64) -> String) -> String {
        self.value(name).map_or_else(|| "\u{2013}".to_owned(), |value| data(name, value, &form(value)))
    }

    /// The value of a metric's only label, and the number, of each sample above zero.
    fn family<'s>(
        &'s self,
        name: &'s str,
        label: &'s str,
    ) -> impl Iterator<Item = (&'m str, &'m str, f64)> + 's {
        self.0.iter().filter_map(move |(known, value)| {
            let rest = known.strip_prefix(name)?.strip_prefix('{')?.strip_prefix(label)?;
            let label = rest.strip_prefix("=\"")?.strip_suffix("\"}")?;
            let value = value.parse::<f64>().ok().filter(|value| *value > 0.0)?;
            Some((*known, label, value))
        })
    }
}

fn data(name: &str, value: f64, shown: &str) -> String {
    format!("<data value=\"{value}\" title=\"{}\">{}</data>", escape(name), escape(shown))
}

struct PageSource<'p> {
    report: &'p StatusReport,
    samples: Samples<'p>,
    intervals: &'p [Interval],
    now: u64,
}

impl PageSource<'_> {
    fn write(&self, page: &mut String) -> fmt::Result {
        self.write_server(page)?;
        self.write_now(page)?;
        self.write_charts(page)?;
        self.write_families(page)?;
        self.write_workers(page)?;
        self.write_certificates(page)?;
        self.write_hosts(page)?;
        self.write_messages(page)
    }

    fn write_server(&self, page: &mut String) -> fmt::Result {
        let report = self.report;
        let (class, state) = match report.state() {
            state @ "serving" => ("good", state),
            state => ("bad", state),
        };
        let StatusReport { version, engine, topology, send, process, generation, .. } = report;
        let up = self.samples.number("tenfold_uptime_seconds", |seconds| uptime(seconds as u64));
        let reloads = match report.reloads.last_failed {
            true => "; <span class=\"bad\">the last reload failed</span>",
            false => "",
        };
        write!(
            page,
            "<section id=\"server\" aria-label=\"Server\"><p><span class=\"{class}\">{state}</span> on {}, up {up}</p>\
             <p>version {}, engine {}, topology {}, send {}, process {process}, configuration {generation}{reloads}</p>\
             </section>",
            escape(&report.listen.join(", ")),
            escape(version),
            escape(engine),
            escape(topology),
            escape(send)
        )
    }

    fn write_now(&self, page: &mut String) -> fmt::Result {
        let last = self.intervals.last();
        let rate = last.map_or("\u{2013}".to_owned(), |last| format!("{}/s", decimal(last.requests)));
        let bytes = last.map_or("\u{2013}".to_owned(), |last| format!("{}/s", size(last.bytes)));
        let time =
            |part: fn(&Interval) -> Option<f64>| last.and_then(part).map_or("\u{2013}".to_owned(), duration);
        let (samples, total) = (&self.samples, |name: &str| self.samples.number(name, count));
        let requests: f64 =
            samples.family("tenfold_requests_by_version_total", "version").map(|(_, _, value)| value).sum();
        let tiles = [
            ("Requests", rate, format!("{} in total", count(requests))),
            ("Sent", bytes, format!("{} in total", samples.number("tenfold_sent_bytes_total", size))),
            ("Latency (median)", time(|last| last.median), "until the last byte".to_owned()),
            ("Latency (99 %)", time(|last| last.p99), "until the last byte".to_owned()),
            (
                "Connections",
                total("tenfold_connections"),
                format!("{} accepted", total("tenfold_connections_accepted_total")),
            ),
            (
                "Workers",
                total("tenfold_workers{state=\"serving\"}"),
                format!(
                    "restarts {}, stuck {}, panics {}",
                    total("tenfold_worker_restarts_total"),
                    total("tenfold_workers_stuck_total"),
                    total("tenfold_panics_total")
                ),
            ),
            (
                "Errors",
                total("tenfold_diagnostics_total{level=\"error\"}"),
                format!("warnings {}", total("tenfold_diagnostics_total{level=\"warning\"}")),
            ),
        ];
        page.push_str("<section id=\"now\" aria-label=\"Now\"><dl>");
        for (name, value, more) in tiles {
            write!(page, "<div><dt>{name}</dt><dd>{value}<small>{more}</small></dd></div>")?;
        }
        page.push_str("</dl></section>");
        Ok(())
    }

    fn write_charts(&self, page: &mut String) -> fmt::Result {
        let curve = |of: fn(&Interval) -> Option<f64>| -> Vec<(f64, f64)> {
            let across = |ago: Duration| 1.0 - ago.as_secs_f64() / SPAN.as_secs_f64();
            let points = self.intervals.iter().filter_map(|one| Some((across(one.ago), of(one)?)));
            points.filter(|(across, _)| *across >= 0.0).collect()
        };
        let all = [
            ("rate", "Requests per second", linear(curve(|one| Some(one.requests)), 1000.0, decimal)),
            (
                "latency",
                "Latency of responses",
                logarithmic(vec![("p99", curve(|one| one.p99)), ("p50", curve(|one| one.median))]),
            ),
            ("bytes", "Bytes per second", linear(curve(|one| Some(one.bytes)), 1024.0, size)),
        ];
        for (id, name, lines) in all {
            write!(page, "<section id=\"{id}\"><h2>{name}</h2>")?;
            match lines {
                Some(lines) => page.push_str(&lines.draw(&format!("{name} in the last five minutes"))),
                None => page.push_str("<p>The chart needs two readings with requests between them.</p>"),
            }
            page.push_str("</section>");
        }
        Ok(())
    }

    /// Writes the tables of metrics with one label.
    fn write_families(&self, page: &mut String) -> fmt::Result {
        let families = [
            ("statuses", "Statuses", "Status", "tenfold_responses_total", "code"),
            ("refusals", "Refusals", "Reason", "tenfold_refusals_total", "reason"),
            ("versions", "Versions of HTTP", "Version", "tenfold_requests_by_version_total", "version"),
            ("handshakes", "TLS handshakes", "Result", "tenfold_tls_handshakes_total", "result"),
            ("lines", "Lines of the access log", "Result", "tenfold_log_lines_total", "result"),
        ];
        for (id, title, head, name, label) in families {
            let all: Vec<_> = self.samples.family(name, label).collect();
            let total: f64 = all.iter().map(|(_, _, value)| value).sum();
            write!(page, "<section id=\"{id}\"><h2>{title}</h2>")?;
            if all.is_empty() {
                page.push_str("<p>none</p></section>");
                continue;
            }
            write!(
                page,
                "<table><thead><tr><th>{head}</th><th class=\"number\">Number</th><th class=\"number\">Share</th>\
                 </tr></thead><tbody>"
            )?;
            for (name, label, value) in all.into_iter().take(MOST) {
                let share = value / total * 100.0;
                let number = data(name, value, &count(value));
                write!(
                    page,
                    "<tr><td>{}</td><td class=\"number\">{number}</td><td class=\"number\">{share:.1} %</td></tr>",
                    escape(label)
                )?;
            }
            page.push_str("</tbody></table></section>");
        }
        Ok(())
    }

    fn write_workers(&self, page: &mut String) -> fmt::Result {
        page.push_str(
            "<section id=\"workers\"><h2>Workers</h2><table><thead><tr><th>Worker</th><th>State</th>\
             <th class=\"number\">Open</th><th class=\"number\">Requests</th><th class=\"number wide\">Share</th>\
             <th class=\"number\">Memory</th><th class=\"number\">Restarts</th><th class=\"number wide\">Process</th>\
             </tr></thead><tbody>",
        );
        for worker in self.report.workers.iter().take(MOST) {
            self.write_worker(page, worker)?;
        }
        page.push_str("</tbody></table>");
        write_rest(page, self.report.workers.len())?;
        page.push_str("</section>");
        Ok(())
    }

    fn write_worker(&self, page: &mut String, worker: &WorkerReport) -> fmt::Result {
        let name = worker.name();
        let number = |metric: &str, form: fn(f64) -> String| {
            let generation = worker.generation;
            self.samples.number(&format!("{metric}{{worker=\"{name}\",generation=\"{generation}\"}}"), form)
        };
        let class = if worker.state == "serving" { "good" } else { "bad" };
        write!(
            page,
            "<tr><td>{name}</td><td><span class=\"{class}\">{}</span></td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number wide\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number wide\">{}</td></tr>",
            escape(&worker.state),
            number("tenfold_worker_connections", count),
            number("tenfold_worker_requests_total", count),
            worker.share.map_or("\u{2013}".to_owned(), |share| format!("{:.1} %", share * 100.0)),
            number("tenfold_worker_memory_bytes", size),
            worker.restarts,
            worker.process.map_or("\u{2013}".to_owned(), |process| process.to_string())
        )
    }

    fn write_certificates(&self, page: &mut String) -> fmt::Result {
        page.push_str("<section id=\"certificates\"><h2>Certificates</h2>");
        let all = &self.report.certificates;
        if all.is_empty() {
            page.push_str("<p>none: the server has no TLS</p></section>");
            return Ok(());
        }
        page.push_str("<table><thead><tr><th>Names</th><th>Expires</th><th>Left</th></tr></thead><tbody>");
        for certificate in all.iter().take(MOST) {
            let CertificateReport { names, expires_unix_seconds } = certificate;
            let soon = self.now.saturating_add(SOON * 86_400);
            let class = if expires_unix_seconds.saturating_sub_unsigned(soon) < 0 { "bad" } else { "good" };
            let metric =
                format!("tenfold_certificate_expires_timestamp_seconds{{name=\"{}\"}}", certificate.name());
            let others = names.len().saturating_sub(MOST_NAMES);
            let others = if others > 0 { format!(" and {others} more") } else { String::new() };
            write!(
                page,
                "<tr><td>{}{others}</td><td>{}</td><td><span class=\"{class}\">{}</span></td></tr>",
                escape(&names[..names.len().min(MOST_NAMES)].join(" ")),
                self.samples.number(&metric, |seconds| day::of(seconds as u64)),
                certificate.left(self.now)
            )?;
        }
        page.push_str("</tbody></table>");
        write_rest(page, all.len())?;
        page.push_str("</section>");
        Ok(())
    }

    fn write_hosts(&self, page: &mut String) -> fmt::Result {
        let all = &self.report.hosts;
        let number = self.samples.number("tenfold_hosts", count);
        write!(page, "<section id=\"hosts\"><h2>Hosts ({number})</h2>")?;
        match all.is_empty() {
            true => page.push_str("<p>All hosts have the same site.</p>"),
            false => {
                let shown = &all[..all.len().min(MOST)];
                write!(page, "<p>{}</p>", escape(&shown.join(", ")))?;
                write_rest(page, all.len())?;
            }
        }
        page.push_str("</section>");
        Ok(())
    }

    fn write_messages(&self, page: &mut String) -> fmt::Result {
        page.push_str("<section id=\"messages\"><h2>Latest errors and warnings</h2>");
        let all = &self.report.diagnostics.latest;
        if all.is_empty() {
            page.push_str("<p>none</p></section>");
            return Ok(());
        }
        page.push_str("<ul>");
        for MessageReport { unix_seconds, level, text } in all {
            let time = day::moment(*unix_seconds);
            write!(
                page,
                "<li><time datetime=\"{time}\">{}</time> <span class=\"bad\">{}</span> {}</li>",
                time.replace('T', " ").trim_end_matches('Z'),
                escape(level),
                escape(text)
            )?;
        }
        page.push_str("</ul></section>");
        Ok(())
    }
}

/// The most names of a certificate.
const MOST_NAMES: usize = 5;

/// Writes the number of entries that are not shown.
fn write_rest(page: &mut String, all: usize) -> fmt::Result {
    match all.saturating_sub(MOST) {
        0 => Ok(()),
        rest => write!(page, "<p>{rest} more are in the report.</p>"),
    }
}

/// A chart of a curve from zero, whose units are powers of `base`; `None` without two points.
fn linear(points: Vec<(f64, f64)>, base: f64, shown: fn(f64) -> String) -> Option<Lines> {
    let most = points.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let unit = base.powf(most.log(base).floor());
    let top = ceiling(most / unit) * unit;
    let up = [0.0, 0.5, 1.0].map(|place| (place, shown(top * place)));
    chart(vec![("", points)], up.to_vec(), shown, |value| value / top)
}

/// A chart of times over powers of ten; `None` without two points.
fn logarithmic(curves: Vec<(&str, Vec<(f64, f64)>)>) -> Option<Lines> {
    let powers = || curves.iter().flat_map(|(_, points)| points).map(|(_, value)| value.max(1e-7).log10());
    let low = powers().fold(f64::MAX, f64::min).floor();
    let high = powers().fold(f64::MIN, f64::max).ceil().max(low + 1.0);
    let place = move |value: f64| (value.max(1e-7).log10() - low) / (high - low);
    let up = (low as i32..=high as i32).map(|power| {
        let value = 10_f64.powi(power);
        (place(value), duration(value))
    });
    let up = up.collect();
    chart(curves, up, duration, place)
}

fn chart(
    curves: Vec<(&str, Vec<(f64, f64)>)>,
    up: Vec<(f64, String)>,
    shown: fn(f64) -> String,
    place: impl Fn(f64) -> f64,
) -> Option<Lines> {
    let curves: Vec<Curve> = curves
        .into_iter()
        .filter(|(_, points)| points.len() > 1)
        .map(|(name, points)| Curve {
            label: format!("{name} {}", points.last().map_or_else(String::new, |(_, value)| shown(*value)))
                .trim_start()
                .to_owned(),
            points: points.into_iter().map(|(across, value)| (across, place(value))).collect(),
        })
        .collect();
    let across =
        [(0.2, "4 min ago"), (0.6, "2 min ago"), (1.0, "now")].map(|(at, name)| (at, name.to_owned()));
    (!curves.is_empty()).then_some(Lines { across: across.to_vec(), up, curves })
}

/// The least of 1, 2, 5, 10, 20 and so on that is not less.
fn ceiling(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|top| *top >= value).unwrap_or(value)
}

/// A number with a comma after thousands.
fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate: with a decimal below 10.
fn decimal(value: f64) -> String {
    if value < 9.95 && value.fract() != 0.0 { format!("{value:.1}") } else { count(value) }
}

/// A size in units of powers of 1024.
fn size(bytes: f64) -> String {
    let mut size = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 999.5 {
            let decimals = usize::from(unit != "B" && size < 9.95);
            return format!("{size:.decimals$}\u{a0}{unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.1}\u{a0}TiB")
}

/// A time in seconds, in a unit with at least one digit before the point.
fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        ..0.000_999_5 => (seconds * 1e6, "µs"),
        ..0.999_5 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let decimals = usize::from(value < 9.95 && unit != "µs" && value.fract() > 1e-9);
    format!("{value:.decimals$}\u{a0}{unit}")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::status::admin::readings::Readings;
    use crate::status::counters::Sums;
    use crate::status::report::tests::report;
    use crate::status::report::{DiagnosticsReport, Numbers};

    fn message(text: &str) -> MessageReport {
        MessageReport { unix_seconds: 60, level: "error".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_named_metric_has_its_number() {
        let mut report = report();
        report.workers[0].memory = Some(3 << 20);
        report.certificates =
            vec![CertificateReport { names: vec!["a.test".to_owned()], expires_unix_seconds: 86_400 * 30 }];
        report.total.responses = [("200".to_owned(), 3000), ("404".to_owned(), 1)].into();
        report.total.requests = 3001;
        report.total.versions.http_1_1 = 3001;
        let page = html(&Arc::new(report), &[], 86_400);
        assert_eq!(page.matches(">\u{2013}</td>").count(), 1, "the share of the worker: {page}");
        for shown in [
            "<data value=\"3000\" title=\"tenfold_responses_total{code=&quot;200&quot;}\">3,000</data>",
            "<data value=\"3145728\" title=\"tenfold_worker_memory_bytes{worker=&quot;1&quot;,generation=&quot;1&quot;}\">",
            ">1970-01-31</data></td><td><span class=\"good\">29 days left</span>",
            "<small>3,001 in total</small>",
            "All hosts have the same site.",
        ] {
            assert!(page.contains(shown), "{shown} in {page}");
        }
    }

    #[test]
    fn a_page_is_bounded_and_escapes_its_texts() {
        let mut report = report();
        let wild = "<script>\"'&".repeat(20);
        report.hosts = (0..10_000).map(|number| format!("host-{number}.example.org")).collect();
        report.certificates = (0..1000)
            .map(|number| CertificateReport {
                names: (0..100).map(|name| format!("{name}.{number}.example.org")).collect(),
                expires_unix_seconds: 0,
            })
            .collect();
        report.diagnostics = DiagnosticsReport { errors: 1, warnings: 1, latest: vec![message(&wild); 16] };
        report.workers = (1..=1024)
            .map(|number| WorkerReport {
                worker: Some(number),
                generation: 1,
                process: Some(4_000_000),
                state: "serving".to_owned(),
                restarts: 0,
                memory: Some(1 << 40),
                share: Some(0.1),
                numbers: Numbers::of(&Sums::default()),
            })
            .collect();
        let (start, mut readings) = (Instant::now(), Readings::default());
        for number in 0..200 {
            report.total.requests += number * 1_000_000;
            report.total.bytes += number * 1_000_000_000;
            readings.note(&report, start + Duration::from_secs(2 * number));
        }
        let intervals = readings.intervals(start + Duration::from_secs(400));
        let page = html(&Arc::new(report), &intervals, 1);
        assert!(page.len() < 128 << 10, "{} bytes", page.len());
        assert_eq!(page.matches("<script>").count(), 1, "the script of the page");
        assert_eq!(page.matches("<svg ").count(), 2, "rates, and no latencies");
        assert!(page.contains("936 more are in the report.") && page.contains(">expired</span>"));
    }

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!([0.0, 999.0, 1000.0, 1_234_567.0].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.25, 7.0, 12.3].map(decimal), ["0", "0.2", "7", "12"]);
        assert_eq!([17.0, 1234.0, 349_000_000.0].map(size), ["17\u{a0}B", "1.2\u{a0}KiB", "333\u{a0}MiB"]);
        assert_eq!(
            [0.000_016, 0.0012, 0.05, 2.5].map(duration),
            ["16\u{a0}µs", "1.2\u{a0}ms", "50\u{a0}ms", "2.5\u{a0}s"]
        );
        assert_eq!([0.0, 1.0, 1.5, 499.0, 500.1].map(ceiling), [1.0, 1.0, 2.0, 500.0, 1000.0]);
    }
}
