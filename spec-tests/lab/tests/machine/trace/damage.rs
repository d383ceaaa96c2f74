//! Traces that are cut, damaged, or none at all.

use std::io::{ErrorKind, Read};

use bson::{Document, doc};
use cenote_core::trace::{JournalOptions, Replay, TraceError, VERSION};

use super::recorded::{info, play, pool, small_chunks, trace};

/// Steps that could be taken, and why no more.
fn read(trace: impl Read) -> (u64, Result<(), TraceError>) {
    let mut replay = match Replay::new(trace) {
        Ok(replay) => replay,
        Err(error) => return (0, Err(error)),
    };
    let outcome = replay.verify().map(drop);
    (replay.steps(), outcome)
}

fn message(trace: &[u8]) -> String {
    let (_, outcome) = read(trace);
    outcome.expect_err("not good").to_string()
}

#[test]
fn a_trace_that_is_cut_at_any_byte_replays_up_to_there() {
    for (actions, lost) in [(false, false), (true, false), (false, true)] {
        let trace =
            if lost { flight() } else { trace(5, 24, small_chunks().with_actions(actions)) };
        let mut last = 0;
        for length in 0..trace.len() {
            let (steps, outcome) = read(&trace[..length]);
            let error = outcome.expect_err("cut");
            assert!(error.byte <= length as u64, "{error}");
            assert!(steps >= last && steps == error.step, "{error}: {steps} after {last}");
            last = steps;
            let shown = error.to_string();
            assert!(shown.starts_with(&format!("byte {}, step {steps}: ", error.byte)), "{shown}");
            let expected = if length == 0 { "empty" } else { "cut" };
            assert!(shown.contains(expected), "{length}: {shown}");
        }
        assert!(read(trace.as_slice()).1.is_ok());
        assert!(last > 20);
    }
}

#[test]
fn a_source_that_fails_is_an_error_and_one_that_was_interrupted_goes_on() {
    struct Fails<'a>(&'a [u8], ErrorKind);
    impl Read for Fails<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let kind = std::mem::replace(&mut self.1, ErrorKind::TimedOut);
            if kind == ErrorKind::Interrupted || self.0.is_empty() {
                return Err(kind.into());
            }
            self.0.read(out)
        }
    }
    let trace = trace(9, 10, JournalOptions::default());
    let (steps, outcome) = read(Fails(&trace[..trace.len() - 1], ErrorKind::Interrupted));
    let error = outcome.expect_err("the end is missing").to_string();
    assert!(error.contains("timed out") && steps <= 10, "{error}");
}

#[test]
fn a_trace_that_is_read_byte_by_byte_is_the_same() {
    struct Drip<'a>(&'a [u8]);
    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let length = out.len().min(1);
            self.0.read(&mut out[..length])
        }
    }
    let trace = trace(9, 100, JournalOptions::default());
    assert_eq!(read(Drip(&trace)).0, read(trace.as_slice()).0);
}

/// Which document is damaged is told by where it begins.
#[test]
fn a_problem_is_told_with_its_place() {
    let good = trace(5, 24, small_chunks());
    for behind in [&[1, 0, 0, 0][..], &[9, 0, 0, 0, 1], &[5, 0, 0, 0, 7]] {
        let damaged = [&good, behind].concat();
        let error = read(damaged.as_slice()).1.expect_err("damaged");
        assert_eq!(error.byte, good.len() as u64, "{error}");
    }
}

#[test]
fn what_is_no_trace_is_told_so() {
    for (bytes, expected) in [
        (b"".as_slice(), "byte 0, step 0: empty: a trace begins with a header"),
        (b"x", "byte 0, step 0: cut: the document has 4 bytes, but only 1 are there"),
        (
            b"This is not a trace, it is a text.",
            "byte 0, step 0: not a trace: the first four bytes would be a length of 1936287828; \
             traces are BSON documents whose first has format: \"cenote-trace\", or \"cenote-topology\"",
        ),
        (
            b"\xff\xff\xff\x7fgigantic",
            "byte 0, step 0: not a trace: the first four bytes would be a length of 2147483647; \
             traces are BSON documents whose first has format: \"cenote-trace\", or \"cenote-topology\"",
        ),
    ] {
        assert_eq!(message(bytes), expected);
    }
    let other = bson::serialize_to_vec(&doc! { "_id": 1 }).unwrap();
    assert!(message(&other).contains("not a trace: the first document begins with `_id`"));
}

