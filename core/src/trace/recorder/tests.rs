//! What is recorded, and when.

use alloc::vec::Vec;

use super::*;
use crate::pool::{Action, ActionSink, CheckOutError, NoPayload, PoolOptions, Purpose, WaiterId};
use crate::trace::{Replay, TraceInfo, TraceWriter, Traced};

fn recorder() -> Recorder<NoPayload> {
    let pool = PoolState::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
    Recorder::new(pool.expect("options"))
}

fn ready(recorder: &mut Recorder<NoPayload>) {
    recorder.handle(Instant::ORIGIN, Input::Ready, &mut |_| {}).expect("legal");
}

fn chunks(recorder: &mut Recorder<NoPayload>) -> Vec<u64> {
    core::iter::from_fn(|| recorder.take_chunk()).map(|chunk| chunk.inputs()).collect()
}

/// A whole trace of what was recorded.
pub(in crate::trace) fn trace_of(recorder: &mut Recorder<NoPayload>) -> Vec<u8> {
    recorder.flush();
    let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
    writer.write(&recorder.take_chunk().expect("what happened")).expect("memory");
    writer.finish().expect("memory")
}

#[test]
fn it_says_what_it_records() {
    let told = |it: &Recorder<NoPayload>| (it.is_recording(), it.is_journaled());
    assert_eq!(told(&recorder()), (false, false));
    assert_eq!(told(&recorder().with_flight_recorder(1000)), (true, false));
    let mut both = recorder().with_flight_recorder(1000).with_journal(JournalOptions::default());
    assert_eq!(told(&both), (true, true));
    both.end_journal();
    assert_eq!(told(&both), (true, false), "a flight recorder goes on");
    assert!(both.take_chunk().is_none() && both.flight_recording().is_some());
    let mut both = recorder().with_journal(JournalOptions::default());
    both.end_journal();
    assert_eq!(told(&both), (false, false));
}

/// A pool that is not used has no growing trace.
#[test]
fn what_was_told_is_not_told_again() {
    let mut recorder = recorder().with_journal(JournalOptions::default());
    assert!(!recorder.has_full_chunk());
    recorder.flush();
    assert!(recorder.has_full_chunk());
    assert_eq!(chunks(&mut recorder), [0], "the state in which it begins");
    recorder.flush();
    assert!(chunks(&mut recorder).is_empty());
    ready(&mut recorder);
    assert!(!recorder.has_full_chunk());
    recorder.flush();
    recorder.flush();
    assert_eq!(chunks(&mut recorder), [1]);
}

#[test]
fn a_trace_says_whether_it_begins_with_the_pool() {
    let begun_at = |now, inputs: &[Input<NoPayload>]| {
        let pool = PoolState::new(now, PoolOptions::default(), &mut |_| {}).expect("options");
        let mut recorder = Recorder::<NoPayload>::new(pool);
        for input in inputs {
            recorder.handle(now, input.clone(), &mut |_| {}).expect("legal");
        }
        let mut recorder = recorder.with_journal(JournalOptions::default());
        let trace = trace_of(&mut recorder);
        Replay::new(trace.as_slice()).expect("a trace").header().is_new
    };
    assert!(begun_at(Instant::ORIGIN, &[]));
    assert!(begun_at(Instant::from_nanos(5), &[]));
    assert!(!begun_at(Instant::ORIGIN, &[Input::Ready]));
}

#[test]
fn memory_that_is_given_back_lies_ready() {
    let mut recorder = recorder().with_journal(JournalOptions::default());
    recorder.flush();
    let chunk = recorder.take_chunk().expect("a full one");
    recorder.give_back(chunk);
    assert_eq!(recorder.recording.journal_mut().map(|it| it.spare_chunks()), Some(1));
}

#[test]
fn a_trace_begins_with_the_first_chunk() {
    let mut recorder = recorder().with_journal(JournalOptions::default());
    recorder.flush();
    let first = recorder.take_chunk().expect("where it begins");
    ready(&mut recorder);
    recorder.flush();
    let second = recorder.take_chunk().expect("what came then");
    let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
    let error = writer.write(&second).expect_err("one before it is missing");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    writer.write(&first).expect("memory");
    writer.write(&second).expect("memory");
    assert!(!writer.finish().expect("memory").is_empty());
}

