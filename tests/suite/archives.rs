//! Folders as archives.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::http2::Http2Wire;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::site::{self, MODIFIED, TempFolder};
use tenfold_tests::wire::{ConnectionEnd, Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "archives",
    cases: cases![
        Own on SENDERS + TLS + ANOTHER_TLS: an_archive_has_the_same_bytes_in_every_version,
            a_file_that_vanishes_ends_an_archive;
        Own on DRIVERS + ANOTHER: a_file_of_an_archive_is_opened_when_its_turn_comes;
        Own on EPOLL: tar_unpacks_an_archive, a_configured_site_has_no_archives;
    ],
};

/// More than the buffers of two sockets.
const BYTES: usize = 24 << 20;

/// The first archive. The archives of other engines have the same bytes.
static ARCHIVE: OnceLock<Vec<u8>> = OnceLock::new();

/// Writes a folder of small files, a large file, and files of no or one block.
fn fill(folder: &TempFolder) {
    for number in 0..300 {
        folder.write(&format!("pack/{}/small-{number}.txt", number % 7), site::bytes(number * 3, 7));
    }
    folder.write("pack/large.bin", site::bytes(3 << 20, 9));
    folder.write("pack/empty", "");
    folder.write("pack/block", site::bytes(512, 5));
    folder.write("pack/.hidden", "hidden");
}

fn an_archive_has_the_same_bytes_in_every_version(config: &Config) {
    let folder = TempFolder::new("archive");
    fill(&folder);
    for number in 0..7 {
        let made = fs::File::open(folder.at(&format!("pack/{number}"))).expect("our own folder");
        made.set_modified(UNIX_EPOCH + Duration::from_secs(MODIFIED)).expect("our own folder");
    }
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let mut wire = server.connect();
    wire.send([request("GET", "/pack/?archive=tar", &[]), request("GET", "/pack/block", &[])].concat());
    let archive = wire.response();
    assert_eq!((archive.status, archive.need("Content-Type")), (200, "application/x-tar"));
    assert!(wire.response().body == site::bytes(512, 5), "the next response follows");
    drop(wire);
    assert!(archive.body.len() > (3 << 20) + 300 * 1024, "{} bytes", archive.body.len());
    assert!(
        archive.body == *ARCHIVE.get_or_init(|| archive.body.clone()),
        "another engine sends other bytes"
    );
    let head = server.ask("HEAD", "/pack/?archive=tar", &[]);
    assert_eq!(head.promised(), archive.body.len());
    let wire = Wire::connect(server.address);
    let mut http2 = Http2Wire::new(if config.tls { wire.with_protocol("h2") } else { wire });
    let large = http2.begin("GET", "/pack/?archive=tar", &[], b"");
    assert!(http2.ask("GET", "/pack/block", &[], b"").body == site::bytes(512, 5));
    assert!(http2.response(large).body == archive.body, "HTTP/2 has other bytes");
    drop(http2);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A client must not take the archive for complete.
fn a_file_that_vanishes_ends_an_archive(config: &Config) {
    let folder = TempFolder::new("archive-vanishes");
    folder.write("1.bin", site::bytes(BYTES, 24));
    folder.write("2.bin", "gone");
    folder.write("3.bin", "after it");
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let mut wire = server.connect();
    rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 64 * 1024).expect("a socket of ours");
    wire.get("/?archive=tar");
    let promised = wire.head().promised();
    assert!(promised > BYTES);
    fs::remove_file(folder.at("2.bin")).expect("our own file");
    let (rest, end) = wire.rest();
    assert!(rest.len() < promised, "{} of {promised} bytes came", rest.len());
    assert!(!rest.windows(8).any(|window| window == b"after it"), "a later file came");
    assert_eq!(end, if config.tls { ConnectionEnd::Cut } else { ConnectionEnd::Reset });
    drop(wire);
    assert_eq!(server.get("/3.bin").body, b"after it", "the server goes on");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_file_of_an_archive_is_opened_when_its_turn_comes(config: &Config) {
    let folder = TempFolder::new("archive-descriptors");
    (0..200).for_each(|number| drop(folder.write(&format!("{number}.bin"), site::bytes(BYTES / 200, 1))));
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let mut wire = server.connect();
    rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 64 * 1024).expect("a socket of ours");
    wire.get("/?archive=tar");
    let promised = wire.head().promised();
    let mut received = 0;
    while received < BYTES / 2 {
        received += wire.take(1 << 20).len();
        let all = server.process.with_descendants().into_iter().flat_map(Process::descriptors);
        let open = all.filter(|what| what.ends_with(".bin")).count();
        assert!((1..=2).contains(&open), "{open} of 200 files are open");
    }
    assert_eq!(received + wire.take(promised - received).len(), promised);
}

/// Whether two folders have the same files, except names that begin with a dot.
fn is_same(one: &Path, other: &Path) -> bool {
    let output = Command::new("diff").args(["-r", "-x", ".*"]).args([one, other]).output();
    output.is_ok_and(|output| output.status.success())
}

fn tar_unpacks_an_archive(config: &Config) {
    let folder = TempFolder::new("archive-unpacked");
    fill(&folder);
    folder.write(&format!("pack/{}/{}", "d".repeat(120), "\u{fc}".repeat(100)), "a long name");
    fs::create_dir(folder.at("unpacked")).expect("our own folder");
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let archive = folder.write("archive.tar", server.get("/pack/?archive=tar").body);
    let mut tar = Command::new("tar");
    let tar = tar.args(["--extract", "--file"]).arg(&archive).arg("--directory").arg(folder.at("unpacked"));
    assert!(tar.status().is_ok_and(|status| status.success()), "tar refuses the archive");
    assert!(is_same(&folder.at("pack"), &folder.at("unpacked/pack")), "the files differ");
    assert!(!folder.at("unpacked/pack/.hidden").exists());
}

fn a_configured_site_has_no_archives(config: &Config) {
    let folder = TempFolder::new("archive-configured");
    folder.write("site/docs/a.txt", "12345");
    for (more, kind) in [("", "text/html; charset=utf-8"), ("archives = true\n", "application/x-tar")] {
        let text = format!("root = \"site\"\nlisting = \"html\"\n{more}");
        let file = folder.write("tenfold.toml", text);
        let server = Launch::bare(config).flag("--config", file.display()).start();
        assert_eq!(server.get("/docs/?archive=tar").need("Content-Type"), kind, "{more}");
    }
    let server = Launch::new(config, &folder.at("site")).flag("--archives", "off").start();
    assert_eq!(server.get("/docs/?archive=tar").need("Content-Type"), "text/html; charset=utf-8");
}
