//! The demonstration site in a real browser.

use serde_json::{Value, json};
use tenfold_engine::Engine;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::binary;
use tenfold_tests::browser::BrowserPage;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};

use crate::clients::http2::{FILES, ManyFiles, hashes};

pub(crate) const THEME: Theme = Theme {
    name: "browser",
    cases: cases![
        Own on EPOLL: the_site_opens_and_the_film_seeks, light_and_dark_at_every_width, from_page_to_page,
            charts_and_tables_are_readable_on_a_phone, idle_connections_stop_naive_and_not_epoll,
            the_book_is_searched_by_keyboard, a_listing_is_filtered_live_and_fits_a_phone;
        Own on EPOLL_OR_ALL: the_browser_takes_a_large_file_and_a_thousand_at_once;
    ],
};

/// The configuration of its README with short idle timeouts: a browser opens several connections, and a serial engine
/// serves the next connection after the idle timeout of the present one.
fn start(config: &Config) -> Server {
    let launch = demonstration(config);
    if config.serial() { launch.flag("--idle-timeout", "300ms").start() } else { launch.start() }
}

fn demonstration(config: &Config) -> Launch {
    let file = binary::workspace().join("examples/tenfold.toml");
    Launch::bare(config).flag("--config", file.display()).members()
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address)
}

#[track_caller]
fn is_well(page: &mut BrowserPage, what: &str) {
    let complaints = page.complaints();
    assert!(complaints.is_empty(), "{what}: {complaints:#?}");
}

/// Waits for requests of this kind in the access log.
#[track_caller]
fn is_logged(server: &Server, what: &str, words: &[&str]) {
    becomes_true(SOON, what, || {
        server.log().lines().any(|line| words.iter().all(|word| line.contains(word)))
    });
}

fn the_site_opens_and_the_film_seeks(config: &Config) {
    let server = start(config);
    let mut page = BrowserPage::open();
    page.resize(1280, 900, false);
    page.go(&url(&server, "/"));
    let title = page.evaluate("document.title");
    assert!(title.as_str().is_some_and(|title| title.contains("Tenfold")), "{title}");
    let letters = page.evaluate("document.body.innerText.length");
    assert!(letters.as_u64() > Some(500), "{letters} letters are to be seen");
    let served = page.evaluate("document.querySelector('.served').innerText");
    let engine = format!("This page was served by {}, worker 1.", config.engine);
    assert!(served.as_str().is_some_and(|served| served.starts_with(&engine)), "{served}");
    is_well(&mut page, "the home page");
    page.screenshot(&format!("home-{}", config.engine));

    page.go(&url(&server, "/media.html"));
    let pictures =
        "Promise.all([...document.images].map(image => image.decode().then(() => image.naturalWidth)))";
    let widths = page.evaluate(pictures);
    let all_seen =
        widths.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(|w| w.as_u64() > Some(0)));
    assert!(all_seen, "pictures of these widths: {widths}");
    let duration = page.evaluate(
        "new Promise((done, failed) => {
            const film = document.querySelector('video');
            const known = () => done(film.duration);
            film.addEventListener('error', () => failed(film.error.message));
            if (film.readyState >= 1) known(); else film.addEventListener('loadedmetadata', known);
            film.preload = 'auto';
        })",
    );
    let duration = duration.as_f64().expect("a film has a length");
    assert!(duration > 1.0, "{duration} s");
    let middle = duration / 2.0;
    let seek = format!(
        "new Promise((done, failed) => {{
            const film = document.querySelector('video');
            film.addEventListener('error', () => failed(film.error.message));
            film.addEventListener('seeked', () => done(film.currentTime));
            film.currentTime = {middle};
        }})"
    );
    let now = page.evaluate(&seek).as_f64().expect("a film has a time");
    assert!((now - middle).abs() < 0.5, "at {now} s and not at {middle} s");
    is_well(&mut page, "the page with the film");
    page.screenshot(&format!("film-{}", config.engine));
    is_logged(&server, "a part of the film is asked for", &["GET /media/waiting.mp4 ", " 206 "]);
    drop(page);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The brightness of the page's background, from 0 to 765.
