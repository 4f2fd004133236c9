//! The first command lines: short forms of addresses, ports, and hints that lead to the right word.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};

use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "first-steps",
    cases: cases![
        Own on EPOLL: an_address_has_short_forms, without_ipv6_all_addresses_are_those_of_ipv4, a_taken_port_is_passed_over_only_with_auto;
        Once: the_name_alone_offers_the_next_step, words_of_other_servers_lead_to_settings,
            words_of_other_programs_lead_to_commands, completions_offer_values,
            init_writes_a_file_that_serves, help_is_short_and_finds_words;
    ],
};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn an_address_has_short_forms(config: &Config) {
    let start = |form: &str| {
        let (flag, value) = form.split_once(' ').expect("a flag and its value");
        Launch::new(config, site::shared()).flag(flag, value).start_configured()
    };
    let from = |at: SocketAddr| {
        let mut wire = Wire::connect(at);
        wire.get("/1k.html");
        wire.response().status
    };
    let forms = ["-p 0", "--port 0", "-l 0", "--listen localhost:0", "--listen 0.0.0.0:0", "--listen :0"];
    for form in forms {
        let server = start(form);
        let number = server.listening()[0].port();
        assert_eq!(from(SocketAddr::from((Ipv4Addr::LOCALHOST, number))), 200, "{form}");
        let all = server.errors().contains("other machines: it listens on all addresses");
        assert_eq!(all, form.contains(':') && !form.contains("local"), "{form}: {}", server.errors());
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        for form in ["--listen [::]:0", "--listen :0"] {
            let server = start(form);
            assert!(server.address.is_ipv6(), "{form}");
            assert_eq!(from(server.address), 200, "{form}");
        }
    }
}

/// The filter refuses sockets of IPv6 (family 10) with EAFNOSUPPORT (97), as a kernel without IPv6 does.
fn without_ipv6_all_addresses_are_those_of_ipv4(config: &Config) {
    const FILTER: &str = "import ctypes, os, struct, sys\n\
        number = {'x86_64': 41, 'aarch64': 198}[os.uname().machine]\n\
        steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 10), (6, 0, 0, 0x50061), \
        (6, 0, 0, 0x7fff0000)]\n\
        code = b''.join(struct.pack('HBBI', *step) for step in steps)\n\
        room = ctypes.create_string_buffer(code)\n\
        program = struct.pack('HxxxxxxP', len(steps), ctypes.addressof(room))\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let launch = Launch::new(config, site::shared()).through("python3", &["-c", FILTER]);
    let server = launch.word("-v").flag("--listen", ":0").start_configured();
    assert!(server.address.is_ipv4());
    assert_eq!(server.get("/1k.html").status, 200);
    server.expect_report("no IPv6, so :PORT");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_taken_port_is_passed_over_only_with_auto(config: &Config) {
    // The bind fails if another process has the port, which is as good.
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 8080));
    let launch = || Launch::new(config, site::shared()).flag("--control", "off");
    let refused = launch().flag("-p", 8080).refused();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("in use") && said.contains("--port auto"), "{said}");
    // A test by bind would leave the socket in concurrently forked processes.
    let is_free = |port: &u16| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err();
    let next = (8081..8180).find(is_free).expect("one of them is free");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, next));
    let server = Launch::new(config, site::shared()).flag("--port", "auto").start_at(address);
    assert_eq!(server.get("/1k.html").status, 200);
}

