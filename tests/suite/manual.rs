//! The manual in the binary: at `/book/` of a site, and with `tenfold book`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use rustix::process::Signal;
use tenfold_book::diagram_calls;
use tenfold_engine::{MODELS, Steps};
use tenfold_tests::binary::{self, workspace};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools::{as_nobody, is_root};
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "manual",
    cases: cases![
        Own on DRIVERS: the_demonstration_has_every_page_at_book;
        Own on DRIVERS + ANOTHER: a_reload_turns_the_manual_on_and_off, a_killed_worker_leaves_the_manual;
        Own on EPOLL: protection_covers_the_manual;
        Once: a_diagram_names_only_calls_of_the_table, the_manual_is_served_alone,
            h75_a_planted_folder_does_not_stop_the_manual;
    ],
};

/// The files of the manual by path, as the repository gives them.
fn expected() -> BTreeMap<String, String> {
    tenfold_book::files(workspace()).unwrap_or_else(|why| panic!("{why}"))
}

/// A server whose private folders are in `folder`.
fn launch(config: &Config, folder: &TempFolder) -> Launch {
    Launch::bare(config).through("env", &[&format!("XDG_RUNTIME_DIR={}", folder.make("run").display())])
}

/// The folders of manuals in `folder`.
fn unpacked(folder: &TempFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.at("run")).expect("our own folder");
    let entries = entries.map(|entry| entry.expect("our own folder").path());
    entries.filter(|path| path.to_string_lossy().contains("tenfold-book-")).collect()
}

fn stop(server: Server, folder: &TempFolder) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(unpacked(folder), Vec::<PathBuf>::new(), "the folder is removed at the end");
}

fn media_type(path: &str) -> &'static str {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json; charset=utf-8",
        Some("svg") => "image/svg+xml; charset=utf-8",
        other => panic!("the manual has no {other:?}"),
    }
}

fn the_demonstration_has_every_page_at_book(config: &Config) {
    // Made before the connection opens: on a busy machine it takes longer than the server waits for a request.
    let pages = expected();
    let folder = TempFolder::new("manual");
    let server = launch(config, &folder).word(workspace().join("examples/site").display()).start();
    let mut wire = server.connect();
    for (path, text) in &pages {
        wire.get(&format!("/book/{path}"));
        let response = wire.response();
        assert_eq!((response.status, response.need("Content-Type")), (200, media_type(path)), "{path}");
        assert!(response.body == text.as_bytes(), "{path} is not what docs/ gives");
        // An engine may close the connection after a number of requests.
        wire = if response.closes() { server.connect() } else { wire };
    }
    drop(wire);
    assert_eq!(
        server.get("/book/explanation/models/").body,
        pages["explanation/models/index.html"].as_bytes()
    );
    assert_eq!(server.get("/book").need("Location"), "/book/");
    assert_eq!(server.get("/book/explanation/models").need("Location"), "/book/explanation/models/");
    let absent = server.get("/book/absent.html");
    let page = fs::read(workspace().join("examples/site/404.html")).expect("the demonstration has one");
    assert_eq!((absent.status, absent.body), (404, page));
    assert_eq!(server.get("/book/../.tenfold-demonstration").status, 404);
    let [private] = unpacked(&folder).try_into().expect("one folder");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&private), 0o700);
    stop(server, &folder);
}

