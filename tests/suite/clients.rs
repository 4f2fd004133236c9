//! Independent clients: popular tools receive the right content.

pub(crate) mod http2;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenfold_tests::binary::workspace;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, MODIFIED_DATE, TempFolder};
use tenfold_tests::tools::program;

pub(crate) const THEME: Theme = Theme {
    name: "clients",
    cases: cases![
        Own on DRIVERS: curl_takes_ranges_and_resumes, wget_copies_the_demonstration_site,
            aria2_takes_a_file_in_eight_pieces, git_clones_a_bare_repository, pip_installs_from_a_folder,
            apt_updates_from_a_folder, ffprobe_reads_the_film,
            curl_takes_a_large_file_and_a_thousand_at_once, nghttp_takes_a_large_file_and_a_thousand_at_once;
        Own on EPOLL_OR_ALL: h2load_counts_a_large_file_and_a_thousand_at_once,
            go_takes_a_large_file_and_a_thousand_at_once, hyper_takes_a_large_file_and_a_thousand_at_once;
    ],
};

use self::http2::{
    curl_takes_a_large_file_and_a_thousand_at_once, go_takes_a_large_file_and_a_thousand_at_once,
    h2load_counts_a_large_file_and_a_thousand_at_once, hyper_takes_a_large_file_and_a_thousand_at_once,
    nghttp_takes_a_large_file_and_a_thousand_at_once,
};

/// Short idle timeouts, so that a serial engine reaches the next connection of a client with several.
fn serve(config: &Config, root: &Path) -> Server {
    let launch = Launch::new(config, root);
    if config.at_once().is_some() { launch.flag("--idle-timeout", "200ms").start() } else { launch.start() }
}

fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Runs a program in `folder`, without this user's configuration; returns its output.
#[track_caller]
fn run(name: &str, folder: &Path, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(program(name));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env("HOME", folder).env("LC_ALL", "C").env("no_proxy", "127.0.0.1");
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"] {
        command.env_remove(variable);
    }
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap_or_else(|error| panic!("run {name}: {error}"));
    assert!(
        output.status.success(),
        "{name} {}: {}\n{}{}",
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

fn curl_takes_ranges_and_resumes(config: &Config) {
    let (server, folder) = (serve(config, site::shared()), TempFolder::new("curl"));
    let whole = site::content("3m.bin");
    let url = format!("http://{}/3m.bin", server.address);
    let curl = |words: &[&str]| run("curl", folder.path(), &[&["-sSf"], words, &[url.as_str()]].concat());
    assert!(curl(&["--range", "100-199"]) == whole[100..200]);
    assert!(curl(&["--range", "-50"]) == whole[whole.len() - 50..]);
    let parts = text(curl(&["--range", "0-0,1000000-1000000", "-o", "/dev/null", "-w", "%{content_type}"]));
    assert!(parts.starts_with("multipart/byteranges; boundary="), "{parts}");
    assert!(curl(&["--http1.0"]) == whole);
    fs::write(folder.at("part.bin"), &whole[..1_000_000]).expect("our own folder");
    curl(&["-C", "-", "-o", "part.bin"]);
    assert!(read(&folder.at("part.bin")) == whole, "a download that was broken off is resumed");
    let unchanged = curl(&["-z", MODIFIED_DATE, "-o", "/dev/null", "-w", "%{http_code}"]);
    assert_eq!(unchanged, b"304");
    let head = text(curl(&["-I"]));
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Length: 3000001\r\n"),
        "{head}"
    );
    stop(server);
}

/// Files below `folder`, relative to it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = fs::read_dir(&next).unwrap_or_else(|error| panic!("read {}: {error}", next.display()));
        for path in entries.map(|entry| entry.expect("a folder of ours").path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).expect("it is below").to_owned()),
            }
        }
    }
    found
}

