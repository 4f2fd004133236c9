//! The pages for users of other servers: their commands and configurations work.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::server::ask_status;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "coming-from",
    cases: cases![
        Once: every_documented_command_serves, every_documented_configuration_serves,
            every_documented_file_of_another_server_is_migrated;
    ],
};

/// The fenced blocks of this language on the pages.
fn blocks(language: &str) -> Vec<String> {
    let folder = binary::workspace().join("docs/how-to/migrate");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    let pages = entries.map(|entry| entry.expect("a folder of ours").path());
    let fence = format!("```{language}\n");
    let blocks = pages.flat_map(|path| {
        let page =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
        let rest =
            page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned());
        rest.collect::<Vec<_>>()
    });
    blocks.collect()
}

/// A folder with the sites and the passwords of the pages.
fn folder() -> TempFolder {
    let folder = TempFolder::new("coming-from");
    // The workers create a database in it, as another user if the tests run as root.
    folder.allow(".", 0o777);
    for site in ["site", "app"] {
        fs::create_dir(folder.at(site)).expect("our own folder");
        folder.write(&format!("{site}/index.html"), "<!doctype html><title>Here</title>");
    }
    // "secret", hashed by `htpasswd -nbB -C 5`.
    folder.write("members.htpasswd", "Bob:$2y$05$H0PXOXTFbF8eW3cz.kRjSuC.bEOQmmEuXdtZcUQ9Wn0YtUhyuGpLK\n");
    folder
}

/// The words of a line, without quotes.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(place, part)| match place % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

struct RunningCommand<'a>(Child, &'a dyn Fn() -> String);

impl Drop for RunningCommand<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.1());
        }
        for process in Process(self.0.id()).with_descendants() {
            process.signal(Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Runs `tenfold` with these words in `folder` on a free port, makes a request, and stops it.
#[track_caller]
fn serves(folder: &TempFolder, mut words: Vec<String>) {
    let shown = words.join(" ");
    match words.iter().position(|word| word == "--listen") {
        Some(place) => words[place + 1] = ANY_PORT.into(),
        None => words.extend(["--listen".into(), ANY_PORT.into()]),
    }
    let control = folder.at("control");
    words.extend(["--control".into(), control.display().to_string()]);
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(&binary.path);
    command.args(&words).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let errors = fs::File::create(folder.at("errors")).expect("our own folder");
    let told = || format!("{shown} said:\n{}", fs::read_to_string(folder.at("errors")).unwrap_or_default());
    let mut running = RunningCommand(command.stderr(errors).spawn().expect("it can be run"), &told);
    let status = eventually(SOON, &shown, || {
        let ended = running.0.try_wait().expect("our own child");
        assert!(ended.is_none(), "it ended, {ended:?}");
        ask_status(&control).ok().filter(|status| status["ready"] == true)
    });
    let address = status["listen"][0].as_str().and_then(|address| address.parse().ok());
    let mut wire = Wire::connect(address.expect("it listens on TCP"));
    wire.get("/");
    assert_eq!(wire.response().status, 200);
    drop(wire);
    Process(running.0.id()).signal(Signal::TERM);
    becomes_true(SOON, "it ends", || {
        running.0.try_wait().expect("our own child").is_some_and(|status| status.success())
    });
}

fn every_documented_command_serves() {
    let commands: Vec<String> =
        blocks("sh").iter().flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(commands.len() >= 21, "{} commands on the pages", commands.len());
    for command in commands {
        let mut words = words(&command);
        assert_eq!(words.remove(0), "tenfold", "{command}");
        serves(&folder(), words);
    }
}

fn every_documented_configuration_serves() {
    let files = blocks("toml");
    assert!(files.len() >= 7, "{} files on the pages", files.len());
    for content in files {
        let folder = folder();
        let path = folder.write("tenfold.toml", &content).display().to_string();
        let checked = tenfold(&["check", &path]);
        assert!(checked.status.success(), "{}\n{content}", String::from_utf8_lossy(&checked.stderr));
        serves(&folder, ["serve", "--config", "tenfold.toml"].map(str::to_owned).to_vec());
    }
}

/// The files on the pages for nginx, Apache, Caddy and lighttpd, translated, checked and served.
fn every_documented_file_of_another_server_is_migrated() {
    let files = [
        ("nginx", "nginx.conf"),
        ("apache", "httpd.conf"),
        ("caddy", "Caddyfile"),
        ("lighttpd", "lighttpd.conf"),
    ];
    for (server, name) in files {
        let page = binary::workspace().join(format!("docs/how-to/migrate/{server}.md"));
        let page =
            fs::read_to_string(&page).unwrap_or_else(|error| panic!("read {}: {error}", page.display()));
        let block = page.split("\n```\n").nth(2).unwrap_or_else(|| panic!("{server}.md has no file"));
        let folder = folder();
        fs::create_dir_all(folder.at("site/errors")).expect("our own folder");
        for page in ["missing.html", "errors/server.html", "errors/404.html"] {
            folder.write(&format!("site/{page}"), "an error");
        }
        let mut text = block.to_owned();
        for (theirs, ours) in
            [("/srv/example", "site"), ("/srv/app", "app"), ("/var/log/nginx/", ""), ("logs/", "")]
        {
            text = text.replace(theirs, ours);
        }
        let hash = fs::read_to_string(folder.at("members.htpasswd")).expect("it was written");
        let text = text.replace("$2a$14$...", hash.trim().trim_start_matches("Bob:"));
        let input = folder.write(name, &text).display().to_string();
        let output = folder.at("tenfold.toml").display().to_string();
        let migrated = tenfold(&["migrate", &input, "--output", &output]);
        let report = String::from_utf8_lossy(&migrated.stderr).into_owned();
        assert_eq!(migrated.status.code(), Some(0), "{report}");
        assert!(report.contains(" directives: ") && report.ends_with(" 0 not translated\n"), "{report}");
        let again = tenfold(&["migrate", &input, "--output", &output]);
        assert_eq!(again.status.code(), Some(1), "a file is never replaced");
        let checked = tenfold(&["check", &output]);
        let toml = fs::read_to_string(&output).unwrap_or_default();
        assert!(checked.status.success(), "{}\n{toml}", String::from_utf8_lossy(&checked.stderr));
        serves(&folder, ["serve", "--config", "tenfold.toml"].map(str::to_owned).to_vec());
    }
    let refused = tenfold(&["migrate", "--from", "miniserve", "--", "miniserve", "-u", "site"]);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
    let elsewhere = folder();
    let output = elsewhere.at("miniserve.toml");
    let written = tenfold(&["migrate", "-o", &output.display().to_string(), "--", "miniserve", "site"]);
    assert_eq!(written.status.code(), Some(0), "{}", String::from_utf8_lossy(&written.stderr));
    let toml = fs::read_to_string(&output).expect("it was written");
    assert!(toml.contains("root = \"/"), "site would be a folder next to the output:\n{toml}");
    assert_eq!(
        tenfold(&["migrate", "--", "miniserv", "-p", "80"]).status.code(),
        Some(2),
        "an unknown program"
    );
    assert_eq!(tenfold(&["migrate", "--from", "iis", "x"]).status.code(), Some(2));
    assert_eq!(tenfold(&["migrate", "/nonexistent.conf"]).status.code(), Some(1));
}
