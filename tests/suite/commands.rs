//! Command lines: invalid ones are rejected with a message, valid ones print the right information.

use std::fs::Permissions;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;
use tenfold_engine::{Engine, MODELS, Sender, Topology};
use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "commands",
    cases: cases![
        Own on WORKERS + ANOTHER: status_counts, the_start_says_what_runs;
        Own on DRIVERS: a_port_in_use_is_reported;
        Own on EPOLL: a_port_chooses_among_running_servers;
        Once: errors_name_the_valid_words, illegal_combinations, a_root_that_is_not_a_directory,
            check_shows_line_and_column, check_looks_at_what_serve_would_use, check_reads_the_usual_file,
            a_closed_pipe_ends_a_command_quietly, engines_agree_with_the_table, status_without_a_server,
            status_escapes_what_a_server_sends, manuals_and_completions_are_read;
        OnceAsRoot: an_unreadable_root, check_looks_with_the_rights_of_the_workers;
    ],
};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rejected with this exit code, and with a short message that contains all of `words`.
#[track_caller]
fn expect_refused(output: &Output, code: i32, words: &[&str]) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty(), "a refusal stands on standard output");
    assert!(!text.contains("panicked"), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not said in: {text}");
    }
    assert!(text.lines().count() <= 8, "more than a person wants to read: {text}");
}

fn serve(words: &[&str]) -> Output {
    let fixed = ["serve", site::shared().to_str().expect("a path in ASCII"), "--listen", ANY_PORT];
    tenfold(&[&fixed, words].concat())
}

fn errors_name_the_valid_words() {
    let models: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
    expect_refused(&serve(&["--engine", "kqueue"]), 2, &[&["kqueue"], models.as_slice()].concat());
    expect_refused(&serve(&["--topology", "star"]), 2, &["star", "single", "threads", "reuseport-processes"]);
    expect_refused(
        &serve(&["--send", "pigeon"]),
        2,
        &["pigeon", "auto", "copy", "mmap", "sendfile", "splice", "zerocopy"],
    );
    expect_refused(&serve(&["--trigger", "et"]), 2, &["lt+et", "lt+lt", "et+lt", "et+et"]);
    expect_refused(&serve(&["--head-timeout", "soon"]), 2, &["head-timeout", "soon"]);
    expect_refused(&serve(&["--head-timeout", "0s"]), 2, &["head-timeout"]);
    expect_refused(&serve(&["--workers", "0"]), 2, &["workers"]);
    expect_refused(&serve(&["--workers", "many"]), 2, &["workers", "many"]);
    expect_refused(&serve(&["--max-head", "-1"]), 2, &["max-head"]);
    expect_refused(&serve(&["--access-log"]), 2, &["access-log"]);
    expect_refused(&serve(&["--no-such-flag"]), 2, &["--no-such-flag"]);
    expect_refused(&serve(&["--listen", "localhost"]), 2, &["listen", "localhost"]);
    expect_refused(&tenfold(&["srve"]), 2, &["srve"]);
    // Errors of the command line, of settings, of files and of other commands begin alike.
    for words in [
        &["srve"][..],
        &["serve", "--no-such-flag"],
        &["serve", "--workers", "0"],
        &["check", "/nonexistent.toml"],
        &["status", "--control", "/nonexistent"],
        &["bench", "localhost", "-c", "x"],
        &["bench", "compare", "/nonexistent", "/nonexistent"],
        &["agent", "--wait", "x"],
        &["lab", "run", "--only", "no-such-experiment"],
        &["tune", "/nonexistent"],
        &["users", "list", "--accounts", "no-database"],
        &["migrate", "/nonexistent"],
        &["init", "/nonexistent"],
        &["help", "no-such-word"],
    ] {
        let text = said(&tenfold(words));
        assert!(text.starts_with("tenfold: error: "), "{words:?}: {text}");
    }
    expect_refused(&serve(&["--config", "/nonexistent.toml"]), 1, &["/nonexistent.toml"]);
}