fn wget_copies_the_demonstration_site(config: &Config) {
    let demonstration = workspace().join("examples/site");
    let (server, folder) = (serve(config, &demonstration), TempFolder::new("wget"));
    let url = format!("http://{}/", server.address);
    // This server has no accounts, to which pages for members link.
    let how = ["-r", "-l", "inf", "-q", "-nH", "-np", "-X", "/account", "--no-config"];
    run("wget", folder.path(), &[&how[..], &[&url]].concat());
    let copied = files(folder.path());
    let manual = tenfold_book::files(workspace()).unwrap_or_else(|why| panic!("{why}"));
    let (pages, count) = (manual.len(), copied.len());
    assert!(count > pages, "{count} files, and the manual alone has {pages}");
    for name in &copied {
        let copy = read(&folder.path().join(name));
        let original = match name.strip_prefix("book") {
            Ok(page) => manual[page.to_str().expect("text")].clone().into_bytes(),
            Err(_) => read(&demonstration.join(name)),
        };
        assert!(copy == original, "{}", name.display());
    }
    stop(server);
}

fn aria2_takes_a_file_in_eight_pieces(config: &Config) {
    let (server, folder) = (serve(config, site::shared()), TempFolder::new("aria2"));
    let url = format!("http://{}/large.bin", server.address);
    let how = ["--no-conf", "-q", "-x8", "-s8", "-k1M", "--async-dns=false", "--file-allocation=none"];
    run("aria2c", folder.path(), &[&how[..], &[&url]].concat());
    assert!(read(&folder.at("large.bin")) == site::large());
    stop(server);
}

/// The "dumb" protocol needs only files (man 7 gitprotocol-http).
fn git_clones_a_bare_repository(config: &Config) {
    let folder = TempFolder::new("git");
    folder.write("work/page.html", "a page under version control\n");
    let git = |words: &[&str]| {
        let who =
            ["-c", "user.name=Suite", "-c", "user.email=suite@localhost", "-c", "init.defaultBranch=main"];
        run("git", folder.path(), &[&who[..], words].concat())
    };
    git(&["-C", "work", "init", "-q"]);
    git(&["-C", "work", "add", "page.html"]);
    git(&["-C", "work", "commit", "-q", "-m", "A page"]);
    git(&["clone", "-q", "--bare", "work", "site/loose.git"]);
    git(&["clone", "-q", "--bare", "work", "site/packed.git"]);
    git(&["-C", "site/packed.git", "repack", "-adq"]);
    let server = serve(config, &folder.at("site"));
    for name in ["loose", "packed"] {
        let repository = format!("site/{name}.git");
        git(&["-C", &repository, "update-server-info"]);
        let url = format!("http://{}/{name}.git", server.address);
        git(&["clone", "-q", &url, &format!("clone-{name}")]);
        assert_eq!(read(&folder.at(&format!("clone-{name}/page.html"))), b"a page under version control\n");
        git(&["-C", &format!("clone-{name}"), "fsck", "--strict"]);
    }
    stop(server);
}