#[test]
fn a_replay_asks_for_events_if_its_sink_wants_them() {
    struct Counts {
        wants_events: bool,
        actions: usize,
    }
    impl ActionSink<Traced> for Counts {
        fn act(&mut self, _: Action<Traced>) {
            self.actions += 1;
        }

        fn wants_events(&self) -> bool {
            self.wants_events
        }
    }
    // Whether there is anything to compare, or not.
    for has_actions in [true, false] {
        let options = JournalOptions::default().with_actions(has_actions);
        let mut recorder = recorder().with_journal(options);
        // Its only action is an event.
        ready(&mut recorder);
        let trace = trace_of(&mut recorder);
        for (wants_events, told) in [(true, 1), (false, 0)] {
            let mut replay = Replay::new(trace.as_slice()).expect("a trace");
            let mut sink = Counts { wants_events, actions: 0 };
            while replay.step(&mut sink).expect("it goes the same way").is_some() {}
            assert_eq!(sink.actions, told);
        }
    }
}

#[test]
fn stages_stand_between_the_inputs() {
    let mut recorder =
        recorder().with_flight_recorder(1000).with_journal(JournalOptions::default());
    let (at, id) = (Instant::from_nanos, ConnId::from_parts(3, 0));
    ready(&mut recorder);
    recorder.enter_stage(at(5), id, Stage::Tcp);
    recorder.enter_stage(at(7), id, Stage::Hello);
    recorder.handle(at(9), Input::Timer, &mut |_| {}).expect("legal");
    recorder.fail_in_stage(at(8), id, Stage::Hello, 1 << 40);
    let flight = recorder.flight_recording().expect("there is a flight recorder");
    let flight = flight.write_to(&TraceInfo::default(), Vec::new()).expect("memory");
    for trace in [flight, trace_of(&mut recorder)] {
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let told = |stages: &[StageRecord]| -> Vec<_> {
            let told = |it: &StageRecord| (it.at.as_nanos(), it.connection, it.stage, it.failed);
            stages.iter().map(told).collect()
        };
        let first = replay.step(&mut |_| {}).expect("no problem").expect("ready");
        assert_eq!((told(&first.stages), told(replay.later_stages())), (vec![], vec![]));
        let second = replay.step(&mut |_| {}).expect("no problem").expect("the timer");
        assert_eq!(told(&second.stages), [(5, 3, Stage::Tcp, None), (7, 3, Stage::Hello, None)]);
        assert_eq!(replay.verify().expect("the same"), 2);
        assert_eq!(told(replay.later_stages()), [(8, 3, Stage::Hello, Some(1 << 40))]);
    }
}

/// A trace does not hold what happened before it.
#[test]
fn a_pool_that_was_cleared_before_says_so() {
    let mut recorder = recorder();
    ready(&mut recorder);
    let clear = Input::Clear { cause: (), interrupt: false, service: None };
    recorder.handle(Instant::ORIGIN, clear, &mut |_| {}).expect("legal");
    let mut recorder = recorder.with_journal(JournalOptions::default());
    let (id, purpose) = (WaiterId(1), Purpose::Other);
    let ask = Input::CheckOutRequested { id, waiter: (), deadline: None, purpose };
    recorder.handle(Instant::ORIGIN, ask, &mut |_| {}).expect("legal");
    let trace = trace_of(&mut recorder);
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    let mut told = Vec::new();
    let mut look = |action: Action<Traced>| {
        if let Action::Deliver { outcome: Err(CheckOutError::PoolCleared { cause }), .. } = action {
            told.push(cause.map(|cause| cause.to_string()));
        }
    };
    while replay.step(&mut look).expect("it goes the same way").is_some() {}
    assert_eq!(told, [Some("before this trace begins".into())]);
}