fn illegal_combinations() {
    expect_refused(
        &serve(&["--engine", "naive", "--topology", "threads"]),
        2,
        &["naive", "threads", "single"],
    );
    expect_refused(&serve(&["--engine", "naive", "--workers", "2"]), 2, &["naive", "workers"]);
    expect_refused(&serve(&["--engine", "uring", "--trigger", "lt+et"]), 2, &["uring", "trigger", "epoll"]);
    expect_refused(
        &serve(&["--engine", "epoll", "--topology", "single", "--workers", "2"]),
        2,
        &["single", "threads", "reuseport-processes"],
    );
}

fn a_root_that_is_not_a_directory() {
    for root in ["/nonexistent", "/dev/null"] {
        expect_refused(&tenfold(&["serve", root, "--listen", ANY_PORT]), 1, &[root]);
    }
}

fn an_unreadable_root() {
    let folder = TempFolder::new("unreadable");
    folder.allow(".", 0o700);
    let root = folder.path().display().to_string();
    let config = Config::of(Engine::Epoll);
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let launch = Launch::new(&config, folder.path()).through("setpriv", &nobody);
    let output = launch.flag("--listen", ANY_PORT).flag("--access-log", "off").refused();
    expect_refused(&output, 1, &[&root, "ermission denied"]);
    // If the tests run as root, the user of the workers cannot read it.
    let output = Launch::new(&config, folder.path()).flag("--listen", ANY_PORT).refused();
    expect_refused(&output, 1, &[&root]);
}

fn a_port_in_use_is_reported(config: &Config) {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("a bound socket has an address").to_string();
    let output = Launch::new(config, site::shared()).flag("--listen", &address).refused();
    expect_refused(&output, 1, &[&address, "in use"]);
}

fn check_shows_line_and_column() {
    let folder = TempFolder::new("check");
    folder.write("site/index.html", "x");
    let check = |text: &str| {
        let file = folder.write("tenfold.toml", text);
        tenfold(&["check", &file.display().to_string()])
    };
    let right = check("root = \"site\"\nengine = \"epoll\"\n");
    assert_eq!(right.status.code(), Some(0), "{}", said(&right));

    let wrong = [
        ("root = \"site\"\nindx = \"index.html\"\n", ":2:1", "index"),
        ("root = \"site\"\nengine = \"kqueue\"\n", ":2:10", "epoll"),
        ("root = \"site\"\nhead-timeout = \"10 parsecs\"\n", ":2:16", "10s"),
        ("root = \"site\"\nworkers = 0\n", ":2:11", "1"),
        ("root = \"site\"\nindex = \n", ":2:", ""),
        ("root = \"site\"\n[[nonsense]]\n", ":2:", "nonsense"),
    ];
    for (text, place, mend) in wrong {
        let output = check(text);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {}", said(&output));
        assert!(said(&output).contains(place), "{place} is not said in: {}", said(&output));
        assert!(said(&output).contains(mend), "{mend:?} is not said in: {}", said(&output));
    }
    let both = check("root = \"site\"\nengine = \"kqueue\"\nworkers = 0\n");
    assert!(
        said(&both).contains(":2:") && said(&both).contains(":3:"),
        "every error is shown: {}",
        said(&both)
    );
    let missing = tenfold(&["check", "/nonexistent.toml"]);
    assert_eq!(missing.status.code(), Some(1), "{}", said(&missing));
}

