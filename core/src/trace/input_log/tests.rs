//! What is recorded comes back.

use std::prelude::v1::*;

use super::*;
use crate::error::Stage;
use crate::pool::ConnId;
use crate::trace::cause::{Cause, CauseKind, CauseLabels, CauseSummary};
use crate::trace::input_log_entries::Entry;
use crate::trace::traced::Traced;

fn back(log: &InputLog) -> Vec<Input<Traced>> {
    let inputs = log.entries().map(|entry| match entry {
        Entry::Input { input, .. } => input,
        Entry::Fingerprint(_)
        | Entry::Action(_)
        | Entry::Place(_)
        | Entry::Stage(_)
        | Entry::Follows(_) => {
            panic!("there are inputs only")
        }
    });
    inputs.collect()
}

/// Numbers of 32 bits and slots of 16 have room in the compact form of a check-in.
#[test]
fn ids_too_large_for_the_compact_form_have_the_general_one() {
    let ids = [(u32::MAX.into(), u16::MAX.into()), (1 << 32, 1), (1, 1 << 16)]
        .map(|(number, slot)| ConnId::from_parts(number, slot));
    let inputs = ids.map(|id| Input::<Traced>::CheckedIn { id, conn: (), health: Health::Healthy });
    let mut log = InputLog::with_capacity(1000);
    let compact = inputs.each_ref().map(|input| {
        let is_compact = log.record_if_compact(Instant::ORIGIN, input);
        if !is_compact {
            log.record(Instant::ORIGIN, input);
        }
        is_compact
    });
    assert_eq!(compact, [true, false, false]);
    assert_eq!(back(&log), inputs);
}

#[test]
fn the_smallest_tape_has_room_for_four_records() {
    let id = ConnId::from_parts(u64::MAX, u32::MAX);
    let input = Input::<Traced>::Handshaken {
        id,
        service: Some(ServiceId([7; 12])),
        clears_at_hello: Some(u64::MAX),
    };
    let mut log = InputLog::with_capacity(0);
    for _ in 0..4 {
        assert!(log.has_room());
        log.record(Instant::from_nanos(u64::MAX), &input);
    }
    assert_eq!(back(&log), vec![input; 4]);
}

#[test]
fn late_replies_and_what_follows_from_them_come_back() {
    let (id, cause) = (ConnId::from_parts(7, u32::MAX), Cause::default());
    let pending = |request_id| Input::<Traced>::CheckedIn {
        id,
        conn: (),
        health: Health::PendingResponse { request_id, cause: cause.clone() },
    };
    let inputs = [
        pending(0),
        pending(i32::MAX),
        pending(-1),
        pending(i32::MIN),
        Input::CheckedIn { id, conn: (), health: Health::Errored(cause.clone()) },
        Input::DrainProgress { id },
        Input::DrainSucceeded { id, conn: () },
        Input::DrainFailed { id, cause: cause.clone() },
        Input::EstablishSucceeded { id, conn: () },
        Input::EstablishFailed { id, cause: cause.clone(), overloaded: true },
        Input::EstablishFailed { id, cause: cause.clone(), overloaded: false },
        Input::RetireConnections,
        Input::ReleaseIdle,
        Input::Ready,
    ];
    let mut log = InputLog::with_capacity(1000);
    for input in &inputs {
        assert!(!log.record_if_compact(Instant::ORIGIN, input));
        log.record(Instant::ORIGIN, input);
    }
    assert_eq!(back(&log), inputs);
}

#[test]
fn all_of_a_cause_comes_back() {
    let mut log = InputLog::with_capacity(16 << 10);
    let mut inputs = Vec::new();
    for (stage, kind) in Stage::ALL.into_iter().zip(CauseKind::ALL.into_iter().cycle()) {
        let labels = CauseLabels { retryable: true, ..CauseLabels::default() };
        let summary = CauseSummary { stage: Some(stage), kind: Some(kind), labels };
        let cause = Cause { summary, text: Some(stage.to_string().into()) };
        let id = ConnId::from_parts(1, 0);
        inputs.push(Input::<Traced>::EstablishFailed { id, cause, overloaded: true });
    }
    for input in &inputs {
        log.record(Instant::ORIGIN, input);
    }
    assert_eq!(back(&log), inputs);
}
