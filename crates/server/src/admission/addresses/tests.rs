use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::thread;

use tenfold_sys::process::Pid;
use tenfold_sys::{clock, task};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn key(address: &str) -> AddressKey {
    AddressKey::of_address(address.parse().expect("an address"))
}

fn host(number: u32) -> AddressKey {
    AddressKey::of_address(IpAddr::V4(Ipv4Addr::from_bits(number)))
}

fn table(addresses: usize, lanes: usize) -> Addresses {
    Addresses::new(addresses, lanes).expect("there is memory")
}

#[test]
fn ipv6_counts_by_64_bits_and_ipv4_whole_in_either_spelling() {
    assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:ffff:ffff:ffff"));
    assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
    assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    let apart = ["::1", "0.0.0.0", "127.0.0.1", "255.255.255.255", "fe80::1", "ff02::1"].map(key);
    assert!(apart.iter().all(|key| key.0 != FREE && key.0 != CHANGING));
    assert_eq!(AddressKey::of(&Peer::Unix), None);
    assert!(AddressKey::of(&Peer::Internet(SocketAddr::from(([127, 0, 0, 1], 80)))).is_some());
}

#[test]
fn the_bound_is_exact_over_all_processes_and_others_are_unhurt() {
    let table = table(64, 2);
    let (one, other) = (host(1), host(2));
    for lane in [0, 1, 0] {
        assert_eq!(table.connect(one, lane, 3, 0), Admitting::Admitted);
    }
    for lane in [0, 1] {
        assert_eq!(table.connect(one, lane, 3, 0), Admitting::TooMany);
    }
    assert_eq!(table.connect(other, 0, 3, 0), Admitting::Admitted);
    table.disconnect(one, 1);
    assert_eq!(table.connect(one, 0, 3, 0), Admitting::Admitted);
    assert_eq!(table.connect(one, 0, 3, 0), Admitting::TooMany);
}

#[test]
fn a_process_that_is_gone_takes_its_connections_with_it() {
    let table = table(64, 2);
    for lane in [0, 0, 1] {
        assert_eq!(table.connect(host(1), lane, 3, 0), Admitting::Admitted);
    }
    table.settle(0);
    assert_eq!(table.connections(table.find(host(1)).expect("it has a place")), 1);
    // A second end of the same connection removes no other connection.
    table.disconnect(host(1), 0);
    assert_eq!(table.connections(table.find(host(1)).expect("it has a place")), 1);
}

#[test]
fn requests_come_at_their_rate_after_a_burst() {
    let (table, rate, start) = (table(64, 1), RequestRate::new(10, 5), SECOND);
    for _ in 0..5 {
        assert_eq!(table.request(host(1), rate, start), None);
    }
    assert_eq!(table.request(host(1), rate, start), Some(Duration::from_millis(100)));
    assert_eq!(table.request(host(2), rate, start), None, "another address");
    assert_eq!(table.request(host(1), rate, start + SECOND / 10), None);
    assert_eq!(table.request(host(1), rate, start + SECOND / 10), Some(Duration::from_millis(100)));
    // A pause of any length gives at most one burst.
    let later = start + 100 * SECOND;
    assert_eq!((0..100).filter(|_| table.request(host(1), rate, later).is_none()).count(), 5);
    // The clock of another worker may be a tick late.
    assert!(table.request(host(1), rate, later - SECOND / 100).is_some());
}

#[test]
fn the_table_is_bounded_and_the_idle_make_room() {
    let table = table(WAYS, 1);
    for number in 0..WAYS as u32 {
        assert_eq!(table.connect(host(number), 0, 9, 0), Admitting::Admitted);
    }
    assert_eq!(table.connect(host(100), 0, 9, 0), Admitting::NoRoom, "everybody is connected");
    assert!(table.request(host(100), RequestRate::new(1, 1), 0).is_some(), "and it may not ask either");
    table.disconnect(host(3), 0);
    assert_eq!(table.connect(host(100), 0, 9, 0), Admitting::Admitted);
    assert_eq!(table.find(host(3)), None, "whose place it has");
    assert_eq!(table.connect(host(2), 0, 1, 0), Admitting::TooMany, "others are still known");
}