fn a_reload_turns_the_manual_on_and_off(config: &Config) {
    let folder = TempFolder::new("manual-reload");
    folder.write("site/index.html", "start\n");
    let file = folder.write("tenfold.toml", "root = \"site\"\n");
    let server = launch(config, &folder).flag("--config", file.display()).start();
    assert_eq!((server.get("/book/").status, unpacked(&folder).len()), (404, 0), "it is off elsewhere");
    let reload = |text: &str| {
        folder.write("tenfold.toml", format!("root = \"site\"\n{text}"));
        server.process.signal(Signal::HUP);
    };
    reload("book = \"on\"\n");
    becomes_true(SOON, "the manual is served", || server.get("/book/").status == 200);
    let page = String::from_utf8(server.get("/book/reference/http.html").body).expect("a page is text");
    assert!(!page.contains("media.html"), "the page leads to a page of the demonstration");
    let checked = tenfold(&["check", file.to_str().expect("ASCII")]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let before = unpacked(&folder);
    reload("book = \"on\"\nindex = \"index.html\"\n");
    becomes_true(SOON, "the third configuration is served", || server.status()["generation"] == 3);
    becomes_true(SOON, "the manual stays", || server.get("/book/").status == 200);
    assert_eq!(unpacked(&folder), before, "a reload takes over the folder");
    reload("");
    becomes_true(SOON, "the manual is gone", || server.get("/book/").status == 404);
    becomes_true(SOON, "its folder is removed", || unpacked(&folder).is_empty());
    assert_eq!(server.get("/").body, b"start\n");
    stop(server, &folder);
}

fn a_killed_worker_leaves_the_manual(config: &Config) {
    let folder = TempFolder::new("manual-worker");
    folder.write("site/index.html", "start\n");
    let server = launch(config, &folder).word(folder.at("site").display()).flag("--book", "on").start();
    assert_eq!(server.get("/book/").status, 200);
    let first = server.workers();
    first.iter().for_each(|worker| worker.signal(Signal::KILL));
    becomes_true(SOON, "other workers are there", || {
        let now = server.workers();
        now.len() == first.len() && now.iter().all(|worker| !first.contains(worker))
    });
    assert_eq!(server.get("/book/how-to/reload.html").status, 200);
    stop(server, &folder);
}

/// Rules by path and folders of members also apply to the second root.
fn protection_covers_the_manual(config: &Config) {
    let folder = TempFolder::new("manual-protected");
    folder.write("site/index.html", "start\n");
    let text = "root = \"site\"\nbook = \"on\"\nprotect = [\"/book/explanation/tcp/\"]\n\
                [[site.path]]\nmatch = \"/book/explanation/models/**\"\nheaders = { set = { \"X-Rule\" = \"models\" } }\n";
    let file = folder.write("tenfold.toml", text);
    let server = launch(config, &folder).flag("--config", file.display()).members().start();
    let page = server.get("/book/explanation/models/epoll.html");
    assert_eq!((page.status, page.need("X-Rule")), (200, "models"));
    for target in [
        "/book/explanation/tcp/backlog.html",
        "/%62ook/explanation/tcp/backlog.html",
        "/book/explanation/tcp/",
    ] {
        assert_eq!(server.get(target).status, 303, "{target}");
    }
    stop(server, &folder);
}

/// Starts `tenfold book` by these `words`. Returns its process, its address, and the thread that reads the rest of its
/// output.
fn alone(command: &mut Command, words: &[&str]) -> (Child, SocketAddr, JoinHandle<usize>) {
    command.args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the server starts");
    let said = BufReader::new(child.stderr.take().expect("it is a pipe"));
    let mut lines = said.lines().map(|line| line.expect("text"));
    let line = lines.find(|line| line.contains("http://127.0.0.1:")).expect("it prints its address");
    let rest = std::thread::spawn(move || lines.count());
    let address = line.split(['/', ' ']).find(|word| word.starts_with("127.0.0.1:")).expect("an address");
    (child, address.parse().expect("an address and a port"), rest)
}

/// Another user has created this user's folder among the temporary files.
fn h75_a_planted_folder_does_not_stop_the_manual() {
    let folder = TempFolder::new("manual-planted");
    folder.make("run");
    folder.allow("run", 0o777);
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = as_nobody(&server.path);
    let number = if is_root() { 65534 } else { rustix::process::getuid().as_raw() };
    folder.make(&format!("run/tenfold-{number}"));
    folder.allow(&format!("run/tenfold-{number}"), 0o755);
    command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", folder.at("run"));
    let (mut child, address, rest) = alone(&mut command, &["book", "-p", "auto"]);
    let mut wire = Wire::connect(address);
    wire.get("/index.html");
    assert_eq!(wire.response().status, 200);
    let folders = unpacked(&folder);
    let modes = folders.iter().map(|folder| fs::metadata(folder).map(|facts| facts.mode() & 0o777));
    assert_eq!(modes.filter_map(Result::ok).collect::<Vec<_>>(), [0o700]);
    Process(child.id()).signal(Signal::TERM);
    assert!(child.wait().expect("our own child").success());
    rest.join().expect("the reader does not panic");
    assert_eq!(unpacked(&folder), Vec::<PathBuf>::new(), "the folder is removed at the end");
}

fn the_manual_is_served_alone() {
    let folder = TempFolder::new("manual-alone");
    let run = folder.make("run");
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(&server.path);
    let (mut child, address, rest) = alone(command.env("XDG_RUNTIME_DIR", run), &["book"]);
    let served = expected().into_iter().map(|(path, text)| {
        let mut wire = Wire::connect(address);
        wire.get(&format!("/{path}"));
        (path, text, wire.response().body)
    });
    let (served, folders): (Vec<_>, _) = (served.collect(), unpacked(&folder));
    Process(child.id()).signal(Signal::TERM);
    assert!(child.wait().expect("our own child").success());
    rest.join().expect("the reader does not panic");
    assert_eq!(folders.len(), 1);
    assert_eq!(unpacked(&folder), Vec::<PathBuf>::new(), "the folder is removed at the end");
    for (path, text, body) in served {
        let lines = text.lines().filter(|line| !line.starts_with("<a class=\"aside\""));
        assert!(String::from_utf8(body).is_ok_and(|body| body.lines().eq(lines)), "{path}");
    }
}

/// The page of each model has a diagram, whose calls are those that `tenfold engines NAME` prints.
fn a_diagram_names_only_calls_of_the_table() {
    for model in MODELS {
        let path = workspace().join(format!("docs/explanation/models/{}.md", model.name));
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let calls = diagram_calls(&page).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let calls = calls.unwrap_or_else(|| panic!("{} has no diagram", path.display()));
        let printed = Steps(model.calls).to_string();
        let table: Vec<&str> = printed.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for call in &calls {
            assert!(table.contains(&call.as_str()), "{}: {call} is not among {printed}", path.display());
        }
    }
}