fn check_looks_at_what_serve_would_use() {
    let folder = TempFolder::new("check-all");
    folder.write("site/index.html", "x");
    folder.write("file", "");
    let check = |text: &str| {
        let file = folder.write("tenfold.toml", format!("control = \"off\"\n{text}"));
        tenfold(&["check", &file.display().to_string()])
    };
    for (text, words) in [
        ("root = \"none\"", &["none", "create it, or name another folder"][..]),
        ("root = \"file\"", &["file", "name the folder"]),
        ("root = \"site\"\n[[host]]\nname = \"a.example\"\nroot = \"gone\"", &["gone", "create it"]),
        (
            "root = \"site\"\naccess-log = \"logs/access.log\"",
            &["access.log", "there is no folder", "logs; create it"],
        ),
        (
            "root = \"site\"\nlisten = \"192.0.2.77:8080\"",
            &["192.0.2.77", "is not an address of this machine"],
        ),
        ("root = \"site\"\naccounts = \"sqlite:none/members.db\"", &["members.db", "none"]),
        ("root = \"site\"\naccounts = \"postgresql://x@127.0.0.1:1/x\"", &["127.0.0.1:1"]),
        ("root = \"none\"\naccess-log = \"logs/access.log\"", &["none", "logs"]),
    ] {
        let output = check(text);
        expect_refused(&output, 1, words);
    }
    let held = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = held.local_addr().expect("it is bound");
    let used = check(&format!("root = \"site\"\nlisten = \"{taken}\""));
    assert_eq!(used.status.code(), Some(0), "{}", said(&used));
    assert!(said(&used).contains("warning: ") && said(&used).contains("in use"), "{}", said(&used));
    let used = check(&format!("root = \"site\"\nlisten = \"127.0.0.1:0\"\nadmin = \"{taken}\""));
    let warning = format!("warning: cannot open the admin listener on {taken}: the address is in use: stop");
    assert!(used.status.success() && said(&used).contains(&warning), "{}", said(&used));
    for listen in [taken.to_string(), format!("0.0.0.0:{}", taken.port())] {
        let same = check(&format!("root = \"site\"\nlisten = \"{listen}\"\nadmin = \"{taken}\""));
        expect_refused(&same, 2, &["admin is ", &listen, "choose another port"]);
    }
    drop(held);
    // The server of this configuration has the address.
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    let control = server.at("control").display().to_string();
    let text = format!("control = \"{control}\"\nroot = \"site\"\nlisten = \"{}\"", server.address);
    let file = folder.write("tenfold.toml", text);
    let own = tenfold(&["check", &file.display().to_string()]);
    assert_eq!((own.status.code(), said(&own).contains("in use")), (Some(0), false), "{}", said(&own));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let absent =
        check("root = \"site\"\n[site]\nfallback = \"/index.html\"\nerror-pages = { 404 = \"/gone.html\" }");
    assert_eq!(absent.status.code(), Some(0), "{}", said(&absent));
    assert!(
        said(&absent).contains("there is no file ") && said(&absent).contains("site/gone.html"),
        "{}",
        said(&absent)
    );
    assert!(!said(&absent).contains("index.html"), "{}", said(&absent));
    folder.allow(".", 0o777);
    let right = check("root = \"site\"\naccess-log = \"access.log\"\naccounts = \"sqlite:members.db\"");
    assert_eq!((right.status.code(), said(&right).contains("error")), (Some(0), false), "{}", said(&right));
    assert!(!folder.at("access.log").exists() && !folder.at("members.db").exists(), "check makes nothing");
}