fn light(page: &mut BrowserPage) -> u64 {
    let sum = "[document.body, document.documentElement]
        .map(element => getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).map(Number))
        .filter(colour => colour.length < 4 || colour[3] > 0)
        .map(colour => Math.round(colour[0] + colour[1] + colour[2]))[0]";
    page.evaluate(sum).as_u64().expect("the page has a colour")
}

const PAGES: [(&str, &str); 3] = [("home", "/"), ("media", "/media.html"), ("book", "/book/")];

fn light_and_dark_at_every_width(config: &Config) {
    let server = start(config);
    let mut page = BrowserPage::open();
    for (name, path) in PAGES {
        for (form, width, height, mobile) in [("desktop", 1280, 900, false), ("phone", 375, 740, true)] {
            page.resize(width, height, mobile);
            let mut shades = Vec::new();
            for scheme in ["light", "dark"] {
                page.prefer(scheme);
                page.go(&url(&server, path));
                shades.push(light(&mut page));
                let widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]");
                let wide: Vec<u64> =
                    widths.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
                assert!(wide[0] <= u64::from(width), "{name}, {form}: {widths} wide, it scrolls sideways");
                is_well(&mut page, name);
                page.screenshot(&format!("{name}-{form}-{scheme}"));
            }
            assert!(
                shades[0] > 500 && shades[1] < 265,
                "{name}, {form}: light {} and dark {}",
                shades[0],
                shades[1]
            );
        }
    }
    drop(page);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The size of the smallest text of the charts, in pixels.
const SMALLEST: &str = "Math.min(...[...document.querySelectorAll('.chart svg')].map(chart =>
    parseFloat(getComputedStyle(chart).fontSize) * chart.getBoundingClientRect().width / chart.viewBox.baseVal.width))";

/// Whether the edges of the table have the colour of the band that contains it.
const EDGES: &str = "(() => {
    const band = document.querySelector('[aria-labelledby=claims]');
    const edges = getComputedStyle(band.querySelector('.table')).backgroundImage;
    return edges.includes(getComputedStyle(band).backgroundColor);
})()";

