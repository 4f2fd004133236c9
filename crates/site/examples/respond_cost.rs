//! The cost of a cached response: nanoseconds for each kind, as the minimum of several rounds.
//!
//! `cargo run --release -p tenfold-site --example respond_cost`

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tenfold_http::h1::parse_request;
use tenfold_http::{Out, ResponseWriter, clock};
use tenfold_site::{Settings, Site};
use tenfold_sys::file::Root;

const ROUNDS: u32 = 20;
const TIMES: u32 = 100_000;
/// Responses staged before the output is cleared, as in a pipeline.
const BATCH: u32 = 10;

fn main() {
    let folder = std::env::temp_dir().join(format!("tenfold-respond-cost-{}", std::process::id()));
    fs::create_dir_all(folder.join("docs")).expect("a temporary directory can be made");
    for (name, size) in [("1k.html", 1024), ("4k.html", 4096), ("16k.html", 16384), ("large.bin", 1 << 20)] {
        fs::write(folder.join(name), vec![b'x'; size]).expect("the directory is ours");
    }
    let site = Site::new(Root::open(&folder).expect("the directory was just made"), Settings::default());
    // A constant time: the benchmark measures responses within a second of the last check.
    clock::set(tenfold_http::Instant(1), 4_000_000_000);
    for (what, target, field) in [
        ("1 KiB from memory", "/1k.html", ""),
        ("4 KiB from memory", "/4k.html", ""),
        ("16 KiB, shared", "/16k.html", ""),
        ("1 MiB, by its handle", "/large.bin", ""),
        ("304", "/1k.html", "If-None-Match: *\r\n"),
        ("206, from memory", "/1k.html", "Range: bytes=0-99\r\n"),
        ("301 to a directory", "/docs", ""),
        ("404", "/nothing", ""),
        ("404, a dotfile", "/.git/config", ""),
        ("400", "/%00", ""),
        ("1 KiB, spelled otherwise", "/%31k.html", ""),
    ] {
        let cost = measure(&site, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n"));
        println!("{cost:8.1} ns  {what}");
    }
    fs::remove_dir_all(&folder).expect("the directory is ours");
}

fn measure(site: &Site, request: &str) -> f64 {
    let mut out = Out::new();
    parse_request(&mut request.as_bytes().to_vec(), |request| {
        let request = request.expect("the request is good");
        let mut least = Duration::MAX;
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            for _ in 0..TIMES / BATCH {
                for _ in 0..BATCH {
                    black_box(site.respond(black_box(&request), &mut ResponseWriter::http1(&mut out)));
                }
                out.clear(usize::MAX);
            }
            least = least.min(begin.elapsed());
        }
        least.as_nanos() as f64 / f64::from(TIMES)
    })
}