#[test]
fn the_longest_idle_address_is_replaced_first() {
    let (table, rate) = (table(WAYS, 1), RequestRate::new(1, 10));
    for number in 0..WAYS as u32 {
        assert_eq!(table.request(host(number), rate, SECOND * u64::from(number + 1)), None);
    }
    assert_eq!(table.request(host(100), rate, 100 * SECOND), None);
    assert_eq!(table.find(host(0)), None);
    assert!((1..WAYS as u32).all(|number| table.find(host(number)).is_some()));
}

#[test]
fn a_holder_that_died_holds_up_nobody_for_ever() {
    for is_waited_for in [true, false] {
        let table = table(WAYS, 1);
        let mut holder = Command::new("true").spawn().expect("a program that does nothing");
        table.rows.row(LOCKS)[0].store(lock::word(Pid::from_child(&holder), clock::since_boot()), SeqCst);
        table.keys()[5].store(CHANGING, SeqCst);
        if is_waited_for {
            holder.wait().expect("our own child");
        }
        for number in 0..WAYS as u32 {
            assert_eq!(table.connect(host(number), 0, 1, 0), Admitting::Admitted, "{number}");
        }
        assert_eq!(table.rows.row(LOCKS)[0].load(SeqCst), lock::FREE);
        holder.wait().expect("our own child");
    }
}

#[test]
fn a_holder_that_lives_is_waited_for() {
    let table = table(WAYS, 1);
    let lock = &table.rows.row(LOCKS)[0];
    lock.store(lock::word(task::own(), clock::since_boot()), SeqCst);
    thread::scope(|scope| {
        let waits = scope.spawn(|| table.connect(host(1), 0, 1, 0));
        // A wrong owner of the lock takes microseconds. A shorter time hides the fault, and never shows a false one.
        thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished(), "it took the lock of somebody who lives");
        lock.store(lock::FREE, SeqCst);
        assert_eq!(waits.join().expect("it does not panic"), Admitting::Admitted);
    });
}

/// As with `hidepid` of `/proc`: the folder of the process is absent, and the error is "not found".
#[test]
fn a_holder_that_is_hidden_is_gone_only_when_it_has_ended() {
    let mut holder = Command::new("sleep").arg("60").spawn().expect("a program that waits");
    let word = lock::word(Pid::from_child(&holder), clock::since_boot());
    assert!(!lock::is_gone(word, "/nowhere"), "it lives");
    holder.kill().and_then(|()| holder.wait()).expect("our own child");
    assert!(lock::is_gone(word, "/nowhere"));
    assert!(lock::is_gone(word, "/proc"));
}

#[test]
fn a_thread_that_ended_does_not_keep_its_lock() {
    let table = table(WAYS, 1);
    let lock = &table.rows.row(LOCKS)[0];
    thread::scope(|scope| {
        let ends = scope.spawn(|| std::mem::forget(lock::hold(lock)));
        ends.join().expect("it does not panic");
    });
    assert_ne!(lock.load(SeqCst), lock::FREE);
    assert_eq!(table.connect(host(1), 0, 1, 0), Admitting::Admitted);
}

#[test]
fn a_number_that_was_given_to_a_later_thread_is_not_the_holder() {
    let table = table(WAYS, 1);
    table.rows.row(LOCKS)[0].store(lock::word(task::own(), Duration::from_millis(1)), SeqCst);
    assert_eq!(table.connect(host(1), 0, 1, 0), Admitting::Admitted);
}

/// Threads stand for processes, because the shared memory is the same. Places change owners all the time.
#[test]
fn no_bound_is_passed_and_nothing_is_left_whatever_happens_at_once() {
    const BOUND: u32 = 3;
    let (table, hosts) = (table(WAYS, 4), 12);
    let held: Vec<AtomicU32> = (0..hosts).map(|_| AtomicU32::new(0)).collect();
    thread::scope(|scope| {
        for lane in 0..4usize {
            let (table, held) = (&table, &held);
            scope.spawn(move || {
                for round in 0..20_000usize {
                    let number = (round * 7 + lane * 5 + round / 11) % hosts as usize;
                    if table.connect(host(number as u32), lane, BOUND, round as u64) == Admitting::Admitted {
                        let now = held[number].fetch_add(1, SeqCst) + 1;
                        assert!(now <= BOUND, "{now} connections of {number}");
                        held[number].fetch_sub(1, SeqCst);
                        table.disconnect(host(number as u32), lane);
                    }
                }
            });
        }
    });
    assert!((0..WAYS).all(|at| table.connections(at) == 0));
}