/// A folder according to PEP 503, with a package of one line.
fn pip_installs_from_a_folder(config: &Config) {
    let folder = TempFolder::new("pip");
    folder.write("wheel/tiny_page/__init__.py", "WORDS = 'from a folder'\n");
    let about = "wheel/tiny_page-1.0.dist-info";
    let metadata = "Metadata-Version: 2.1\nName: tiny-page\nVersion: 1.0\n";
    folder.write(&format!("{about}/METADATA"), metadata);
    let wheel = "Wheel-Version: 1.0\nGenerator: suite\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    folder.write(&format!("{about}/WHEEL"), wheel);
    folder.write(&format!("{about}/RECORD"), "");
    let name = "tiny_page-1.0-py3-none-any.whl";
    folder.write("site/simple/index.html", "<!doctype html><a href=\"tiny-page/\">tiny-page</a>");
    let page = format!("<!doctype html><a href=\"../../files/{name}\">{name}</a>");
    folder.write("site/simple/tiny-page/index.html", page);
    fs::create_dir(folder.at("site/files")).expect("our own folder");
    let archive = folder.at("site/files").join(name).display().to_string();
    let parts = ["-m", "zipfile", "-c", archive.as_str(), "tiny_page", "tiny_page-1.0.dist-info"];
    run("python3", &folder.at("wheel"), &parts);
    let server = serve(config, &folder.at("site"));
    let url = format!("http://{}/simple/", server.address);
    let how = ["-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "-q", "install"];
    let what = ["--index-url", &url, "--target", "installed", "--root-user-action=ignore", "tiny-page"];
    run("python3", folder.path(), &[&how[..], &what].concat());
    assert_eq!(read(&folder.at("installed/tiny_page/__init__.py")), b"WORDS = 'from a folder'\n");
    stop(server);
}

/// A repository with an empty package, in temporary folders: this system is not changed.
fn apt_updates_from_a_folder(config: &Config) {
    let folder = TempFolder::new("apt");
    let fields = "Package: tiny-page\nVersion: 1.0\nArchitecture: all\nMaintainer: Suite <suite@localhost>\n\
                  Description: nothing\n";
    folder.write("package/DEBIAN/control", fields);
    fs::create_dir(folder.at("site")).expect("our own folder");
    run("dpkg-deb", folder.path(), &["--build", "package", "site/tiny-page_1.0_all.deb"]);
    let sum = |name: &str| {
        let line = text(run("sha256sum", &folder.at("site"), &[name]));
        line.split(' ').next().unwrap_or_default().to_owned()
    };
    let size = |name: &str| fs::metadata(folder.at(&format!("site/{name}"))).expect("it was just made").len();
    let file = "tiny-page_1.0_all.deb";
    let place = format!("Filename: ./{file}\nSize: {}\nSHA256: {}\n", size(file), sum(file));
    folder.write("site/Packages", format!("{fields}{place}"));
    let listed = format!(" {} {} Packages\n", sum("Packages"), size("Packages"));
    let release = format!("Date: {}\nSHA256:\n{listed}", "Tue, 14 Nov 2023 22:13:20 UTC");
    folder.write("site/Release", release);
    for name in ["state/lists/partial", "cache/archives/partial", "etc"] {
        fs::create_dir_all(folder.at(name)).expect("our own folder");
    }
    let server = serve(config, &folder.at("site"));
    folder.write("etc/sources.list", format!("deb [trusted=yes] http://{}/ ./\n", server.address));
    folder.write("status", "");
    let here = folder.path().display();
    let settings = [
        format!("Dir::State={here}/state"),
        format!("Dir::State::status={here}/status"),
        format!("Dir::Cache={here}/cache"),
        format!("Dir::Etc={here}/etc"),
        format!("Dir::Etc::sourcelist={here}/etc/sources.list"),
        "Dir::Etc::sourceparts=-".to_owned(),
        "Dir::Etc::parts=-".to_owned(),
        "APT::Sandbox::User=".to_owned(),
        "Acquire::http::Proxy=DIRECT".to_owned(),
        "Acquire::Retries=0".to_owned(),
    ];
    let flags: Vec<&str> = settings.iter().flat_map(|setting| ["-o", setting.as_str()]).collect();
    run("apt-get", folder.path(), &[&flags[..], &["-q", "--error-on=any", "update"]].concat());
    run("apt-get", folder.path(), &[&flags[..], &["-q", "download", "tiny-page"]].concat());
    assert!(read(&folder.at(file)) == read(&folder.at(&format!("site/{file}"))));
    stop(server);
}

fn ffprobe_reads_the_film(config: &Config) {
    let demonstration = workspace().join("examples/site");
    let films = files(&demonstration);
    let film = films.iter().find(|name| name.extension().is_some_and(|extension| extension == "mp4"));
    let film = film.expect("the demonstration has a film");
    let (server, folder) = (serve(config, &demonstration), TempFolder::new("ffprobe"));
    let probe = |place: &str| {
        let what = ["-v", "error", "-show_entries", "format=duration,size:stream=codec_name,width,height"];
        text(run("ffprobe", folder.path(), &[&what[..], &["-of", "csv", place]].concat()))
    };
    let served = probe(&format!("http://{}/{}", server.address, film.display()));
    assert_eq!(served, probe(&demonstration.join(film).display().to_string()));
    assert!(served.contains("stream,"), "{served}");
    stop(server);
}
