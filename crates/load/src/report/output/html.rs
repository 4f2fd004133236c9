//! The report as a page for a browser.

use std::fmt::Write;

use tenfold_chart::{
    Bar, Curve, LatencyCurve, Lines, bars, document, escape, figure, latencies as percentiles, shares,
};

use crate::report::metrics::LATENCIES;
use crate::report::output::bars::rows;
use crate::report::output::text::{brief, text};
use crate::report::output::units::{bytes, number, time};
use crate::report::summary::{Batch, Distribution, LoadReport, PERCENTILES, RunSummary};

/// Formats the report as one HTML file: the table over several runs, charts of the last run, and all results as
/// text. `date` is the end of the measurement.
pub fn html(report: &LoadReport, date: &str) -> String {
    let url = report.urls.first().map_or("", String::as_str);
    let title = report.label.as_deref().unwrap_or(url);
    let mut page = format!("<h1>{}</h1>", escape(title));
    if report.label.is_some() {
        let _ = write!(page, "<p>{}</p>", escape(url));
    }
    let _ = write!(page, "<p>{}</p><p class=\"facts\">{}</p>", escape(&report.plan), escape(date));
    if let Some(run) = report.runs.last() {
        if report.runs.len() > 1 {
            let _ = write!(page, "<pre class=\"wide\" tabindex=\"0\">{}</pre>", escape(&brief(report)));
            let _ = write!(page, "<p class=\"facts\">The last of {} runs:</p>", report.runs.len());
        }
        first_screen(&mut page, report, run);
        page += "<div class=\"charts\">";
        charts(&mut page, report, run);
        page += "</div>";
        statuses(&mut page, run);
    }
    let _ = write!(
        page,
        "<section><h2>All results</h2><pre class=\"wide\" tabindex=\"0\">{}</pre></section>",
        escape(&text(report))
    );
    settings(&mut page, report);
    document(&format!("tenfold bench: {title}"), &page)
}

fn first_screen(page: &mut String, report: &LoadReport, run: &RunSummary) {
    let invalid = report.invalid();
    let (class, verdict) = match (report.interrupted(), invalid.is_empty()) {
        (_, false) => ("reversed", "INVALID"),
        (true, true) => ("open", "INTERRUPTED"),
        (false, true) => ("holds", "VALID"),
    };
    let _ = write!(page, "<p class=\"counts\"><span class=\"badge {class}\">{verdict}</span>");
    let _ = write!(page, "<span>{} responses/s</span>", number(run.rate));
    let found = |name: &str| run.latency_us.as_ref()?.percentile(name);
    for (name, words) in [("p50", "half within"), ("p99", "99 % within")] {
        if let Some(value) = found(name) {
            let _ = write!(page, "<span>{words} {}</span>", time(value));
        }
    }
    let _ = write!(
        page,
        "<span>{}</span><span>{} errors</span></p>",
        escape(&format!("{}/s received", bytes(run.bytes as f64 / run.measured))),
        number(run.errors() as f64)
    );
    let (reasons, remarks) = (invalid.iter().map(String::as_str), run.notes.iter().map(String::as_str));
    for said in reasons.chain(remarks) {
        let _ = write!(page, "<p class=\"facts\">{}</p>", escape(said));
    }
}

fn charts(page: &mut String, report: &LoadReport, run: &RunSummary) {
    let names: Vec<&str> = PERCENTILES.iter().map(|(name, _)| *name).chain(["max"]).collect();
    let curves: Vec<LatencyCurve> =
        LATENCIES.iter().filter_map(|(_, name, find)| Some(latency_curve(name.trim(), find(run)?))).collect();
    if !curves.is_empty() {
        let caption = "Latency by percentile";
        *page += &figure(caption, &percentiles(caption, &names, &curves));
    }
    if let Some(rows) = run.latency_us.as_ref().and_then(rows) {
        let all = rows.iter().map(|(_, count)| count).sum::<u64>() as f64;
        let bar = |(to, count): &(f64, u64)| Bar {
            label: format!("up to {}", time(*to)),
            value: *count as f64,
            shown: format!("{:.2} %", 100.0 * *count as f64 / all),
            ..Bar::default()
        };
        let caption = "Latencies of responses";
        *page += &figure(caption, &shares(caption, &rows.iter().map(bar).collect::<Vec<_>>()));
    }
    if run.batches.len() > 1 {
        let caption = "Responses per second in each part of the run";
        *page += &figure(caption, &course(caption, &run.batches));
    }
    if report.runs.len() > 1 {
        let bar = |(number_of, run): (usize, &RunSummary)| Bar {
            label: format!("run {number_of}"),
            value: run.rate,
            shown: format!("{}/s", number(run.rate)),
            interval: run.rate_interval.map(|interval| (interval.low, interval.high)),
            ..Bar::default()
        };
        let caption = "Responses per second in each run, with 95 % intervals";
        let all: Vec<Bar> = (1..).zip(&report.runs).map(bar).collect();
        *page += &figure(caption, &bars(caption, None, &all));
    }
}

