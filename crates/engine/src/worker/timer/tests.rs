//! All timers against a model, against each other, and what their operations are claimed to cost.

use super::*;

/// xorshift64, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn all(now: u64) -> Vec<(TimerKind, Box<dyn Timer>)> {
    TimerKind::ALL.iter().map(|&kind| (kind, new(kind, Instant(now)))).collect()
}

fn expired(timer: &mut dyn Timer, now: u64) -> Vec<u32> {
    let mut due = Vec::new();
    timer.expire(Instant(now), &mut due);
    due.sort_unstable();
    due
}

/// The time at which a timer armed for `by` fires: at `by`, or at the next begin of a tick.
fn due_at(kind: TimerKind, by: u64) -> u64 {
    match kind {
        TimerKind::List => by,
        TimerKind::Wheel => by.div_ceil(TICK) * TICK,
    }
}

/// Applies each operation to all timers and to a model that knows when each index fires.
struct Bench {
    timers: Vec<(TimerKind, Box<dyn Timer>)>,
    model: Vec<Option<u64>>,
    now: u64,
    seed: u64,
}

impl Bench {
    fn new(seed: u64, now: u64, count: usize) -> Bench {
        Bench { timers: all(now), model: vec![None; count], now, seed }
    }

    fn arm(&mut self, index: usize, by: u64) {
        self.timers.iter_mut().for_each(|(_, timer)| timer.arm(index as u32, Instant(by)));
        self.model[index] = Some(by);
    }

    fn disarm(&mut self, index: usize) {
        self.timers.iter_mut().for_each(|(_, timer)| timer.disarm(index as u32));
        self.model[index] = None;
    }

    /// Advances the time to `now`, which must be the begin of a tick, because all kinds of timers agree there.
    fn expire(&mut self, now: u64) {
        self.now = now;
        let (seed, model) = (self.seed, &self.model);
        for (kind, timer) in &mut self.timers {
            let expected: Vec<u32> = (0u32..)
                .zip(model)
                .filter(|(_, by)| by.is_some_and(|by| due_at(*kind, by) <= now))
                .map(|(index, _)| index)
                .collect();
            assert_eq!(expired(&mut **timer, now), expected, "{kind}, seed {seed}, at {now}");
        }
        self.model.iter_mut().filter(|by| by.is_some_and(|by| by <= now)).for_each(|by| *by = None);
    }

    /// Asserts that [`Timer::next`] is at most a tick after the earliest deadline, and that it is `None` without one.
    fn check_next(&self) {
        let (seed, now) = (self.seed, self.now);
        let soonest = self.model.iter().flatten().min();
        for (kind, timer) in &self.timers {
            assert_eq!(timer.next().is_some(), soonest.is_some(), "{kind}, seed {seed}");
            if let (Some(next), Some(&soonest)) = (timer.next(), soonest) {
                let latest = soonest.max(now) + TICK;
                assert!(next.0 <= latest, "{kind}, seed {seed}: {next:?} is after {soonest}");
            }
        }
    }
}

#[test]
fn all_timers_do_what_a_table_of_deadlines_says_whatever_the_clock_does() {
    for seed in 1..60 {
        let mut random = Random::new(seed);
        let now = (TICK + random.below(1 << 40)) / TICK * TICK;
        let mut bench = Bench::new(seed, now, 64);
        for _ in 0..1500 {
            let index = random.below(64) as usize;
            match random.below(8) {
                0 => bench.disarm(index),
                1 | 2 => {
                    // Now and then the machine slept for minutes, or for a month.
                    let longest = match random.below(40) {
                        0 => 1 << 32,
                        1 | 2 => 200_000,
                        _ => 500,
                    };
                    let now = (bench.now + random.below(longest)) / TICK * TICK;
                    bench.expire(now);
                }
                3 => bench.arm(index, bench.now + 1 + random.below(1 << 34)),
                _ => bench.arm(index, bench.now + 1 + random.below(150_000)),
            }
            bench.check_next();
        }
    }
}

#[test]
fn a_hundred_thousand_timers_all_fire_once_and_in_time() {
    const COUNT: usize = 100_000;
    let mut random = Random::new(7);
    let mut bench = Bench::new(7, 1_000_000 / TICK * TICK, COUNT);
    // With deadlines in random order, each insertion into the list would be slow. Here they grow, as on a server.
    for index in 0..COUNT {
        bench.arm(index, bench.now + 75_000 + index as u64 / 8);
    }
    for _ in 0..COUNT / 10 {
        bench.disarm(random.below(COUNT as u64) as usize);
    }
    bench.check_next();
    while bench.model.iter().any(Option::is_some) {
        bench.expire((bench.now + random.below(20_000)) / TICK * TICK);
        bench.check_next();
    }
    assert!(bench.timers.iter().all(|(_, timer)| timer.next().is_none()));
}

