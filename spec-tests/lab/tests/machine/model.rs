//! Compares the machine with the model on random pools and random steps, valid and invalid.
//!
//! The seed is fixed, so that every run is the same; `PROPTEST_CASES` sets the number of cases.

use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, Purpose, ReuseOrder};
use cenote_lab::lockstep::{Clock, Op, Pick, Step, run, run_alone};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

// CO-02, CO-17, PS-19, PS-22, EV-26, AV-01, OUT-15, ND-10
#[test]
fn the_machine_agrees_with_the_model() {
    check("model, any steps", 400, (any_options(None), vec(any_step(None), 0..120)));
}

// WQ-14
#[test]
fn the_machine_agrees_with_the_model_on_a_busy_pool() {
    let run = (busy_options(false), vec(busy_step(false), 0..160));
    check("model, busy", 500, run);
}

#[test]
fn the_machine_agrees_with_the_model_behind_a_load_balancer() {
    let run = (busy_options(true), vec(busy_step(true), 0..160));
    check("model, balanced", 400, run);
}

/// Fails with a script that is as short as the strategies permit.
fn check(
    name: &'static str,
    cases: u32,
    strategy: impl Strategy<Value = (PoolOptions, Vec<Step>)>,
) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let asked = std::env::var_os("PROPTEST_CASES").map(|_| config.cases);
    let config = ProptestConfig { cases: asked.unwrap_or(cases), ..config };
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let outcome = TestRunner::new_with_rng(config, rng).run(&strategy, |(options, steps)| {
        run(&options, &steps)
            .and_then(|()| run_alone(&options, &steps))
            .map_err(|failure| TestCaseError::fail(failure.to_string()))
    });
    match outcome {
        Ok(()) => {}
        // The script is sufficient; the steps as values would fill pages.
        Err(TestError::Fail(script, _)) => panic!("{script}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// All options, including invalid ones.
fn any_options(balanced: Option<bool>) -> impl Strategy<Value = PoolOptions> {
    let limits = (
        option::of(0..5_u32),
        option::of(0..4_u32),
        option::of(0..4_u32),
        option::of(prop::bool::weighted(0.8)),
    );
    let times = (few_nanos(6), few_nanos(8), few_nanos(60), option::of(any::<u64>()), few_nanos(7));
    let unanswered = few_nanos(7);
    let overload = (option::of(0..4_u32), few_nanos(5), few_nanos(7));
    let opening = (few_nanos(7), option::of(any::<bool>()), option::of(any::<bool>()));
    let balanced = match balanced {
        Some(balanced) => Just(Some(balanced)).boxed(),
        None => option::of(any::<bool>()).boxed(),
    };
    (limits, times, (unanswered, overload, opening), maintenance(), reuse_order(), balanced)
        .prop_map(
            |(
                (max, min, connecting, late),
                (idle, wait, lifetime, seed, held),
                (unanswered, (queue, target, interval), (backoff, adaptive, predictive)),
                maintenance,
                order,
                lb,
            )| {
                let mut options = PoolOptions::default();
                options.max_pool_size = max;
                options.min_pool_size = min;
                options.max_connecting = connecting;
                options.max_idle_time = idle;
                options.wait_queue_timeout = wait;
                options.max_lifetime = lifetime;
                options.jitter_seed = seed;
                options.leak_detection_threshold = held;
                options.unanswered_threshold = unanswered;
                options.max_wait_queue_size = queue;
                options.codel_target = target;
                options.codel_interval = interval;
                options.overload_backoff = backoff;
                options.adaptive_connecting = adaptive;
                options.predictive_min_pool_size = predictive;
                options.maintenance = maintenance;
                options.reuse_order = order;
                options.load_balanced = lb;
                options.experimental_pending_response = late;
                options
            },
        )
}

fn busy_options(balanced: bool) -> impl Strategy<Value = PoolOptions> {
    any_options(Some(balanced)).prop_filter("unusable", |options| options.validate().is_ok())
}

fn few_nanos(limit: u64) -> impl Strategy<Value = Option<Duration>> {
    option::of((0..limit).prop_map(Duration::from_nanos))
}

fn maintenance() -> impl Strategy<Value = Option<Maintenance>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(Maintenance::Never)),
        4 => (0..6_u64).prop_map(|pause| {
            Some(Maintenance::PauseAfterFailure(Duration::from_nanos(pause)))
        }),
    ]
}

