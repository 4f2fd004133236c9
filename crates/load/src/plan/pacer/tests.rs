//! Properties of pacing, for any rate, ramp and number of workers.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const WHOLE: ScheduleShare = ScheduleShare { index: 0, of: 1 };

fn schedule(rate: ArrivalRate, arrivals: Arrivals, part: ScheduleShare, seconds: u64) -> Vec<u64> {
    let span = (0, seconds * SECOND, seconds * SECOND);
    let mut pacer = Pacer::scheduled(rate, arrivals, part, 7, span, u64::MAX);
    std::iter::from_fn(|| pacer.take(u64::MAX)).collect()
}

/// The arrivals of all workers, in order.
fn shared(rate: ArrivalRate, arrivals: Arrivals, workers: u32, seconds: u64) -> Vec<u64> {
    let part = |index| schedule(rate, arrivals, ScheduleShare { index, of: workers }, seconds);
    let mut times: Vec<u64> = (0..workers).flat_map(part).collect();
    times.sort_unstable();
    times
}

fn rates() -> impl Strategy<Value = ArrivalRate> {
    prop_oneof![
        (1.0..5_000.0).prop_map(ArrivalRate::constant),
        (0.0..5_000.0, 1.0..5_000.0).prop_map(|(from, to)| ArrivalRate { from, to }),
        (1.0..5_000.0, 0.0..5_000.0).prop_map(|(from, to)| ArrivalRate { from, to }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn constant_arrivals_differ_from_the_expected_number_by_at_most_one(rate in rates(), seconds in 1u64..4) {
        let times = schedule(rate, Arrivals::Constant, WHOLE, seconds);
        for (before, at) in times.iter().enumerate() {
            let expected = rate.expected(*at as f64 / 1e9, seconds as f64);
            prop_assert!((expected - before as f64).abs() < 0.01 + before as f64 * 1e-6, "{before} until {at}: {expected}");
        }
        let whole = rate.expected(seconds as f64, seconds as f64);
        prop_assert!((times.len() as f64 - whole).abs() <= 1.01, "{} of {whole}", times.len());
    }

    #[test]
    fn several_workers_share_the_schedule_of_one(rate in rates(), workers in 1u32..6) {
        let parts = shared(rate, Arrivals::Constant, workers, 2);
        prop_assert_eq!(parts, schedule(rate, Arrivals::Constant, WHOLE, 2));
    }

    #[test]
    fn poisson_arrivals_have_the_expected_rate_and_variance(rate in rates(), workers in 1u32..4) {
        let times = shared(rate, Arrivals::Poisson, workers, 3);
        let expected = rate.expected(3.0, 3.0);
        // Six standard deviations of a Poisson count, plus one arrival for small counts.
        prop_assert!((times.len() as f64 - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{} of {expected}", times.len());
    }

    #[test]
    fn no_arrival_is_early_and_none_is_lost(
        rate in rates(), poisson: bool, steps in proptest::collection::vec(0u64..50_000_000, 1..80),
    ) {
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let mut pacer = Pacer::scheduled(rate, arrivals, WHOLE, 7, (0, 2 * SECOND, 2 * SECOND), u64::MAX);
        let (mut now, mut taken) = (0, Vec::new());
        for step in steps {
            now += step;
            let overdue = pacer.overdue(now);
            let before = taken.len();
            while let Some(due) = pacer.take(now) {
                prop_assert!(due <= now);
                taken.push(due);
            }
            prop_assert_eq!((taken.len() - before) as u64, overdue);
            prop_assert!(pacer.due().is_none_or(|due| due > now));
        }
        let expected: Vec<_> = schedule(rate, arrivals, WHOLE, 2).into_iter().filter(|due| *due <= now).collect();
        prop_assert_eq!(taken, expected);
    }

    #[test]
    fn a_limit_holds_with_and_without_a_schedule(limit in 0u64..50, scheduled: bool) {
        let mut pacer = match scheduled {
            true => Pacer::scheduled(ArrivalRate::constant(1e6), Arrivals::Constant, WHOLE, 1, (0, SECOND, SECOND), limit),
            false => Pacer::free(0, SECOND, limit),
        };
        let taken = std::iter::from_fn(|| pacer.take(SECOND - 1)).take(100).count() as u64;
        prop_assert_eq!(taken, limit);
        prop_assert_eq!(pacer.due(), None);
    }
}

#[test]
fn a_pacer_without_a_schedule_allows_arrivals_until_its_end() {
    let mut pacer = Pacer::free(10, 20, u64::MAX);
    assert_eq!(pacer.take(9), None);
    assert_eq!(pacer.take(10), Some(10));
    assert_eq!(pacer.take(19), Some(19));
    assert_eq!(pacer.take(20), None);
}

#[test]
fn arrivals_due_before_the_end_may_begin_after_it() {
    let mut pacer = Pacer::scheduled(
        ArrivalRate::constant(10.0),
        Arrivals::Constant,
        WHOLE,
        1,
        (0, SECOND, SECOND),
        u64::MAX,
    );
    assert_eq!(std::iter::from_fn(|| pacer.take(100 * SECOND)).count(), 10);
}

#[test]
fn poisson_gaps_have_a_deviation_equal_to_their_mean() {
    let times = schedule(ArrivalRate::constant(1_000.0), Arrivals::Poisson, WHOLE, 20);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((0.9..1.1).contains(&(variance.sqrt() / mean)), "{}", variance.sqrt() / mean);
}

#[test]
fn a_seed_repeats_its_arrivals_and_workers_differ() {
    let of =
        |index| schedule(ArrivalRate::constant(100.0), Arrivals::Poisson, ScheduleShare { index, of: 2 }, 5);
    assert_eq!(of(0), of(0));
    assert_ne!(of(0), of(1));
}

#[test]
fn rates_are_parsed_and_invalid_ones_refused() {
    assert_eq!("5000".parse(), Ok(ArrivalRate::constant(5000.0)));
    assert_eq!("0:10.5".parse(), Ok(ArrivalRate { from: 0.0, to: 10.5 }));
    assert_eq!("1.5k:2M".parse(), Ok(ArrivalRate { from: 1_500.0, to: 2e6 }));
    for wrong in ["", "0", "k", "5kk", "-1", "a", "1:", "inf", "nan", "0:0", "1e99"] {
        assert!(wrong.parse::<ArrivalRate>().is_err(), "{wrong}");
    }
}

#[test]
fn overdue_arrivals_of_a_huge_rate_are_estimated() {
    // Three hours at a billion a second would take hours to count one by one.
    let hours = 3 * 3600;
    let span = (0, hours * SECOND, hours * SECOND);
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let pacer = Pacer::scheduled(ArrivalRate::constant(1e9), arrivals, WHOLE, 7, span, u64::MAX);
        let (overdue, expected) = (pacer.overdue(u64::MAX) as f64, hours as f64 * 1e9);
        assert!((overdue / expected - 1.0).abs() < 1e-6, "{overdue} of {expected}");
        let bounded = Pacer::scheduled(ArrivalRate::constant(1e9), arrivals, WHOLE, 7, span, 2_000_000);
        assert_eq!(bounded.overdue(u64::MAX), 2_000_000);
    }
}