fn check_reads_the_usual_file() {
    let folder = TempFolder::new("check-usual");
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let run = |words: &[&str]| {
        Command::new(&binary.path).args(words).current_dir(folder.path()).output().expect("it runs")
    };
    let check = |words: &[&str]| said(&run(&[&["check"], words].concat()));
    let none = run(&["check"]);
    assert!(none.status.success() && String::from_utf8_lossy(&none.stdout).contains("no file was named"));
    folder.write("tenfold.toml", "root = \"gone\"\n");
    expect_refused(&run(&["check"]), 1, &["gone", "create it"]);
    folder.write("tenfold.toml", "root = \".\"\n");
    assert_eq!(String::from_utf8_lossy(&run(&["check"]).stdout), "tenfold.toml: OK\n");
    // `serve` reads no file that is not named, and warns unless a folder is named.
    let serve = |words: &[&str]| said(&run(&[&["serve", "--workers", "0"], words].concat()));
    let unread = "tenfold.toml in this folder is not read; name it: tenfold serve -c tenfold.toml";
    assert!(serve(&[]).contains(unread));
    for words in [&["."][..], &["--root", "."], &["-c", "tenfold.toml"]] {
        assert!(!serve(words).contains("is not read"), "{words:?}");
    }
    // The database is not reached, but the file is examined.
    let url = "postgres://ann:secret@127.0.0.1:1/members";
    let file = folder.write("members.toml", format!("root = \".\"\naccounts = \"{url}\"\n"));
    let warning = format!("all users can read {}", file.display());
    assert!(check(&[&file.display().to_string()]).contains(&warning));
    folder.allow("members.toml", 0o640);
    assert!(!check(&[&file.display().to_string()]).contains(&warning));
}

fn check_looks_with_the_rights_of_the_workers() {
    let folder = TempFolder::new("check-rights");
    folder.write("site/index.html", "x");
    folder.allow("site", 0o700);
    folder.make("private");
    folder.allow("private", 0o700);
    let check = |text: &str| {
        let file = folder.write("tenfold.toml", text);
        tenfold(&["check", &file.display().to_string()])
    };
    expect_refused(
        &check("root = \"site\""),
        1,
        &["user nobody cannot enter", "site: move the site", "--user"],
    );
    folder.allow("site", 0o755);
    let text = "root = \"site\"\naccounts = \"sqlite:private/members.db\"\naccounts-user = \"nobody\"";
    expect_refused(&check(text), 1, &["user nobody", "private", "give the folder to that user"]);
    assert!(!folder.at("private/members.db").exists());
}

/// A command ends without an error when its reader closes the pipe, as `head` does.
fn a_closed_pipe_ends_a_command_quietly() {
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    for words in [
        &["check", "--schema"][..],
        &["engines"],
        &["engines", "--matrix"],
        &["engines", "--json"],
        &["man", "serve"],
        &["completions", "bash"],
        &["serve", "--help"],
        &["serve", "--help-all"],
        &["help", "timeout"],
        &["lab", "list"],
        &["lab", "show", "n16-idle"],
    ] {
        let (reader, writer) = std::io::pipe().expect("descriptors");
        drop(reader);
        let output = Command::new(&server.path).args(words).stdout(writer).output().expect("it runs");
        assert!(output.stderr.is_empty(), "{words:?}: {}", said(&output));
        assert_eq!(output.status.code(), Some(0), "{words:?}");
    }
}