fn reuse_order() -> impl Strategy<Value = Option<ReuseOrder>> {
    option::of(prop_oneof![Just(ReuseOrder::MostRecentlyUsed), Just(ReuseOrder::LeastRecentlyUsed)])
}

/// All kinds of steps with the same probability.
fn any_step(balanced: Option<bool>) -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        2 => common_op(balanced),
        1 => rare_op(balanced),
    ];
    (clock(), op).prop_map(|(clock, op)| Step { clock, op })
}

/// Steps that keep a pool busy, and some rare ones.
fn busy_step(balanced: bool) -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        1 => Just(Op::Ready),
        30 => common_op(Some(balanced)),
        1 => rare_op(Some(balanced)),
    ];
    (clock(), op).prop_map(|(clock, op)| Step { clock, op })
}

fn common_op(balanced: Option<bool>) -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (option::weighted(0.4, 0..8_u64), purpose())
            .prop_map(|(deadline, purpose)| Op::CheckOut { deadline, purpose }),
        2 => any::<u8>().prop_map(Op::Cancel),
        5 => (pick(Pick::InUse), prop::bool::weighted(0.2))
            .prop_map(|(conn, errored)| Op::CheckIn { conn, errored }),
        3 => pick(Pick::InUse).prop_map(Op::CheckInLate),
        2 => pick(Pick::Draining).prop_map(Op::Drained),
        1 => pick(Pick::Draining).prop_map(Op::DrainFail),
        1 => pick(Pick::Draining).prop_map(Op::DrainRead),
        1 => (pick(Pick::InUse), purpose())
            .prop_map(|(conn, purpose)| Op::Repurpose { conn, purpose }),
        4 => (pick(Pick::Pending), service(balanced), option::weighted(0.5, -1..4_i8))
            .prop_map(|(conn, service, clears_ago)| Op::Handshake { conn, service, clears_ago }),
        6 => pick(Pick::Pending).prop_map(Op::Succeed),
        1 => (pick(Pick::Pending), any::<bool>())
            .prop_map(|(conn, overloaded)| Op::Fail { conn, overloaded }),
        1 => pick(Pick::Available).prop_map(Op::PeerClose),
        2 => Just(Op::Timer),
        1 => (any::<bool>(), service(balanced))
            .prop_map(|(interrupt, service)| Op::Clear { interrupt, service }),
        1 => Just(Op::Ready),
    ]
}

fn rare_op(balanced: Option<bool>) -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => Just(Op::Ready),
        1 => Just(Op::Close),
        2 => Just(Op::Retire),
        2 => Just(Op::Release),
        1 => Just(Op::Fork),
        1 => Just(Op::CheckOutUnderOldId),
        1 => Just(Op::CancelUnknown),
        3 => any_options(balanced).prop_map(|options| Op::SetOptions(Box::new(options))),
    ]
}

fn clock() -> impl Strategy<Value = Clock> {
    prop_oneof![
        6 => Just(Clock::Forward(0)),
        5 => (1..6_u64).prop_map(Clock::Forward),
        1 => (6..100_u64).prop_map(Clock::Forward),
        1 => (0..5_u64).prop_map(Clock::Back),
        3 => Just(Clock::ToDeadline),
        1 => Just(Clock::ShortOfDeadline),
    ]
}

/// Mostly a connection in a state in which the step is valid.
fn pick(usual: fn(u8) -> Pick) -> impl Strategy<Value = Pick> {
    prop_oneof![
        20 => any::<u8>().prop_map(usual),
        1 => any::<u8>().prop_map(Pick::Pending),
        1 => any::<u8>().prop_map(Pick::Available),
        1 => any::<u8>().prop_map(Pick::InUse),
        1 => any::<u8>().prop_map(Pick::Draining),
        1 => any::<u8>().prop_map(Pick::Closed),
        1 => (0..20_u64).prop_map(Pick::Number),
        1 => any::<u8>().prop_map(Pick::WrongSlot),
    ]
}

/// Mostly a service that fits the mode, if that is known.
fn service(balanced: Option<bool>) -> impl Strategy<Value = Option<u8>> {
    match balanced {
        Some(true) => option::weighted(0.95, 0..2_u8).boxed(),
        Some(false) => option::weighted(0.05, 0..2_u8).boxed(),
        None => option::of(0..2_u8).boxed(),
    }
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![Just(Purpose::Other), Just(Purpose::Cursor), Just(Purpose::Transaction)]
}