fn latency_curve(name: &str, distribution: &Distribution) -> LatencyCurve {
    let found =
        PERCENTILES.iter().filter_map(|(name, _)| Some(((*name).to_owned(), distribution.percentile(name)?)));
    let all = found.chain([("max".to_owned(), distribution.max)]);
    LatencyCurve {
        label: name.to_owned(),
        points: all.map(|(name, microseconds)| (name, microseconds / 1e3)).collect(),
    }
}

fn course(title: &str, batches: &[Batch]) -> String {
    let most = batches.iter().map(|batch| batch.rate).fold(f64::MIN_POSITIVE, f64::max);
    let last = (batches.len() - 1) as f64;
    let points = (0..).map(f64::from).zip(batches).map(|(place, batch)| (place / last, batch.rate / most));
    Lines {
        across: vec![(0.0, "begin".to_owned()), (1.0, "end".to_owned())],
        up: [0.0, 0.5, 1.0].map(|place| (place, number(place * most))).to_vec(),
        curves: vec![Curve { label: String::new(), points: points.collect() }],
    }
    .draw(title)
}

fn statuses(page: &mut String, run: &RunSummary) {
    if run.statuses.is_empty() {
        return;
    }
    *page += "<section><h2>Responses by status</h2><table><thead><tr><th>status</th>\
              <th class=\"number\">responses, the warm-up included</th></tr></thead><tbody>";
    for (status, count) in &run.statuses {
        let _ = write!(page, "<tr><td>{status}</td><td class=\"number\">{}</td></tr>", number(*count as f64));
    }
    *page += "</tbody></table></section>";
}

fn settings(page: &mut String, report: &LoadReport) {
    *page += "<section><h2>Settings</h2><dl>";
    for (name, value) in &report.settings {
        let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    *page += "</dl></section>";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_page_and_escapes_foreign_text() {
        let run = RunSummary {
            rate: 5_000.0,
            measured: 1.0,
            latency_us: Distribution::of_times((1..=2_000).map(|at| at * 1_000)),
            batches: vec![Batch { rate: 4_000.0 }, Batch { rate: 6_000.0 }],
            statuses: [(200, 5_000)].into(),
            invalid: vec!["the <generator> was the limit".to_owned()],
            ..RunSummary::default()
        };
        let urls = vec!["http://localhost/<script>".to_owned()];
        let early = RunSummary { invalid: Vec::new(), interrupted: true, ..run.clone() };
        let early = html(&LoadReport { runs: vec![early], ..LoadReport::default() }, "");
        assert!(early.contains("INTERRUPTED") && !early.contains(">VALID"), "{early}");
        let page = html(&LoadReport { urls, runs: vec![run; 2], ..LoadReport::default() }, "2026-11-29");
        assert_eq!(page.matches("<svg").count(), 4, "{page}");
        for part in [
            "INVALID",
            "the &lt;generator&gt; was",
            "5,000 responses/s",
            "<td>200</td>",
            "&lt;script&gt;",
            ">2026-11-29<",
        ] {
            assert!(page.contains(part), "{part} is missing: {page}");
        }
        let place = |part: &str| page.find(part).expect(part);
        assert!(
            place("  verdict ") < place("The last of 2 runs:")
                && place("2 runs:") < place("5,000 responses/s")
        );
        assert!(!page.contains("<script") && !page.contains("src="), "{page}");
    }
}
