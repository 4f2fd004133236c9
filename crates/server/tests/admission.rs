//! The table of addresses, in every order of its threads. The sources of the table and its lock are compiled again with
//! loom's atomics. Threads stand for processes.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

#[path = "../src/admission"]
#[allow(dead_code, unused_imports, reason = "the server and the unit tests use the rest")]
mod admission {
    pub(super) mod addresses;

    pub(super) mod sync {
        use std::io;
        use std::ops::Deref;
        use std::sync::atomic::Ordering;

        pub(crate) use loom::thread;

        /// A word. Loom treats SeqCst as AcqRel, which permits more executions than the standard does. So every access
        /// is a read-modify-write operation: all threads see these in one order.
        #[derive(Debug, Default)]
        pub(crate) struct AtomicU64(loom::sync::atomic::AtomicU64);

        impl AtomicU64 {
            pub(crate) fn load(&self, order: Ordering) -> u64 {
                match order {
                    Ordering::SeqCst => self.0.fetch_add(0, order),
                    weaker => self.0.load(weaker),
                }
            }

            pub(crate) fn store(&self, word: u64, order: Ordering) {
                match order {
                    Ordering::SeqCst => drop(self.0.swap(word, order)),
                    weaker => self.0.store(word, weaker),
                }
            }

            pub(crate) fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                change: impl Fn(u64) -> Option<u64>,
            ) -> Result<u64, u64> {
                loop {
                    let word = self.load(fetch);
                    let Some(changed) = change(word) else { return Err(word) };
                    if self.0.compare_exchange(word, changed, set, fetch).is_ok() {
                        return Ok(word);
                    }
                }
            }
        }

        impl Deref for AtomicU64 {
            type Target = loom::sync::atomic::AtomicU64;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        /// Rows of words.
        #[derive(Debug)]
        pub(crate) struct SharedRows(Vec<Vec<AtomicU64>>);

        impl SharedRows {
            pub(crate) fn new(rows: usize, words: usize) -> io::Result<SharedRows> {
                let row = || (0..words).map(|_| AtomicU64::default()).collect();
                Ok(SharedRows((0..rows).map(|_| row()).collect()))
            }

            pub(crate) fn row(&self, place: usize) -> &[AtomicU64] {
                &self.0[place]
            }
        }
    }
}

use std::net::SocketAddr;

use admission::addresses::{AddressKey, Addresses, Admitting};
use loom::sync::Arc;
use loom::thread;
use tenfold_http::Peer;

/// The number of places of the table; an address may have any of them.
const PLACES: u8 = 8;

fn key(host: u8) -> AddressKey {
    AddressKey::of(&Peer::Internet(SocketAddr::from(([192, 0, 2, host], 80)))).expect("it has an address")
}

/// Tries every order of the threads, with at most two preemptions.
fn check(holds: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 100_000;
    model.check(holds);
}

/// Admits two concurrent connections, each with its own key and process. Returns both results.
fn at_once(table: &Arc<Addresses>, keys: [AddressKey; 2], bound: u32) -> [Admitting; 2] {
    let connect = |lane: usize| {
        let (table, key) = (table.clone(), keys[lane]);
        move || table.connect(key, lane, bound, 1)
    };
    let other = thread::spawn(connect(1));
    let own = connect(0)();
    [own, other.join().expect("no panic")]
}

/// An idle place stays with its address or passes to another one, but never both. No connection is counted for a wrong
/// address.
fn an_idle_place_is_kept_or_given_away_and_never_both() {
    check(|| {
        let table = Arc::new(Addresses::new(PLACES.into(), 2).expect("there is memory"));
        for host in 1..PLACES {
            assert_eq!(table.connect(key(host), 0, 9, 0), Admitting::Admitted);
        }
        let (known, new) = (key(100), key(101));
        assert_eq!(table.connect(known, 0, 9, 0), Admitting::Admitted);
        table.disconnect(known, 0);
        let entries = at_once(&table, [known, new], 1);
        assert!(
            matches!(
                entries,
                [Admitting::Admitted, Admitting::NoRoom] | [Admitting::NoRoom, Admitting::Admitted]
            ),
            "{entries:?}"
        );
        // One connection is counted for the address that has the place.
        let (winner, lane) = if entries[0] == Admitting::Admitted { (known, 0) } else { (new, 1) };
        assert_eq!(table.connect(winner, 0, 1, 2), Admitting::TooMany);
        table.disconnect(winner, lane);
        assert_eq!(table.connect(winner, 0, 1, 2), Admitting::Admitted);
    });
}

fn the_bound_of_an_address_holds_for_two_processes_at_once() {
    check(|| {
        let table = Arc::new(Addresses::new(PLACES.into(), 2).expect("there is memory"));
        let one = key(1);
        let entries = at_once(&table, [one, one], 1);
        let admitted = entries.iter().filter(|entry| **entry == Admitting::Admitted).count();
        assert!(admitted <= 1, "{entries:?}");
        for (lane, _) in entries.iter().enumerate().filter(|(_, entry)| **entry == Admitting::Admitted) {
            table.disconnect(one, lane);
        }
        assert_eq!(table.connect(one, 0, 1, 2), Admitting::Admitted, "nothing is left of the others");
    });
}

fn main() -> ExitCode {
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let trials = vec![
        trial(
            "an_idle_place_is_kept_or_given_away_and_never_both",
            an_idle_place_is_kept_or_given_away_and_never_both,
        ),
        trial(
            "the_bound_of_an_address_holds_for_two_processes_at_once",
            the_bound_of_an_address_holds_for_two_processes_at_once,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