fn engines_agree_with_the_table() {
    let output = tenfold(&["engines", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    let told = told.as_array().or_else(|| told["engines"].as_array()).expect("a list of engines").clone();
    assert_eq!(told.len(), MODELS.len());
    for (model, told) in MODELS.iter().zip(told) {
        assert_eq!(told["name"], model.name);
        let list = |name: &str| -> Vec<String> {
            let all = told[name].as_array().unwrap_or_else(|| panic!("no {name} in {told}"));
            all.iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(list("topologies"), model.topologies.iter().map(Topology::to_string).collect::<Vec<_>>());
        assert_eq!(list("senders"), model.senders.iter().map(Sender::to_string).collect::<Vec<_>>());
        assert_eq!(told["take_it_when"], model.take_it_when);
    }
    let matrix = tenfold(&["engines", "--matrix"]);
    assert_eq!(matrix.status.code(), Some(0), "{}", said(&matrix));
    let matrix = String::from_utf8_lossy(&matrix.stdout).into_owned();
    for model in MODELS {
        assert!(matrix.contains(model.name), "{} is not in:\n{matrix}", model.name);
    }
    let plain = tenfold(&["engines"]);
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    for model in MODELS {
        let line = plain.lines().find(|line| line.split(' ').next() == Some(model.name));
        let line = line.unwrap_or_else(|| panic!("{} is not in:\n{plain}", model.name));
        assert!(line.ends_with(model.take_it_when), "{line}");
        let detail = String::from_utf8_lossy(&tenfold(&["engines", model.name]).stdout).into_owned();
        assert!(detail.starts_with(model.name) && detail.contains("  calls "), "{detail}");
        assert!(!detail.contains("\n\n\n") && detail.matches("runs here").count() == 1, "{detail}");
    }
    assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
    expect_refused(&tenfold(&["engines", "kqueue"]), 2, &["kqueue", "epoll", "uring"]);
}

/// `man` and `bash` accept the manuals and completions.
fn manuals_and_completions_are_read() {
    let folder = TempFolder::new("manual");
    let output = tenfold(&["man", "--to", &folder.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for name in ["tenfold", "tenfold-serve", "tenfold-bench", "tenfold-man"] {
        let page = std::fs::read_to_string(folder.at(&format!("{name}.1")));
        let page = page.unwrap_or_else(|error| panic!("{name}.1: {error}"));
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{page}");
    }
    let one = tenfold(&["man", "serve"]);
    assert_eq!(one.stdout, std::fs::read(folder.at("tenfold-serve.1")).expect("it was just written"));
    expect_refused(&tenfold(&["man", "nothing"]), 1, &["nothing"]);
    expect_refused(&tenfold(&["completions", "cmd"]), 2, &["bash", "zsh", "fish"]);
    let script = folder.write("tenfold.bash", tenfold(&["completions", "bash"]).stdout).display().to_string();
    let asked = "source \"$0\"; COMP_WORDS=(tenfold serve --max-b); COMP_CWORD=2; _tenfold tenfold --max-b serve; \
                 echo \"${COMPREPLY[@]}\"";
    let output = std::process::Command::new("bash").args(["--norc", "-c", asked, &script]).output();
    let output = output.expect("there is a bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--max-body\n", "{}", said(&output));
}

fn status_without_a_server() {
    let output = tenfold(&["status", "--control", "/nonexistent/control"]);
    expect_refused(&output, 1, &["no server answers at /nonexistent/control"]);
    let program = &binary::server().expect("the server is built").path;
    let folder = TempFolder::new("status-private");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).expect("our own folder");
    // `off`, which a server accepts, is not the name of a socket.
    let mut command = Command::new(program);
    command.arg("status").env("TENFOLD_CONTROL", "off").env("XDG_RUNTIME_DIR", folder.path());
    expect_refused(
        &command.output().expect("a program"),
        1,
        &["no server found in", "name its socket with --control"],
    );
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o000)).expect("our own folder");
    for word in ["status", "upgrade", "reload", "stop"] {
        let mut command = tools::as_nobody(program);
        let output = command.args([word, "--control"]).arg(folder.at("control")).output().expect("a program");
        expect_refused(&output, 1, &["cannot connect to", "as root or as the user of the server"]);
    }
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).expect("our own folder");
}

fn a_port_chooses_among_running_servers(config: &Config) {
    let folder = TempFolder::new("choice");
    folder.allow(".", 0o700);
    let servers = [(); 2].map(|()| {
        let server = Launch::new(config, site::shared()).start();
        let usual = folder.at(&format!("tenfold-{}.sock", server.address));
        std::fs::hard_link(server.at("control"), usual).expect("both are temporary folders");
        server
    });
    let program = &binary::server().expect("the server is built").path;
    let run = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("XDG_RUNTIME_DIR", folder.path()).output().expect("a program")
    };
    for word in ["status", "reload", "upgrade", "stop"] {
        let lines = servers.each_ref().map(|server| format!("`tenfold {word} {}`", server.address));
        expect_refused(&run(&[word]), 1, &["several servers run", &lines[0], &lines[1]]);
        expect_refused(&run(&[word, "1"]), 1, &["no running server listens on 1", &lines[0], &lines[1]]);
    }
    let [first, second] = &servers;
    for form in [first.address.port().to_string(), format!(":{}", first.address.port())] {
        let output = run(&["status", "--json", &form]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["process"], first.process.0, "{form}");
    }
    let output = run(&["stop", &first.address.to_string()]);
    let stopped = format!("process {} has stopped\n", first.process.0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), stopped, "{}", said(&output));
    assert_eq!(second.get("/1k.html").status, 200, "only the chosen server stops");
}