#[test]
fn no_timer_is_early_and_none_is_later_than_a_tick() {
    for (kind, mut timer) in all(1_000_000) {
        timer.arm(3, Instant(1_000_100));
        assert_eq!(expired(&mut *timer, 1_000_099), [], "{kind}");
        assert_eq!(expired(&mut *timer, 1_000_100 + TICK), [3], "{kind}");
        assert_eq!(expired(&mut *timer, 1_000_100 + 2 * TICK), [], "{kind}: once is enough");
        assert!(timer.next().is_none(), "{kind}");
    }
}

#[test]
fn a_deadline_that_has_passed_is_due_within_a_tick_and_a_clock_that_goes_back_stands() {
    for (kind, mut timer) in all(1_000_000) {
        assert_eq!(expired(&mut *timer, 2_000_000), []);
        timer.arm(0, Instant(5));
        timer.arm(1, Instant(3_000_000));
        assert_eq!(expired(&mut *timer, 2_000_000 + TICK), [0], "{kind}");
        assert_eq!(expired(&mut *timer, 1_000_000), [], "{kind}");
        timer.arm(0, Instant(2_500_000));
        assert_eq!(expired(&mut *timer, 2_500_000 + TICK), [0], "{kind}");
        assert_eq!(expired(&mut *timer, 3_000_000 + TICK), [1], "{kind}");
    }
}

#[test]
fn indices_that_were_never_armed_can_be_disarmed() {
    for (kind, mut timer) in all(1_000) {
        timer.disarm(9);
        timer.arm(2, Instant(5_000));
        timer.disarm(9);
        timer.disarm(100_000);
        assert_eq!(expired(&mut *timer, 10_000), [2], "{kind}");
    }
}

/// Steps of `work` on a timer that holds `count` deadlines, a millisecond apart.
fn steps(kind: TimerKind, count: u32, work: impl FnOnce(&mut dyn Timer)) -> u64 {
    let mut timer = new(kind, Instant(1_000_000));
    for index in 0..count {
        timer.arm(index, Instant(1_100_000 + u64::from(index)));
    }
    let before = timer.steps();
    work(&mut *timer);
    timer.steps() - before
}

const FEW: u32 = 1_000;
const MANY: u32 = 64_000;

#[test]
fn the_latest_of_all_deadlines_costs_the_list_nothing_and_the_earliest_as_much_as_there_are_others() {
    let arm = |count, at| steps(TimerKind::List, count, |timer| timer.arm(count, Instant(at)));
    assert_eq!((arm(FEW, 2_000_000), arm(MANY, 2_000_000)), (0, 0));
    assert_eq!((arm(FEW, 1_000_001), arm(MANY, 1_000_001)), (u64::from(FEW), u64::from(MANY)));
}

#[test]
fn disarming_costs_one_step() {
    for &kind in TimerKind::ALL {
        for count in [FEW, MANY] {
            assert_eq!(steps(kind, count, |timer| timer.disarm(count / 2)), 1, "{kind}, {count}");
        }
    }
}

#[test]
fn arming_costs_one_step_in_the_wheel_whatever_the_deadline() {
    for (count, at) in [(FEW, 1_000_001), (MANY, 1_000_001), (MANY, 90_000_000)] {
        let arm = |timer: &mut dyn Timer| timer.arm(count, Instant(at));
        assert_eq!(steps(TimerKind::Wheel, count, arm), 1, "{count}, {at}");
    }
}

#[test]
fn a_look_when_nothing_is_due_costs_no_step_in_any_of_them() {
    for &kind in TimerKind::ALL {
        let look = |timer: &mut dyn Timer| timer.expire(Instant(1_000_032), &mut Vec::new());
        assert_eq!(steps(kind, MANY, look), 0, "{kind}");
    }
}

/// The steps from arming a timer `ahead` milliseconds away until it has fired, if the loop wakes at each
/// [`Timer::next`]. A short timer fires before it, as on a server.
fn steps_of_a_life(kind: TimerKind, ahead: u64) -> u64 {
    let mut timer = new(kind, Instant(1_000_000));
    timer.arm(1, Instant(1_000_100));
    timer.arm(0, Instant(1_000_000 + ahead));
    let mut due = Vec::new();
    while let Some(next) = timer.next() {
        timer.expire(next, &mut due);
    }
    assert_eq!(due, [1, 0], "{kind}");
    timer.steps()
}

#[test]
fn a_day_ahead_is_met_once_a_turn_by_the_wheel() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let turns = DAY.div_ceil(TICK).div_ceil(2048);
    assert!(steps_of_a_life(TimerKind::Wheel, DAY) >= turns);
    assert_eq!(steps_of_a_life(TimerKind::List, DAY), 2);
}
