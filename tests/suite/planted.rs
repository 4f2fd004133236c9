//! Files and links that another user planted where the server, running as root, creates its files and sockets.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::strace::{Calls, Tracer};
use tenfold_tests::time::{SOON, becomes_true};

pub(crate) const THEME: Theme = Theme {
    name: "planted",
    cases: cases![
        OwnAsRoot on WORKERS + ANOTHER: h75_a_link_at_the_log_is_not_followed_when_it_is_reopened;
        OwnAsRoot on EPOLL: h75_a_link_at_the_log_is_not_followed_at_the_start, h75_rotation_follows_no_link,
            h75_the_log_may_be_a_link_of_root_to_a_stream, h75_sockets_have_their_mode_when_they_are_bound,
            h75_only_the_servers_own_socket_is_removed, h75_an_unresponsive_socket_does_not_delay_the_start,
            h75_root_reads_no_template_through_a_link, h75_a_pipe_in_place_of_a_file_stops_no_reload,
            h75_root_serves_no_folder_through_another_users_link;
    ],
};

/// The user of the workers, who plants the files.
const NOBODY: u32 = 65534;

/// Plants a link owned by the workers' user.
#[track_caller]
fn plant(target: impl AsRef<Path>, at: &Path) {
    symlink(target, at).unwrap_or_else(|error| panic!("link {}: {error}", at.display()));
    give_away(at);
}

/// Changes the owner of a file, a folder or a link to the workers' user.
#[track_caller]
fn give_away(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).expect("this runs as root");
}

/// A folder of the workers' user.
fn theirs(name: &str) -> TempFolder {
    let folder = TempFolder::new(name);
    give_away(folder.path());
    folder
}

/// Starts a server that must reject its log, with this message.
#[track_caller]
fn refuses(config: &Config, log: &Path, words: &str) {
    let launch = Launch::new(config, site::shared()).flag("--listen", ANY_PORT);
    let output = launch.flag("--access-log", log.display()).flag("--control", "off").refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&log.display().to_string()) && said.contains(words), "{words:?} is not in: {said}");
}

/// A file of root: its content, its owner and its mode.
fn state(path: &Path) -> (String, u32, u32) {
    let facts = fs::metadata(path).expect("root's own file");
    (fs::read_to_string(path).expect("root's own file"), facts.uid(), facts.mode())
}

#[track_caller]
fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h75_a_link_at_the_log_is_not_followed_at_the_start(config: &Config) {
    let (roots, folder) = (TempFolder::new("roots"), theirs("log"));
    let victim = roots.write("victim", "root:x:0:0\n");
    let before = state(&victim);
    plant(&victim, &folder.at("to-file"));
    refuses(config, &folder.at("to-file"), "is a link");
    plant(roots.at("made"), &folder.at("to-nothing"));
    refuses(config, &folder.at("to-nothing"), "is a link");
    plant("/dev/null", &folder.at("to-device"));
    refuses(config, &folder.at("to-device"), "is a link of user 65534");
    plant(roots.path(), &folder.at("way"));
    refuses(config, &folder.at("way/made"), "way is a link of user 65534");
    symlink(&victim, folder.at("of-root")).expect("this runs as root");
    refuses(config, &folder.at("of-root"), "it is a link to a file");
    fs::hard_link(&victim, folder.at("second-name")).expect("this runs as root");
    refuses(config, &folder.at("second-name"), "it has several names");
    assert!(!roots.at("made").exists(), "a file was made through a link");
    assert_eq!(state(&victim), before);
}

fn h75_a_link_at_the_log_is_not_followed_when_it_is_reopened(config: &Config) {
    let (roots, folder) = (TempFolder::new("roots"), theirs("log"));
    let victim = roots.write("victim", "root:x:0:0\n");
    let before = state(&victim);
    let log = folder.at("access.log");
    let launch = Launch::new(config, site::shared()).flag("--access-log", log.display());
    let server = launch.flag("--log-mode", "sync").start();
    assert_eq!(server.get("/1k.html").status, 200);
    let old = folder.at("access.log.1");
    fs::rename(&log, &old).expect("the log is there");
    for (round, target) in [victim.clone(), roots.at("made")].iter().enumerate() {
        plant(target, &log);
        server.process.signal(Signal::USR1);
        becomes_true(SOON, "the refusal is said", || {
            server.errors().matches("lines still go to the old file").count() > round
        });
        assert_eq!(server.get("/1k.html").status, 200);
        fs::remove_file(&log).expect("it was planted here");
    }
    becomes_true(SOON, "lines go to the old file", || {
        fs::read_to_string(&old).expect("it was renamed").lines().count() == 3
    });
    assert!(!roots.at("made").exists(), "a file was made through a link");
    assert_eq!(state(&victim), before);
    stop(server);
}