fn status_escapes_what_a_server_sends() {
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    let mut report = server.status();
    report["engine"] = "a\u{9b}31m\u{202e}b".into();
    let folder = TempFolder::new("status");
    let (socket, control) = (folder.at("socket"), folder.at("socket").display().to_string());
    let listener = UnixListener::bind(socket).expect("a temporary folder");
    let sent = report.to_string();
    let liar = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("the command connects");
            stream.write_all(sent.as_bytes()).expect("the command reads");
        }
    });
    let shown = [&["--json"][..], &[]].map(|words| {
        let output = tenfold(&[&["status", "--control", &control], words].concat());
        String::from_utf8(output.stdout).expect("text")
    });
    liar.join().expect("it was asked twice");
    let [json, table] = &shown;
    assert!(json.contains("\"a\\u009b31m\\u202eb\"") && table.contains("a\\u{9b}31m\\u{202e}b"), "{shown:?}");
    assert!(!shown.concat().contains(['\u{9b}', '\u{202e}']), "{shown:?}");
    assert_eq!(serde_json::from_str::<Value>(json).expect("JSON"), report);
}

fn status_counts(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let mut wire = server.connect();
    for _ in 0..5 {
        wire.get("/1k.html");
        wire.response();
    }
    for _ in 0..2 {
        wire.get("/none.html");
        wire.response();
    }
    wire.send(request("HEAD", "/1k.html", &[]));
    wire.head();
    // Blocking engines publish counters at the start of a wait, so the counters may be late.
    becomes_true(SOON, "what was done is counted", || server.status()["requests"] == 8);
    let status = server.status();
    assert_eq!(status["connections"]["open"], 1, "{status}");
    assert_eq!(status["responses"]["200"], 6, "{status}");
    assert_eq!(status["responses"]["404"], 2, "{status}");
    assert!(status["bytes"].as_u64() > Some(5 * 1024), "{status}");
    // The accepting thread is listed too.
    let rows = config.workers() + usize::from(config.topology == Topology::Handoff);
    let told = status["workers"].as_array().cloned().unwrap_or_default();
    assert_eq!(told.len(), rows, "{status}");
    let numbers: Vec<_> = told.iter().filter_map(|worker| worker["worker"].as_u64()).collect();
    assert_eq!(numbers, (1..=config.workers() as u64).collect::<Vec<_>>(), "workers have numbers: {status}");
    let shares: f64 = told.iter().filter_map(|worker| worker["share"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "the shares of all workers are the whole: {status}");
    drop(wire);
    let mut wire = server.connect();
    wire.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(wire.response().status, 400);
    wire.expect_end();
    drop(wire);
    becomes_true(SOON, "a refusal is counted by its reason", || {
        server.status()["refusals"]["malformed"] == 1
    });
    becomes_true(SOON, "a closed connection is not open", || server.status()["connections"]["open"] == 0);
}

fn the_start_says_what_runs(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--log-level", "debug").start();
    let said = server.errors();
    let root = site::shared().display().to_string();
    let address = format!("http://{}", server.address);
    for word in
        [address, root, config.engine.to_string(), config.topology.to_string(), config.sender.to_string()]
    {
        assert!(said.contains(&word), "{word:?} is not said in:\n{said}");
    }
    let plain = tenfold(&["--help"]);
    assert_eq!(plain.status.code(), Some(0));
}
