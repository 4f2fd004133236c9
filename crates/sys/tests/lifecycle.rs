//! Signals affect a whole process, so this is one test in a process of its own.

use std::time::{Duration, Instant};

use tenfold_sys::lifecycle::{self, Phase, PhaseWatch};
use tenfold_sys::poll::PollList;
use tenfold_sys::process::{own, send_signal};
use tenfold_sys::signal::Signal;

fn is_told(watch: &PhaseWatch) -> bool {
    let (mut list, mut heard) = (PollList::new(), false);
    list.set(watch.event().number(), 0, true, false);
    // The signal may also interrupt the wait that it should end.
    for _ in 0..2 {
        list.wait(Some(200), |_| heard = true).expect("an eventfd can be polled");
    }
    watch.event().clear();
    heard
}

/// Sends a signal and waits for its effect, which may come later and on another thread. A signal without effect gets a
/// little time.
fn send(signal: Signal, expected: (u32, Phase)) {
    send_signal(own(), signal);
    let begun = Instant::now();
    // A wrong effect of the signal would come by now.
    std::thread::sleep(Duration::from_millis(20));
    while (lifecycle::reopened(), lifecycle::phase()) != expected {
        assert!(begun.elapsed() < Duration::from_secs(10), "{signal:?} has no effect");
        // Nothing reports that a handler has run.
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn signals_change_the_phase_and_notify_watchers() {
    lifecycle::install_worker_signals().expect("signals can be handled");
    let (first, second) = (PhaseWatch::new().expect("descriptors"), PhaseWatch::new().expect("descriptors"));
    assert_eq!(lifecycle::phase(), Phase::Serving);
    assert!(!is_told(&first));

    let before = lifecycle::reopened();
    send(Signal::Reopen, (before + 1, Phase::Serving));
    assert!(is_told(&first) && is_told(&second));

    send(Signal::HangUp, (before + 1, Phase::Serving));
    assert!(!is_told(&first));

    send(Signal::Retire, (before + 1, Phase::Retiring));
    assert!(is_told(&first) && is_told(&second));

    send(Signal::Quit, (before + 1, Phase::Draining));
    assert!(is_told(&first) && is_told(&second));
    drop(second);

    send(Signal::Interrupt, (before + 1, Phase::Stopping));
    assert!(is_told(&first));
    send(Signal::Terminate, (before + 1, Phase::Stopping));
    assert!(is_told(&first));
    assert_eq!(lifecycle::phase(), Phase::Stopping, "there is no way back");

    lifecycle::reset();
    assert_eq!(lifecycle::phase(), Phase::Serving);
    lifecycle::advance(Phase::Draining);
    assert!(!is_told(&first), "who began before is not told any more");
    assert!(is_told(&PhaseWatch::new().expect("a descriptor")), "who begins after a change is told of it");
    lifecycle::reset();

    // Watcher places are reused, so more watches than places can be created in turn.
    for _ in 0..3 {
        let some: Vec<_> = (0..200).map(|_| PhaseWatch::new().expect("descriptors")).collect();
        lifecycle::advance(Phase::Serving);
        assert!(some.iter().take(5).all(is_told));
    }
}