fn h75_rotation_follows_no_link(config: &Config) {
    let (roots, folder) = (TempFolder::new("roots"), theirs("log"));
    let log = folder.write("access.log", "of yesterday\n");
    give_away(&log);
    site::set_modified(&log, site::now() - 24 * 60 * 60);
    let launch = Launch::new(config, site::shared()).flag("--access-log", log.display());
    // The date of the log's first use determines the name of the rotated file, which exists at the next start.
    let server = launch.flag("--log-rotate", "daily").start();
    let rotated = || {
        let entries = fs::read_dir(folder.path()).expect("a folder of this case");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder of this case").path()).collect();
        paths.retain(|path| *path != log);
        paths.sort();
        paths
    };
    becomes_true(SOON, "the file of yesterday is moved", || rotated().len() == 1);
    stop(server);
    let name = rotated().remove(0);
    fs::remove_file(&name).expect("a folder of this case");
    plant(roots.at("made"), &name);
    fs::write(&log, "of yesterday, too\n").expect("a folder of this case");
    give_away(&log);
    site::set_modified(&log, site::now() - 24 * 60 * 60);
    let launch = Launch::new(config, site::shared()).flag("--access-log", log.display());
    let server = launch.flag("--log-rotate", "daily").start();
    becomes_true(SOON, "the file of yesterday is moved again", || rotated().len() == 2);
    assert!(
        fs::symlink_metadata(&name).expect("it was planted").is_symlink(),
        "the planted link was replaced"
    );
    let second = rotated().remove(1);
    assert_eq!(fs::read_to_string(second).expect("it was moved"), "of yesterday, too\n");
    assert!(!roots.at("made").exists());
    stop(server);
}

fn h75_the_log_may_be_a_link_of_root_to_a_stream(config: &Config) {
    let folder = TempFolder::new("stream");
    mknodat(CWD, folder.at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .expect("a folder of this case");
    let _reader = File::options().read(true).write(true).open(folder.at("pipe")).expect("it was just made");
    symlink("pipe", folder.at("to-pipe")).expect("a folder of this case");
    symlink("/dev/stderr", folder.at("to-stderr")).expect("a folder of this case");
    for log in ["to-pipe", "to-stderr"] {
        let launch = Launch::new(config, site::shared()).flag("--access-log", folder.at(log).display());
        let server = launch.flag("--log-mode", "sync").start();
        assert_eq!(server.get("/1k.html").status, 200);
        if log == "to-stderr" {
            server.expect_report("GET /1k.html");
        }
        stop(server);
    }
}

/// A later chmod would change the mode of any file with this name.
fn h75_sockets_have_their_mode_when_they_are_bound(config: &Config) {
    let folder = TempFolder::new("modes");
    let into = folder.at("calls").display().to_string();
    let words = Tracer::from_start("trace=bind,umask,chmod,fchmod,fchmodat,?fchmodat2", &into);
    let socket = folder.at("socket");
    let launch = Launch::new(config, site::shared()).through("strace", &words);
    let server = launch.flag("--listen", format!("unix:{}", socket.display())).start();
    for (path, mode) in [(socket, 0o666), (server.at("control"), 0o600)] {
        let facts = fs::symlink_metadata(&path).expect("it is bound");
        assert!(facts.file_type().is_socket());
        assert_eq!(facts.permissions().mode() & 0o777, mode, "{}", path.display());
    }
    let process = server.process;
    stop(server);
    let calls = Calls::from_start(process, &folder.at("calls"));
    assert!(calls.lines.iter().any(|line| line.contains("bind(")), "{:#?}", calls.lines);
    assert!(!calls.lines.iter().any(|line| line.contains("chmod")), "{:#?}", calls.lines);
}

fn h75_only_the_servers_own_socket_is_removed(config: &Config) {
    let (roots, folder) = (TempFolder::new("roots"), theirs("socket"));
    roots.write("socket", "root's");
    let inner = folder.make("inner");
    let launch = Launch::new(config, site::shared());
    let server = launch.flag("--listen", format!("unix:{}", inner.join("socket").display())).start();
    // The folder is replaced by a link to one of root's.
    fs::rename(&inner, folder.at("moved")).expect("a folder of this case");
    plant(roots.path(), &inner);
    stop(server);
    assert_eq!(fs::read_to_string(roots.at("socket")).expect("root's file was removed"), "root's");
}

/// A connect to a socket with a full queue blocks, and the start checks whether a socket is in use by connecting.
fn h75_an_unresponsive_socket_does_not_delay_the_start(config: &Config) {
    let folder = theirs("full");
    let path = folder.at("socket");
    let listener = UnixListener::bind(&path).expect("the name is free");
    rustix::net::listen(&listener, 0).expect("a shorter queue");
    let _waiting = UnixStream::connect(&path).expect("one waits");
    for control in [false, true] {
        let launch = Launch::new(config, site::shared());
        let launch = match control {
            true => launch.flag("--listen", ANY_PORT).flag("--control", path.display()),
            false => launch.flag("--listen", format!("unix:{}", path.display())).flag("--control", "off"),
        };
        let output = launch.refused();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&path.display().to_string()) && !said.contains("--port"), "{said}");
    }
    // `check` reports that the socket is in use, and does not wait either.
    let settings = folder.at("tenfold.toml");
    std::fs::write(&settings, format!("listen = [\"unix:{}\"]\n", path.display())).expect("our own folder");
    let program = &binary::server().expect("the server is built").path;
    let mut checked = Command::new(program).arg("check").arg(&settings).spawn().expect("a program");
    becomes_true(SOON, "the check ends", || checked.try_wait().expect("our own child").is_some());
    drop(listener);
    assert_eq!(UnixStream::connect(&path).expect_err("nobody listens").kind(), ErrorKind::ConnectionRefused);
}

