//! Compares the machine with the model on random pools and random steps, valid and invalid: those of the fuzz targets.
//!
//! The seed is fixed, so that every run is the same; `PROPTEST_CASES` sets the number of cases.

use cenote_lab::fuzzing::decode;
use cenote_lab::lockstep::run;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

/// The bytes of the options, and of each step.
type Data = ([u8; 12], Vec<[u8; 4]>);

// CO-02, CO-17, PS-19, PS-22, EV-26, AV-01, OUT-15, ND-10
#[test]
fn the_machine_agrees_with_the_model() {
    check("model, any steps", 120, |data| data);
}

// WQ-14
#[test]
fn the_machine_agrees_with_the_model_on_a_busy_pool() {
    check("model, busy", 160, |data| busy(data, 1));
}

#[test]
fn the_machine_agrees_with_the_model_behind_a_load_balancer() {
    check("model, balanced", 160, |data| busy(data, 2));
}

/// The pool is ready from the first step on; `balanced` is 2 behind a load balancer.
fn busy((mut options, mut steps): Data, balanced: u8) -> Data {
    options[10] = options[10].min(250) / 3 * 3 + balanced;
    steps.insert(0, [0, 25, 0, 0]);
    (options, steps)
}

/// Fails with a script that is as short as the steps permit.
fn check(name: &'static str, most: usize, change: fn(Data) -> Data) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let asked = std::env::var_os("PROPTEST_CASES").map(|_| config.cases);
    let config =
        ProptestConfig { cases: asked.unwrap_or(1_000), max_shrink_iters: 1_000, ..config };
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let data = (any::<[u8; 12]>(), vec(any::<[u8; 4]>(), 0..most)).prop_map(change);
    let outcome = TestRunner::new_with_rng(config, rng).run(&data, |(options, steps)| {
        let (options, steps) = decode(&[&options[..], steps.as_flattened()].concat());
        run(&options, &steps).map_err(|failure| TestCaseError::fail(failure.to_string()))
    });
    match outcome {
        Ok(()) => {}
        // The script is sufficient; the bytes would say nothing.
        Err(TestError::Fail(script, _)) => panic!("{script}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}