fn the_name_alone_offers_the_next_step() {
    let output = tenfold(&[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for word in ["tenfold serve ", "http://127.0.0.1:8080/", "tenfold book", "--help"] {
        assert!(said.contains(word), "{word:?} is missing in:\n{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

fn words_of_other_servers_lead_to_settings() {
    let refused = |words: &[&str], hint: &str| {
        let output: Output = tenfold(&[&["serve"], words].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(hint), "{words:?}: {said}");
    };
    refused(&["--gzip"], "'--compress'");
    refused(&["--autoindex"], "'--listing'");
    refused(&["--enigne", "epoll"], "'--engine'");
    refused(&["--proxy-pass", "http://x"], "forwards no request");
    refused(&["-p", "80000"], "or auto");
    let folder = TempFolder::new("words");
    folder.write("site/index.html", "x");
    for (line, hint) in [
        ("port = 8080", "did you mean listen?"),
        ("gzip = true", "did you mean compress?"),
        ("ssl_certificate = \"x\"", "did you mean tls-certificate?"),
        ("proxy_pass = \"http://x\"", "forwards no request"),
        ("[site]\nproxy_pass = \"http://x\"", "forwards no request"),
        ("[site]\ngzip = true", "the setting compress does this"),
        ("[[redirect]]\nfrom = \"/a\"\nto = \"/b\"", "[[site.redirect]]"),
        ("error-pages.404 = \"/missing.html\"", "[site.error-pages]"),
        ("server_name = \"a.example\"", "[[host]] with name"),
        ("server_tokens = \"off\"", "never names a version"),
        ("[site]\nprecompressed = \"gzip\"", "a setting of the whole server"),
        ("[[site.path]]\nmatch = \"/a/**\"\nexpires = \"1h\"", "did you mean cache?"),
        ("[[host]]\nserver_name = \"a.example\"", "did you mean name?"),
        ("[site.headers]\nX-A = \"b\"", "set.X-Frame-Options"),
        ("listing = true", "html, json, off"),
        ("[[site.redirect]]\nfrom = \"^/a/(.*)$\"\nto = \"/b\"", "not a regular expression"),
        ("[[site.redirect]]\nfrom = \"/a/*\"\nto = \"/b/*\"", "a star only in a final"),
    ] {
        let file = folder.write("tenfold.toml", format!("root = \"site\"\n{line}\n"));
        let output = tenfold(&["check", &file.display().to_string()]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(hint), "{line}: {said}");
    }
    for (content, hint) in [
        ("user www-data;\nevents {}\n", "a configuration of nginx"),
        ("<VirtualHost *:80>\n</VirtualHost>\n", "a configuration of Apache"),
        ("example.org {\n  file_server\n}\n", "a Caddyfile"),
    ] {
        let said = text(&tenfold(&["check", &folder.write("foreign", content).display().to_string()]).stderr);
        assert!(said.contains(hint) && said.contains("`tenfold migrate "), "{content}: {said}");
    }
}

fn words_of_other_programs_lead_to_commands() {
    let folder = TempFolder::new("commands");
    let folder = folder.path().display().to_string();
    for (words, hint) in [
        (&[folder.as_str()][..], "tenfold serve "),
        (&["file-server", "--root", "x"], "tenfold serve DIR"),
        (&["wrk", "-t2"], "tenfold bench URL"),
        (&["-t"], "tenfold check FILE"),
        (&["restart"], "tenfold reload"),
        (&["quit"], "tenfold stop"),
        (&["create", "site"], "tenfold init DIR"),
        (&["serve", "x", "8000"], "-p 8000 listens"),
        (&["serve", "x", ":8000"], "-l :8000 listens"),
        (&["serve", "x", "--host", "0.0.0.0"], "'--listen'"),
        (&["serve", "x", "--cork", "on"], "'--tcp-cork'"),
        (&["serve", "x", "--redirect", "/a=/b"], "[[site.redirect]]"),
        (&["check", "--config", "x.toml"], "needs no flag"),
        (&["stop", "-c", "x.toml"], "`tenfold stop 8080` selects"),
        (&["reload", "--port", "8000"], "`tenfold reload 8080` selects"),
        (&["sevre"], "'serve', 'users'"),
        (&["lab", "run", "n16-tcp"], "--only n16-tcp"),
        (&["bench", "-R", "100", "x"], "--rate R"),
        (&["bench", "-s", "x.lua", "x"], "--method"),
        (&["bench", "--latency", "x"], "always printed"),
        (&["bench", "-q", "10", "x"], "a number, not a host name"),
    ] {
        let output = tenfold(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(hint), "{words:?}: {said}");
    }
    // Only `lab run` has the flag.
    let said = text(&tenfold(&["lab", "doctor", "n16-tcp"]).stderr);
    assert!(said.contains("n16-tcp") && !said.contains("--only"), "{said}");
}

fn init_writes_a_file_that_serves() {
    let folder = TempFolder::new("init");
    folder.write("public/index.html", "the page\n");
    folder.write("public/404.html", "nothing here\n");
    folder.make("public/deep");
    let program = &binary::server().expect("the server is built").path;
    let run = |within: &str, words: &[&str]| {
        let mut command = Command::new(program);
        let output = command.args(words).current_dir(folder.at(within)).output().expect("a program");
        (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    let file = folder.at("tenfold.toml");
    // A file in the folder of pages would be served.
    for (within, words) in [("public", &["."][..]), ("public/deep", &[".."]), ("public", &["../public"])] {
        let (code, said) = run(within, &[&["init"], words].concat());
        assert!(code == Some(1) && said.contains("would be a page of the site"), "{words:?}: {said}");
    }
    let (code, said) = run("public/deep", &["init"]);
    assert!(code == Some(1) && said.contains("tenfold init DIR"), "{said}");
    let (code, said) = run("", &["init", "--tls", "internal", "--tls", "a.example"]);
    assert!(code == Some(2) && said.contains("--tls: "), "{said}");
    assert!(!file.exists());
    for (words, has) in [
        (&["init"][..], "listen = \"127.0.0.1:8080\"\n"),
        (&["init", "public", "--spa"], "\nfallback = \"/index.html\"\n"),
        (&["init", "public", "--tls", "internal"], "\ntls = \"internal\"\n"),
    ] {
        let (code, said) = run("", words);
        assert!(code == Some(0) && said.contains("tenfold serve -c tenfold.toml"), "{words:?}: {said}");
        let written = std::fs::read_to_string(&file).expect("it was written");
        assert!(written.contains(has) && written.contains("\n404 = \"/404.html\"\n"), "{words:?}: {written}");
        let (code, said) = run("", &["init", "public"]);
        assert!(code == Some(1) && said.contains("is not overwritten"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).expect("it was written"), written);
        let (code, said) = run("", &["check", "tenfold.toml"]);
        assert!(code == Some(0) && said.contains("tenfold.toml: OK\n"), "{words:?}: {said}");
        std::fs::remove_file(&file).expect("our own file");
    }
}

fn help_is_short_and_finds_words() {
    let shown = |words: &[&str]| {
        let output = tenfold(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let (usual, all) = (shown(&["serve", "--help"]), shown(&["serve", "--help-all"]));
    assert!(
        usual.lines().count() <= 120 && usual.contains("--tls ") && !usual.contains("--tcp-cork"),
        "{usual}"
    );
    assert!(all.contains("--tls ") && all.contains("--tcp-cork") && all.contains("--null-body"), "{all}");
    assert_eq!(shown(&["help", "serve"]), usual);
    assert_eq!(shown(&["help", "lab", "run"]), shown(&["lab", "run", "--help"]));
    assert!(shown(&["help"]).contains("Usage: tenfold <COMMAND>"));
    let found = shown(&["help", "histogram"]);
    assert!(found.contains("tenfold bench --hdr FILE") && !found.contains("--listen"), "{found}");
    let rate = "maximum number of requests per second from one address (IPv6: one /64) to all workers [default: off]";
    assert!(shown(&["help", "max-requests"]).contains(rate), "a description is not cut in parentheses");
    let output = tenfold(&["help", "certifcate"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("certificate"), "{said}");
}

fn completions_offer_values() {
    let folder = TempFolder::new("completions");
    let script = folder.write("tenfold.bash", tenfold(&["completions", "bash"]).stdout);
    let asked = "source \"$0\"; COMP_WORDS=(tenfold serve --engine u); COMP_CWORD=3; _tenfold tenfold u --engine; \
                 echo \"${COMPREPLY[@]}\"";
    let output =
        Command::new("bash").args(["--norc", "-c", asked]).arg(&script).output().expect("there is a bash");
    assert_eq!(text(&output.stdout), "uring\n", "{}", text(&output.stderr));
}
