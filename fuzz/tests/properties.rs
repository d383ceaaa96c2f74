//! Property tests of the bodies of the fuzz targets: `cargo test` generates inputs, too, without the fuzzer.
//!
//! Random bytes alone are hardly ever a message or a connection string. Most inputs are therefore two
//! kept ones joined, with a few bytes changed.

use std::fs;

use cenote_fuzz::{Body, TARGETS, corpus};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{TestError, TestRunner};

#[test]
fn every_target_passes_with_generated_inputs() {
    for (target, body) in TARGETS {
        if let Err(input) = check(target, body, 2000) {
            let input = input.escape_ascii();
            panic!(
                "{target} fails, see above; keep the input: printf '{input}' > fuzz/corpus/{target}/NAME"
            );
        }
    }
}

/// The inputs are close enough to kept ones to reach what they reach, and far enough to differ.
#[test]
fn a_body_that_fails_is_found() {
    let failing: [Body; 2] = [
        |input| assert!(!input.starts_with(b"mongodb://")),
        |input| assert!(input.is_ascii() || input.len() < 20),
    ];
    for body in failing {
        let input = check("uri", body, 2000).expect_err("an input that fails");
        assert!(std::panic::catch_unwind(|| body(&input)).is_err(), "{input:?} does not fail");
    }
}

/// An input with which the body panics, shrunk.
fn check(target: &str, body: Body, cases: u32) -> Result<(), Vec<u8>> {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let asked = std::env::var_os("PROPTEST_CASES").map(|_| config.cases);
    let config = ProptestConfig { cases: asked.unwrap_or(cases), ..config };
    let outcome = TestRunner::new(config).run(&input(target), |input| {
        body(&input);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(_, input)) => Err(input),
        Err(TestError::Abort(reason)) => panic!("{target}: {reason}"),
    }
}

fn input(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let mut kept: Vec<Vec<u8>> = fs::read_dir(corpus(target))
        .expect("a corpus")
        .map(|entry| fs::read(entry.expect("a readable folder").path()).expect("a readable file"))
        .collect();
    kept.sort();
    let changes = vec((any::<Index>(), any::<u8>()), 0..8);
    let changed = (select(kept.clone()), any::<Index>(), select(kept), any::<Index>(), changes)
        .prop_map(|(head, head_end, tail, tail_start, changes)| {
            let head = &head[..head_end.index(head.len() + 1)];
            let tail = &tail[tail_start.index(tail.len() + 1)..];
            let mut input = [head, tail].concat();
            for (index, byte) in changes {
                if !input.is_empty() {
                    *index.get_mut(&mut input) = byte;
                }
            }
            input
        });
    prop_oneof![3 => changed, 1 => vec(any::<u8>(), 0..300)]
}
