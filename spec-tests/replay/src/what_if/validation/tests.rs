//! What `crate::what_if` says of runs whose callers and whose server are known.

use super::*;
use crate::what_if::{Goal, Loop, Need, ServerLimit};

const MILLISECOND: Duration = Duration::from_millis(1);

/// 5,000 requests, each of which uses a connection for 10 ms.
fn production(open: Option<Open>, closed: Option<Closed>) -> Production {
    Production {
        seed: 7,
        open,
        closed,
        lengths: Lengths::Exponential,
        used_for: 10 * MILLISECOND,
        limits: Limits::Option,
        opening: 20 * MILLISECOND,
        failed_opening: 0,
        duration: Duration::from_secs(10),
        retries: 0,
        server: Server::Unlimited,
        stalls: None,
        leaks: 0,
        is_nested: false,
    }
}

/// 500 requests a second, for five connections.
fn open_loop() -> Production {
    production(Some(open(2 * MILLISECOND)), None)
}

fn open(apart: Duration) -> Open {
    Open { apart, shape: Shape::Random { peak: (Duration::ZERO, Duration::ZERO, 10) } }
}

fn closed_loop(callers: u32) -> Production {
    production(None, Some(Closed { callers, pause: 10 * MILLISECOND, is_fixed: false }))
}

fn read(production: &Production, size: u32) -> Workload {
    let trace = production.record(&PoolOptions::default().with_max_pool_size(size));
    Workload::read(trace.as_slice()).expect("a trace").0
}

#[test]
fn without_a_change_what_was_recorded_is_predicted() {
    let workload = read(&open_loop(), 6);
    let fit = Fit::of(&workload);
    assert_eq!(fit.better, Loop::Open);
    let predicted =
        workload.predict(&Change::default(), &Assumptions::new(&workload, Loop::Open, &fit));
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
    let workload = read(&closed_loop(12), 6);
    let fit = Fit::of(&workload);
    assert_eq!(fit.better, Loop::Closed);
    assert!((11..=13).contains(&fit.callers), "{fit:?}");
}

#[test]
fn more_callers_make_more_requests() {
    for production in [open_loop(), closed_loop(10)] {
        let workload = read(&production, 20);
        let fit = Fit::of(&workload);
        let assumptions =
            Assumptions { load: 1.5, ..Assumptions::new(&workload, fit.better, &fit) };
        let predicted = workload.predict(&Change::default(), &assumptions);
        let times =
            predicted.median(Outcome::requests) as f64 / workload.recorded().requests() as f64;
        assert!((1.4..1.6).contains(&times), "{times}");
    }
}

/// Uses of 10 ms by a server that serves four at once, 333 times a second: a larger pool is of no use.
#[test]
fn a_server_that_is_the_limit_is_found() {
    let mut production = production(Some(open(3 * MILLISECOND)), None);
    assert_eq!(ServerLimit::of(&read(&production, 20)), None);
    production.server = Server::Shared(4);
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
    let workload = read(&open_loop(), 6);
    let goal = Goal::Wait { thousandths: 900, within: 5 * MILLISECOND };
    let advice = workload.advise(goal, Loop::Open, 0);
    assert_eq!(advice.server, None);
    let Need::Pool { change, prediction } = &advice.needs[0].1 else { panic!("{advice:?}") };
    assert!(goal.is_kept(&prediction.outcomes()[0]));
    let size = change.value(Setting::MaxPoolSize).expect("a size");
    let smaller =
        change.clone().with(Setting::MaxPoolSize, size - 1).with(Setting::MinPoolSize, size - 1);
    let assumptions = Assumptions::new(&workload, Loop::Open, &Fit::of(&workload));
    let predicted = workload.predict(&smaller, &assumptions);
    let kept = predicted.outcomes().iter().filter(|outcome| goal.is_kept(outcome)).count();
    assert!(kept * 2 <= predicted.outcomes().len(), "{size} is not the smallest");
    // It really is enough.
    let truth = read(&open_loop(), size);
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
    let production = open_loop();
    let trace = production.record(&PoolOptions::default().with_max_pool_size(6));
    let (workload, _) = Workload::read(trace.as_slice()).expect("a trace");
    let change = Change::default().with(Setting::MaxPoolSize, 4);
    let assumptions = Assumptions::new(&workload, Loop::Open, &Fit::of(&workload));
    let written = workload.record(&change, &assumptions, Vec::new()).expect("memory");
    let (predicted, error) = Workload::read(written.as_slice()).expect("a trace");
    assert!(error.is_none());
    assert_eq!(predicted.options().max_pool_size, Some(4));
    let (written, predicted) = (
        predicted.recorded().clone(),
        workload.predict(&change, &assumptions).outcomes()[0].clone(),
    );
    assert_eq!((written.served, written.opened), (predicted.served, predicted.opened));
    // A trace ends with its last step: what waits then waited longer in the prediction.
    assert_eq!(written.served_within(400), predicted.served_within(400));
    assert_eq!(written.peak, predicted.peak);
}

/// Of each load one run; [`compare`] makes forty.
#[test]
fn predictions_are_right_or_warn() {
    let verdicts = KINDS.map(|(kind, name)| (name, compare_all(3, 1, kind)));
    let all = || verdicts.iter().flat_map(|(_, verdicts)| verdicts);
    let good = all().filter(|it| it.is_right || it.is_warned).count();
    assert!(good >= all().count() * 9 / 10, "{verdicts:?}");
    let right = all().filter(|it| it.is_right).count();
    assert!(right >= all().count() * 7 / 10, "{verdicts:?}");
}