#[test]
fn each_kind_of_damage_has_its_message() {
    let header = || {
        let options = doc! { "maxPoolSize": 2 };
        let origin = bson::DateTime::from_millis(0);
        doc! { "format": "cenote-trace", "version": 1, "origin": origin, "t": 0_i64, "options": options }
    };
    let with = |more: &[Document]| {
        let documents = std::iter::once(header()).chain(more.iter().cloned());
        let mut bytes = Vec::new();
        for document in documents {
            bytes.extend(bson::serialize_to_vec(&document).unwrap());
        }
        message(&bytes)
    };
    for (document, expected) in [
        (
            doc! { "t": 1_i64, "in": 9, "s": 0 },
            "CheckedIn is refused: this pool has never made a connection c9 (slot 0)",
        ),
        (
            doc! { "t": 1_i64, "out": 1, "refused": true },
            "CheckOutRequested was refused when it was recorded, but is not refused now",
        ),
        (doc! { "t": 1_i64, "nap": true }, "damaged: `nap` is no input"),
        (doc! { "t": 1_i64 }, "damaged: `out, in, up or the like` is missing"),
        (doc! { "t": 1_i64, "out": "1" }, "damaged: `out` is not a whole number"),
        (doc! { "t": 1_i64, "out": -1 }, "damaged: `out` is below 0"),
        (doc! { "t": 1_i64, "in": 1 }, "damaged: `s` is missing"),
        (
            doc! { "t": 1_i64, "fail": 1, "s": 0, "e": 4 },
            "damaged: `e` names a cause that was not told",
        ),
        (
            doc! { "t": 1_i64, "set": { "maxConnecting": 0 } },
            "SetOptions is refused: the new options are invalid: maxConnecting is 0, so nothing could ever connect: set at least 1",
        ),
        (
            doc! { "t": 1_i64, "set": { "maxIdleTime": { "s": 1_i64, "n": 1_000_000_000 } } },
            "damaged: `maxIdleTime` has no nanoseconds below a second",
        ),
        (doc! { "fp": 1_i64, "n": 0 }, "the fingerprint is "),
        (
            doc! { "fp": 1_i64, "n": 3 },
            "there were 3 inputs up to here when this was recorded, but 0 are in it",
        ),
        (doc! { "end": 5 }, "there were 5 inputs up to here"),
        (doc! { "cause": 5000 }, "damaged: `cause` is above the highest number that it can be"),
        (doc! { "t": 1_i64, "out": 1, "at": 7 }, "damaged: `at` names a place that was not told"),
        (doc! { "place": 0 }, "damaged: `text` is missing"),
        (
            doc! { "place": 5000, "text": "src/orders.rs:41:32" },
            "damaged: `place` is above the highest number that it can be",
        ),
        (doc! { "lost": 5, "t": 0_i64, "options": {} }, "damaged: `state` is missing"),
        (
            doc! { "request": 5 },
            "damaged: a document that begins with `request` makes no sense here",
        ),
        (doc! { "x": 5 }, "damaged: no document of a trace begins with `x`"),
    ] {
        let shown = with(std::slice::from_ref(&document));
        assert!(shown.contains(expected), "{document}: {shown}");
    }
    let early = [doc! { "t": 5_i64, "ready": true }, doc! { "t": 4_i64, "ready": true }];
    assert!(
        with(&early).ends_with(
            "step 1: times out of order: 4 ns comes after 5 ns and is not marked `back`"
        )
    );
    assert!(
        with(&[doc! { "end": 0 }, doc! { "end": 0 }])
            .ends_with("there is more after the end of the trace")
    );

    let mut newer = header();
    newer.insert("version", 1000);
    let newer = bson::serialize_to_vec(&newer).unwrap();
    let expected = format!("a trace of version 1000, but this program reads none above {VERSION}");
    assert!(message(&newer).ends_with(&expected));
}

/// A trace that begins in a state.
fn flight() -> Vec<u8> {
    let mut run = cenote_lab::random_run::RandomRun::new(9, 60);
    let mut recorded = pool(&run).with_flight_recorder(600);
    play(&mut run, &mut recorded, |_| {});
    let recording = recorded.flight_recording().expect("there is a flight recorder");
    recording.write_to(&info(), Vec::new()).expect("memory")
}