fn charts_and_tables_are_readable_on_a_phone(config: &Config) {
    let server = start(config);
    let mut page = BrowserPage::open();
    page.resize(390, 800, true);
    for path in ["/", "/book/explanation/costs.html"] {
        page.go(&url(&server, path));
        let smallest = page.evaluate(SMALLEST);
        assert!(smallest.as_f64() >= Some(12.0), "{path}: text of {smallest} pixels");
    }
    for scheme in ["light", "dark"] {
        page.prefer(scheme);
        page.go(&url(&server, "/"));
        assert_eq!(page.evaluate(EDGES), true, "the edges of the table have another colour in {scheme}");
    }
    drop(page);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The texts of this part of both lanes.
fn in_lanes(page: &mut BrowserPage, part: &str) -> [String; 2] {
    let lanes =
        page.evaluate(&format!("[...document.querySelectorAll('.lane {part}')].map(at => at.textContent)"));
    let [Some(first), Some(second)] = [0, 1].map(|lane| lanes[lane].as_str()) else { panic!("{lanes}") };
    [first, second].map(str::to_owned)
}

/// The responses of both lanes.
fn responses(page: &mut BrowserPage) -> [u64; 2] {
    in_lanes(page, ".count").map(|count| count.parse().expect("a number"))
}

fn idle_connections_stop_naive_and_not_epoll(config: &Config) {
    let first = start(config);
    let address = ReservedAddress::new();
    let mut page = BrowserPage::open();
    page.resize(390, 800, true);
    page.go(&url(&first, &format!("/side-by-side.html?second={}", address.port())));
    becomes_true(SOON, "the second server is missing", || {
        in_lanes(&mut page, ".state")[1].starts_with("No server here yet.")
    });
    let line = page.evaluate("document.querySelector('.line').textContent");
    let end = format!(" serve --config examples/tenfold.toml --engine naive -p {}", address.port());
    assert!(line.as_str().is_some_and(|line| line.ends_with(&end)), "{line}");
    let naive = demonstration(&Config::of(Engine::Naive));
    let second = naive.flag("--listen", &address).start_at(*address);
    becomes_true(SOON, "the page finds both servers", || in_lanes(&mut page, ".by") == ["epoll", "naive"]);
    let width = page.evaluate("document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(390), "{width}");
    page.resize(1280, 900, false);
    page.reload();
    page.evaluate("document.querySelector('.run').click()");
    let drawn =
        "[...document.querySelectorAll('.lane')].map(lane => lane.querySelectorAll('.response').length)";
    becomes_true(SOON, "each lane draws responses", || {
        let drawn = page.evaluate(drawn);
        [0, 1].iter().all(|lane| drawn[lane].as_u64() > Some(4))
    });
    page.evaluate("document.querySelector('#idle').value = 30; document.querySelector('.hold').click()");
    becomes_true(SOON, "epoll responds on each connection", || in_lanes(&mut page, ".idle")[0] == "30 of 30");
    // It stays with each idle connection for a second.
    let stopped = "The server does not answer.";
    becomes_true(SOON, "naive responds no more", || in_lanes(&mut page, ".state")[1] == stopped);
    let before = responses(&mut page);
    becomes_true(SOON, "epoll continues", || responses(&mut page)[0] >= before[0] + 10);
    assert_eq!(responses(&mut page)[1], before[1], "naive responds while connections are idle");
    page.screenshot("side-by-side");
    is_well(&mut page, "two models");
    drop(page);
    for server in [first, second] {
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}

fn from_page_to_page(config: &Config) {
    let server = start(config);
    let mut page = BrowserPage::open();
    page.resize(1280, 900, false);
    page.go(&url(&server, "/"));
    page.go_by("document.querySelector('a[href^=\"book/\"]').click()");
    let place = page.place();
    assert!(place.as_deref().is_some_and(|place| place.starts_with("/book/")), "{place:?}");
    is_well(&mut page, "the book");
    page.go_by(
        "[...document.querySelectorAll('a')].find(link => /engine|model|epoll/i.test(link.href)).click()",
    );
    is_well(&mut page, "a page of the book");
    page.screenshot("book-page");
    let deep = page.place();
    page.evaluate("history.back()");
    becomes_true(SOON, "back again", || page.place() == place);
    page.evaluate("history.forward()");
    becomes_true(SOON, "forward again", || page.place() == deep);
    page.reload();
    is_well(&mut page, "the page again");
    is_logged(&server, "what the browser has is not sent again", &[" 304 "]);
    page.go(&url(&server, "/"));
    is_well(&mut page, "home again");
    drop(page);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Over HTTP/2.
fn the_browser_takes_a_large_file_and_a_thousand_at_once(config: &Config) {
    let files = ManyFiles::serve(config);
    let mut page = BrowserPage::open();
    // The certificate is its own authority.
    page.call("Security.setIgnoreCertificateErrors", json!({ "ignore": true }));
    page.go(&files.url("0.txt"));
    let script = format!(
        "(async () => {{
            const hash = async bytes => [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))]
                .map(byte => byte.toString(16).padStart(2, '0')).join('');
            const get = async name => (await fetch(name, {{ cache: 'no-store' }})).arrayBuffer();
            const names = [...Array({FILES}).keys()].map(number => number + '.txt');
            performance.setResourceTimingBufferSize(2000);
            const all = await Promise.all(['large.bin', ...names].map(get));
            const versions = new Set(performance.getEntriesByType('resource').map(entry => entry.nextHopProtocol));
            return [[...versions].join(), ...await Promise.all(all.map(hash))];
        }})()"
    );
    let found = page.evaluate(&script);
    let found: Vec<&str> = found.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(found.first(), Some(&"h2"));
    assert!(found[1..].iter().copied().eq(hashes()), "a body differs");
    is_well(&mut page, "many files");
    drop(page);
    files.end(FILES + 2);
}

/// Presses a key without text.
fn press(page: &mut BrowserPage, key: &str) {
    for kind in ["rawKeyDown", "keyUp"] {
        page.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
    }
}

