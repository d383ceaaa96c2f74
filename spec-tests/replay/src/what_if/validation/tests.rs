//! What `crate::what_if` says of runs whose callers and whose server are known.

use super::*;
use crate::what_if::{Goal, Need};

const MILLISECOND: Duration = Duration::from_millis(1);

/// 5,000 requests, each of which uses a connection for 10 ms.
fn production(arrivals: Arrivals) -> Production {
    Production {
        seed: 7,
        arrivals,
        lengths: Lengths::Exponential,
        used_for: 10 * MILLISECOND,
        limits: Limits::Option,
        opening: 20 * MILLISECOND,
        failed_opening: 0,
        duration: Duration::from_secs(10),
        retries: 0,
        server: None,
    }
}

/// 500 requests a second, for five connections.
fn open_loop() -> Arrivals {
    Arrivals::Open { apart: 2 * MILLISECOND, peak: (Duration::ZERO, Duration::ZERO, 1) }
}

fn read(production: &Production, size: u32) -> Workload {
    let trace = production.record(&PoolOptions::default().with_max_pool_size(size));
    Workload::read(trace.as_slice()).expect("a trace").0
}

#[test]
fn without_a_change_what_was_recorded_is_predicted() {
    let workload = read(&production(open_loop()), 6);
    let fit = Fit::of(&workload);
    assert_eq!(fit.better, Loop::Open);
    let predicted = workload.predict(&Change::default(), &Assumptions::new(Loop::Open, &fit));
    let recorded = workload.recorded();
    for outcome in predicted.outcomes() {
        assert_eq!((outcome.served, outcome.opened), (recorded.served, recorded.opened));
        for thousandths in [500, 900, 990, 1000] {
            assert_eq!(outcome.wait(thousandths), recorded.wait(thousandths));
        }
    }
}

#[test]
fn callers_that_come_again_are_counted() {
    let closed = Arrivals::Closed { callers: 12, pause: 10 * MILLISECOND };
    let workload = read(&production(closed), 6);
    let fit = Fit::of(&workload);
    assert_eq!(fit.better, Loop::Closed);
    assert!((11..=13).contains(&fit.callers), "{fit:?}");
}

#[test]
fn more_callers_make_more_requests() {
    for arrivals in [open_loop(), Arrivals::Closed { callers: 10, pause: 10 * MILLISECOND }] {
        let workload = read(&production(arrivals), 20);
        let fit = Fit::of(&workload);
        let assumptions = Assumptions { load: 1.5, ..Assumptions::new(fit.better, &fit) };
        let predicted = workload.predict(&Change::default(), &assumptions);
        let times =
            predicted.median(Outcome::requests) as f64 / workload.recorded().requests() as f64;
        assert!((1.4..1.6).contains(&times), "{times}");
    }
}

/// Uses of 10 ms by a server that serves four at once, 333 times a second: a larger pool is of no use.
#[test]
fn a_server_that_is_the_limit_is_found() {
    let apart = 3 * MILLISECOND;
    let arrivals = Arrivals::Open { apart, peak: (Duration::ZERO, Duration::ZERO, 1) };
    let mut production = production(arrivals);
    assert_eq!(ServerLimit::of(&read(&production, 20)), None);
    production.server = Some(4);
    let workload = read(&production, 20);
    let limit = ServerLimit::of(&workload).expect("a limit");
    assert!((3..=6).contains(&limit.connections), "{limit:?}");
    assert!((300.0..500.0).contains(&limit.per_second), "{limit:?}");
    let goal = Goal::Wait { thousandths: 990, within: MILLISECOND };
    let advice = workload.advise(goal, Loop::Open, 0);
    assert!(matches!(advice.needs[1].1, Need::Server(_)), "{advice:?}");
}

#[test]
fn advice_is_the_smallest_pool_that_keeps_the_goal() {
    let workload = read(&production(open_loop()), 6);
    let goal = Goal::Wait { thousandths: 900, within: 5 * MILLISECOND };
    let advice = workload.advise(goal, Loop::Open, 0);
    assert_eq!(advice.server, None);
    let Need::Pool { change, prediction } = &advice.needs[0].1 else { panic!("{advice:?}") };
    assert!(goal.is_kept(&prediction.outcomes()[0]));
    let size = change.value(Setting::MaxPoolSize).expect("a size");
    let smaller =
        change.clone().with(Setting::MaxPoolSize, size - 1).with(Setting::MinPoolSize, size - 1);
    let assumptions = Assumptions::new(Loop::Open, &Fit::of(&workload));
    let predicted = workload.predict(&smaller, &assumptions);
    let kept = predicted.outcomes().iter().filter(|outcome| goal.is_kept(outcome)).count();
    assert!(kept * 2 <= predicted.outcomes().len(), "{size} is not the smallest");
    // It really is enough.
    let truth = read(&production(open_loop()), size);
    assert!(truth.recorded().served_within(900) < Some(10 * MILLISECOND), "{truth:?}");
    let sizes = advice.needs.iter().filter_map(|(_, need)| match need {
        Need::Pool { change, .. } => change.value(Setting::MaxPoolSize),
        Need::Server(_) | Need::NoPool { .. } => None,
    });
    let sizes: Vec<_> = sizes.collect();
    assert!(sizes.len() == 4 && sizes[1] < sizes[3], "more callers need more: {sizes:?}");
}

/// A prediction that is written as a trace can be read, and says the same.
#[test]
fn a_prediction_is_a_trace() {
    let production = production(open_loop());
    let trace = production.record(&PoolOptions::default().with_max_pool_size(6));
    let (workload, _) = Workload::read(trace.as_slice()).expect("a trace");
    let change = Change::default().with(Setting::MaxPoolSize, 4);
    let assumptions = Assumptions::new(Loop::Open, &Fit::of(&workload));
    let written = workload.record(&change, &assumptions, Vec::new()).expect("memory");
    let (predicted, error) = Workload::read(written.as_slice()).expect("a trace");
    assert!(error.is_none());
    assert_eq!(predicted.options().max_pool_size, Some(4));
    let (written, predicted) = (
        predicted.recorded().clone(),
        workload.predict(&change, &assumptions).outcomes()[0].clone(),
    );
    assert_eq!((written.served, written.opened), (predicted.served, predicted.opened));
    assert_eq!((written.peak, written.wait(500)), (predicted.peak, predicted.wait(500)));
}

/// In 60 runs; [`compare`] makes a thousand.
#[test]
fn predictions_are_near() {
    let pairs = compare_all(3, 60, Kind::Usual);
    let near = |is: fn(&Pair) -> bool| pairs.iter().filter(|pair| is(pair)).count();
    assert!(near(|pair| pair.time_out_error() <= 0.1) >= 54);
    assert!(near(|pair| pair.p99_error() <= 0.2) >= 51);
}
