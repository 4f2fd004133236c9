//! The demonstration in a real browser: from the start to the film behind the login, and the logout.

use serde_json::json;
use tenfold_tests::binary;
use tenfold_tests::browser::BrowserPage;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::time::{SOON, becomes_true};

use super::{GOOD, stop};

/// Reports the position of a film that has seeked to its middle.
const SEEK: &str = "new Promise((done, failed) => {
    const film = document.querySelector('video');
    const seek = () => {
        film.addEventListener('seeked', () => done(film.currentTime));
        film.currentTime = film.duration / 2;
    };
    film.addEventListener('error', () => failed(film.error.message));
    if (film.readyState >= 1) seek(); else film.addEventListener('loadedmetadata', seek);
    film.preload = 'auto';
})";

struct Tour<'s> {
    server: &'s Server,
    page: BrowserPage,
}

impl Tour<'_> {
    fn go(&mut self, path: &str) {
        self.page.go(&format!("http://{}{path}", self.server.address));
    }

    /// Fills in the form and submits it with the button, as a person would.
    fn fill(&mut self, fields: &[(&str, &str)]) {
        for (name, value) in fields {
            let (name, value) = (json!(name), json!(value));
            self.page.evaluate(&format!("document.getElementsByName({name})[0].value = {value}"));
        }
        self.page.go_by("document.querySelector('form button').click()");
    }

    fn says(&mut self, words: &str) {
        let text = self.page.evaluate("document.body.innerText");
        assert!(text.as_str().is_some_and(|text| text.contains(words)), "{words:?} is not in {text}");
    }

    /// Saves screenshots in desktop and phone sizes, in which nothing may overflow.
    fn look(&mut self, name: &str) {
        self.page.screenshot(&format!("members-{name}-{}", self.server.config.engine));
        self.page.resize(390, 844, true);
        let width = self.page.evaluate("document.documentElement.scrollWidth");
        assert!(width.as_u64().is_some_and(|width| width <= 390), "{name} is {width} pixels wide on a phone");
        self.page.screenshot(&format!("members-{name}-phone-{}", self.server.config.engine));
        self.page.resize(1280, 900, false);
    }

    fn is_at(&mut self, path: &str) {
        let place = self.page.evaluate("location.pathname + location.search");
        assert_eq!(place, path);
    }
}

pub(super) fn a_browser_goes_all_the_way(config: &Config) {
    let file = binary::workspace().join("examples/tenfold.toml");
    let mut launch = Launch::bare(config).flag("--config", file.display()).members();
    launch = launch.flag("--password-memory", "1 MiB");
    if config.serial() {
        // A browser opens several connections, and the next is served after one has been idle.
        launch = launch.flag("--idle-timeout", "300ms");
    }
    let server = launch.start();
    let mut tour = Tour { server: &server, page: BrowserPage::open() };
    tour.page.resize(1280, 900, false);

    tour.go("/");
    tour.page.go_by("document.querySelector('a[href=\"members/\"]').click()");
    tour.is_at("/account/login?next=%2Fmembers%2F");
    tour.look("login");
    tour.page.go_by("document.querySelector('a[href*=\"register\"]').click()");
    tour.fill(&[("name", "Ann"), ("password", "password123"), ("again", "password123")]);
    tour.says("too common");
    tour.look("weak");
    tour.fill(&[("name", "Ann"), ("password", GOOD), ("again", GOOD)]);
    tour.says("Your account has been created");
    tour.go("/account/register");
    tour.fill(&[("name", "ANN"), ("password", GOOD), ("again", GOOD)]);
    tour.says("is taken");
    tour.look("taken");

    tour.go("/members/");
    tour.fill(&[("name", "ann"), ("password", "violet tractor")]);
    tour.says("Wrong name or password");
    tour.fill(&[("name", "ann"), ("password", GOOD)]);
    tour.is_at("/members/");
    tour.says("You are logged in");
    tour.look("welcome");
    tour.go("/members/picture.html");
    let width = tour.page.evaluate("document.querySelector('#picture img').decode().then(() => document.querySelector('#picture img').naturalWidth)");
    assert_eq!(width, 1280, "the picture is seen");
    assert_eq!(tour.page.complaints(), Vec::<String>::new());
    tour.look("picture");
    tour.go("/members/film.html");
    let at = tour.page.evaluate(SEEK).as_f64().expect("a film has a time");
    assert!((5.0..7.0).contains(&at), "at {at} s of 12");
    tour.look("film");
    becomes_true(SOON, "a part of the film is asked for", || {
        server.log().lines().any(|line| line.contains("/members/film.mp4 ") && line.contains(" 206 "))
    });
    tour.go("/account/");
    tour.says("You are logged in here and nowhere else");
    tour.look("account");
    assert_eq!(tour.page.complaints(), Vec::<String>::new());

    tour.go("/account/logout");
    tour.fill(&[]);
    tour.says("You are logged out");
    tour.go("/members/film.html");
    tour.is_at("/account/login?next=%2Fmembers%2Ffilm.html");
    // The policy of the accounts' pages forbids fetches, so this runs on another page.
    tour.go("/");
    let status = tour.page.evaluate("fetch('/members/film.mp4').then(answer => answer.status)");
    assert_eq!(status, 401);
    drop(tour);
    stop(server);
}