/// Starts a server with members whose pages have the templates of `folder`.
fn with_templates(config: &Config, folder: &TempFolder, state: &TempFolder) -> Launch {
    Launch::new(config, site::shared())
        .flag("--accounts", format!("sqlite:{}", state.at("members.db").display()))
        .flag("--protect", "/members/")
        .flag("--account-templates", folder.path().display())
}

fn h75_root_reads_no_template_through_a_link(config: &Config) {
    let (roots, folder) = (TempFolder::new("roots"), theirs("templates"));
    let secret = roots.write("secret", "root's own words");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("root's own file");
    for (name, is_link) in [("style.css", true), ("login.html", false)] {
        match is_link {
            true => plant(&secret, &folder.at(name)),
            false => fs::hard_link(&secret, folder.at(name)).expect("this runs as root"),
        }
        let output = with_templates(config, &folder, &theirs("state")).refused();
        let said = String::from_utf8_lossy(&output.stderr);
        let words = if is_link { "style.css is a link of user 65534" } else { "it has several names" };
        assert!(said.contains(words) && !said.contains("own words"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
        fs::remove_file(folder.at(name)).expect("it was planted here");
    }
}

fn h75_a_pipe_in_place_of_a_file_stops_no_reload(config: &Config) {
    let (folder, users) = (theirs("templates"), theirs("users"));
    let hash = "alice:$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC\n";
    users.write("passwords", hash);
    let rules = format!(
        "[[site.path]]\nmatch = \"/private/**\"\nauth = {{ users = \"{}\" }}\n",
        users.at("passwords").display()
    );
    let file = users.write("tenfold.toml", &rules);
    let state = theirs("state");
    let launch = with_templates(config, &folder, &state);
    let server = launch.flag("--config", file.display()).start();
    for (pipe, words) in [
        (folder.at("style.css"), "cannot read the template"),
        (users.at("passwords"), "cannot read the users"),
    ] {
        let _ = fs::remove_file(&pipe);
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a folder of this case");
        server.process.signal(Signal::HUP);
        server.expect_report(words);
        assert!(server.errors().contains("not a regular file"), "{}", server.errors());
        assert_eq!(server.get("/1k.html").status, 200);
        assert!(server.status()["send"].is_string(), "the supervisor answers");
        fs::remove_file(&pipe).expect("it was planted here");
        users.write("passwords", hash);
    }
    stop(server);
}

fn h75_root_serves_no_folder_through_another_users_link(config: &Config) {
    let (roots, folder) = (TempFolder::new("roots"), theirs("home"));
    roots.write("docs/page", "root's own words");
    fs::set_permissions(roots.path(), fs::Permissions::from_mode(0o700)).expect("root's own folder");
    for (name, content) in [("site", "first"), ("next", "second")] {
        folder.write(&format!("{name}/page"), content);
        give_away(&folder.at(name));
    }
    let site = folder.at("site");
    let server = Launch::new(config, &site).start();
    let replace = |target: &Path| {
        fs::rename(&site, folder.at("old")).expect("a folder of this case");
        plant(target, &site);
        server.process.signal(Signal::HUP);
    };
    let words = "site is a link of user 65534";
    replace(&roots.at("docs"));
    server.expect_report(words);
    assert_eq!(server.get("/page").body, b"first");
    let said = Launch::new(config, &site).refused();
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains(words));
    // A link to a folder of its owner is allowed: new versions are published this way.
    fs::remove_file(folder.at("site")).expect("it was planted here");
    fs::rename(folder.at("old"), &site).expect("a folder of this case");
    replace(&folder.at("next"));
    becomes_true(SOON, "the next folder is served", || server.get("/page").body == b"second");
    stop(server);
}
