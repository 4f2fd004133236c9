//! Files that are not in memory: a thread reads them, and the loop serves other connections.

use std::fs::File;

use rustix::fs::{Advice, fadvise};
use tenfold_engine::{Driver, Engine, Sender};
use tenfold_sys::file::{is_cached, read_cached};
use tenfold_testkit::folder::TempFolder;

use crate::Statement;
use crate::configuration::Configuration;
use crate::launch::{Server, request};
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    with_loop: a_file_that_is_not_cached_is_read_off_the_loop;
    plain_loop: a_cold_file_is_sent_whole_and_in_order, a_client_that_leaves_a_cold_file_harms_no_other;
];

/// Whether a slow disk could stop the loop. A ring itself reads for the sender `copy`, so its loop does not stop.
fn with_loop(configuration: &Configuration) -> bool {
    let ring_reads = configuration.engine == Engine::Uring && configuration.sender == Sender::Copy;
    configuration.driver() != Driver::Blocking && (configuration.tls || !ring_reads)
}

fn plain_loop(configuration: &Configuration) -> bool {
    with_loop(configuration) && !configuration.tls
}

/// Whether a thread has read for the loop. The service of these tests also has such threads; they start with the first
/// answer that takes time.
fn has_readers(server: &Server) -> bool {
    server.process().threads().iter().any(|name| name.starts_with("offload-"))
}

/// The most evictions of a file from the page cache. A read of cached bytes also starts a read of the missing pages
/// (`filemap_get_pages`). If the thread is preempted there, the pages may arrive before the check: about one of 450
/// times on a quick disk. Readahead then loads the whole file. In that case the loop has not waited, and no thread has
/// read.
const EVICTIONS: usize = 10;

fn a_file_that_is_not_cached_is_read_off_the_loop(configuration: &Configuration) {
    let (folder, length) = (TempFolder::new("cold"), 3 << 20);
    let path = folder.write("file", &pattern::large()[..length]);
    let file = File::open(&path).expect("it was made");
    file.sync_all().expect("it can be written");
    let server = Server::start_with(configuration, &[("sparse", &path.to_string_lossy())]);
    let mut client = server.connect();
    let read_elsewhere = (0..EVICTIONS).any(|_| {
        fadvise(&file, 0, None, Advice::DontNeed).expect("a file takes advice");
        // Some file systems, such as those in memory, keep everything cached. The check itself may read ahead, so it
        // reads the last byte.
        let last = length as u64 - 1;
        let cold = match configuration.tls {
            true => !matches!(read_cached(&file, &mut [0], last), Ok(Some(_))),
            false => is_cached(&file, last) == Some(false),
        };
        for _ in 0..2 {
            client.get("/sparse");
            assert!(client.response().body == pattern::large()[..length], "the file is another one");
        }
        !cold || has_readers(&server)
    });
    assert!(read_elsewhere, "the loop has read the file");
    drop(client);
    server.stop();
}

fn a_cold_file_is_sent_whole_and_in_order(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("cold", "true")]);
    let mut client = server.connect();
    for _ in 0..3 {
        assert!(client.fetch("/large?3000000").body == pattern::large()[..3_000_000], "another answer");
    }
    client.send([request("/small"), request("/large?100000"), request("/mix"), request("/small")].concat());
    assert_eq!(client.response().body, SMALL);
    assert!(client.response().body == pattern::large()[..100_000], "another answer");
    let mix = client.response().body;
    assert_eq!(client.response().body, SMALL);
    assert!(has_readers(&server), "the loop has read the file");
    let warm = Server::start(configuration);
    assert!(warm.connect().fetch("/mix").body == mix, "another answer");
    warm.stop();
    drop(client);
    server.stop();
}

fn a_client_that_leaves_a_cold_file_harms_no_other(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("cold", "true")]);
    for _ in 0..20 {
        server.connect().get("/large");
        let mut half = server.connect();
        half.get("/large");
        half.head();
    }
    let mut client = server.connect();
    client.get("/large?1000000");
    assert_eq!(client.head().promised(), 1_000_000);
    assert!(client.take(1_000_000) == pattern::large()[..1_000_000], "another answer");
    assert_eq!(client.fetch("/small").body, SMALL);
    drop(client);
    server.stop();
}
