//! Connections that share a loop take turns, and a loop with nothing to do sleeps.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::Driver;
use tenfold_testkit::folder::TempFolder;

use crate::Statement;
use crate::configuration::{Configuration, one_loop};
use crate::launch::{Server, request};
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    one_loop: who_asks_without_end_leaves_others_their_turn, who_takes_without_end_leaves_others_their_turn,
        much_work_for_few_bytes_leaves_others_their_turn;
    loops: a_loop_that_waits_for_answers_sleeps, a_loop_that_waits_for_room_sleeps;
];

/// The longest wait of other connections for their turn. A loop without turns never answers them, so only a failure
/// takes this long. A busy machine with a sanitizer needed 19 s.
const TURN: Duration = Duration::from_secs(60);

fn loops(configuration: &Configuration) -> bool {
    configuration.driver() != Driver::Blocking && configuration.sleeps()
}

/// Sends five requests on a new connection while other connections are busy.
fn others_have_their_turn(server: &Server) {
    let begun = Instant::now();
    let mut client = server.connect();
    for _ in 0..5 {
        client.wait_at_most(TURN);
        assert_eq!(client.fetch("/small").body, SMALL);
    }
    assert!(begun.elapsed() < TURN, "five answers took {:?}", begun.elapsed());
}

fn who_asks_without_end_leaves_others_their_turn(configuration: &Configuration) {
    let server = Server::start(configuration);
    let over = Arc::new(AtomicBool::new(false));
    let mut client = server.connect();
    let mut writer = client.writer();
    let stop = over.clone();
    let asking = thread::spawn(move || {
        // So many requests that there is always more to receive.
        let many = request("/small").repeat(20_000);
        while !stop.load(Ordering::Relaxed) && writer.try_send(&many).is_ok() {}
        writer.end_output();
    });
    assert!(client.discard(), "no answer comes");
    let reading = thread::spawn(move || while client.discard() {});
    others_have_their_turn(&server);
    over.store(true, Ordering::Relaxed);
    asking.join().expect("the requests were taken");
    reading.join().expect("the answers were read");
    server.stop();
}

/// The requests of the busy connection wait in the kernel, and take at least a second. The test compares the order of
/// answers, not times: the other connection's answer comes before the last of these.
fn much_work_for_few_bytes_leaves_others_their_turn(configuration: &Configuration) {
    const MANY: usize = 1000;
    let server = Server::start(configuration);
    let (mut busy, mut other) = (server.connect(), server.connect());
    assert_eq!(busy.fetch("/small").body, SMALL);
    assert_eq!(other.fetch("/small").body, SMALL);
    busy.send(request("/slow").repeat(MANY));
    let counters = String::from_utf8(other.fetch("/counters").body).expect("counters are text");
    let answered = counters.lines().find_map(|line| line.strip_prefix("slow ")?.parse().ok());
    let answered: usize = answered.expect("a counter");
    assert!(answered < MANY / 2, "{answered} answers came first");
    for _ in 0..MANY {
        busy.response();
    }
    server.stop();
}

fn who_takes_without_end_leaves_others_their_turn(configuration: &Configuration) {
    let folder = TempFolder::new("sparse");
    let path = folder.at("file");
    let size = 64 << 30;
    File::create(&path).and_then(|file| file.set_len(size)).expect("a file may have holes");
    let server = Server::start_with(configuration, &[("sparse", &path.to_string_lossy())]);
    let over = Arc::new(AtomicBool::new(false));
    let takers: Vec<_> = (0..2)
        .map(|_| {
            let (mut client, stop) = (server.connect(), over.clone());
            client.get("/sparse");
            client.head();
            thread::spawn(move || while !stop.load(Ordering::Relaxed) && client.discard() {})
        })
        .collect();
    others_have_their_turn(&server);
    over.store(true, Ordering::Relaxed);
    takers.into_iter().for_each(|taker| taker.join().expect("the file was taken"));
    server.stop();
}

fn a_loop_that_waits_for_answers_sleeps(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut half_closed = server.connect();
    half_closed.get("/never");
    half_closed.end_output();
    let mut impatient = server.connect();
    impatient.send([request("/never"), request("/small").repeat(2000)].concat());
    let mut gone = server.connect();
    gone.get("/never");
    drop(gone);
    server.falls_asleep();
    server.stop();
}

fn a_loop_that_waits_for_room_sleeps(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut half_closed = server.connect();
    half_closed.get("/large");
    half_closed.end_output();
    let mut impatient = server.connect();
    let mut writer = impatient.writer();
    writer.send([request("/large"), request("/small").repeat(1000)].concat());
    impatient.head();
    let mut many = server.connect();
    many.send(request("/shared").repeat(100));
    server.falls_asleep();
    server.stop();
}