fn the_book_is_searched_by_keyboard(config: &Config) {
    let server = start(config);
    let mut page = BrowserPage::open();
    page.resize(390, 800, true);
    page.go(&url(&server, "/book/explanation/models/epoll.html"));
    press(&mut page, "/");
    assert_eq!(page.evaluate("document.activeElement.id"), "find");
    let found = "[...document.querySelectorAll('.search a')].map(link => new URL(link).pathname)";
    page.call("Input.insertText", json!({ "text": "tcp_cor" }));
    becomes_true(SOON, "the start of a word finds it", || {
        page.evaluate(found)[0] == "/book/explanation/tcp/tcp-cork.html"
    });
    page.screenshot("book-search");
    press(&mut page, "ArrowDown");
    assert_eq!(
        page.evaluate("new URL(document.activeElement.href).pathname"),
        "/book/explanation/tcp/tcp-cork.html"
    );
    press(&mut page, "Escape");
    assert_eq!(page.evaluate("document.activeElement.id"), "find");
    assert_eq!(page.evaluate("document.querySelector('.search [role=status]').textContent"), "");
    is_well(&mut page, "the search");
    drop(page);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The names that the listing shows.
const SHOWN: &str = "[...document.querySelectorAll('tbody tr')].filter(entry => entry.checkVisibility())
    .map(entry => entry.querySelector('a').textContent).join(' ')";

fn a_listing_is_filtered_live_and_fits_a_phone(config: &Config) {
    let folder = TempFolder::new("listing-in-a-browser");
    for name in ["IMG_10.jpg", "IMG_2.jpg", "notes.txt"] {
        folder.write(name, "x");
    }
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let mut page = BrowserPage::open();
    page.resize(390, 800, true);
    page.go(&url(&server, "/?sort=size"));
    assert_eq!(page.evaluate(SHOWN), "IMG_2.jpg IMG_10.jpg notes.txt");
    let below = "(() => {
        const row = document.querySelector('tbody tr'), [name, , date] = row.children;
        return date.checkVisibility() && date.getBoundingClientRect().top >= name.getBoundingClientRect().bottom;
    })()";
    assert_eq!(page.evaluate(below), true, "the date is below the name");
    let width = page.evaluate("document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(390), "{width}");
    page.evaluate("document.forms[0].filter.focus()");
    page.call("Input.insertText", json!({ "text": "iMg" }));
    becomes_true(SOON, "the script filters", || page.evaluate(SHOWN) == "IMG_2.jpg IMG_10.jpg");
    assert_eq!(page.evaluate("location.search"), "?sort=size", "no other page was requested");
    page.go_by("document.querySelector('th.modified a').click()");
    assert_eq!(page.evaluate("location.search"), "?sort=date&filter=img", "the link keeps the filter");
    assert_eq!(page.evaluate(SHOWN), "IMG_2.jpg IMG_10.jpg");
    // This page has only the filtered names, so the script requests another page.
    page.go_by(
        "{ const field = document.forms[0].filter; field.value = 'no'; field.dispatchEvent(new Event('input')) }",
    );
    assert_eq!(page.evaluate(SHOWN), "notes.txt");
    folder.write("a.svg", "<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>");
    folder.write("song.ogg", "no song");
    page.go_by("[...document.links].find(link => link.textContent == 'Grid').click()");
    assert_eq!(page.evaluate("location.search"), "?sort=date&filter=no&view=grid");
    page.go(&url(&server, "/?view=grid&filter=a.svg"));
    let width = "document.images[0].decode().then(() => document.images[0].naturalWidth)";
    assert_eq!(page.evaluate(width), 8, "the policy permits images");
    page.go(&url(&server, "/?filter=ogg"));
    page.evaluate("document.querySelector('summary').click()");
    assert_eq!(page.evaluate("document.querySelector('audio').checkVisibility()"), true);
    // HAVE_NOTHING and NETWORK_IDLE.
    let states = "['readyState', 'networkState'].map(state => document.querySelector('audio')[state])";
    assert_eq!(page.evaluate(states), json!([0, 1]), "nothing is loaded");
    is_well(&mut page, "the listing");
    drop(page);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
