//! Where in a program check-outs are called.

use cenote_core::pool::{Input, WaiterId};
use cenote_core::trace::{CallerLocation, Disclosure, JournalOptions, Replay, TraceWriter};
use cenote_lab::lockstep::Tagged;
use cenote_lab::random_run::RandomRun;

use super::recorded::{Pool, drain, finish, info, pool, small_chunks};

/// Places come back in runs and change back and forth; one in four is unknown.
fn place_of(request: WaiterId) -> Option<CallerLocation> {
    let WaiterId(number) = request;
    let kind = number / 3 % 4;
    (kind > 0).then(|| CallerLocation::new("src/orders.rs", 10 * kind as u32, number as u32 % 2))
}

/// Feeds a run with the place of each check-out.
fn play(run: &mut RandomRun, pool: &mut Pool, mut after: impl FnMut(&mut Pool)) {
    while let Some((now, input)) = run.next_tagged(pool) {
        if let Input::CheckOutRequested { id, .. } = &input {
            pool.set_place(place_of(*id));
        }
        let _ = pool.handle(now, input, &mut Vec::<cenote_core::pool::Action<Tagged>>::new());
        after(pool);
    }
}

/// Checks the place of each step, and returns how many steps have one.
fn check(trace: &[u8]) -> usize {
    let mut replay = Replay::new(trace).expect("a trace");
    let mut known = 0;
    while let Some(step) = replay.step(&mut Vec::new()).expect("a good trace") {
        let expected =
            if let Input::CheckOutRequested { id, .. } = step.input { place_of(id) } else { None };
        assert_eq!(step.place.as_deref(), expected.map(|it| it.to_string()).as_deref());
        known += usize::from(expected.is_some());
    }
    known
}

#[test]
fn each_check_out_has_its_place_across_chunks_and_gaps() {
    let mut known = 0;
    for seed in 0..200 {
        let mut run = RandomRun::with_late_replies(seed, 300);
        let backlog = if seed % 2 == 0 { 256 } else { 1 };
        let options = small_chunks().with_backlog(backlog).with_actions(seed % 4 < 2);
        let mut recorded = pool(&run).with_journal(options);
        let mut writer = TraceWriter::new(Vec::new(), info());
        let mut count = 0;
        play(&mut run, &mut recorded, |pool| {
            count += 1;
            if count % 100 == 0 {
                drain(pool, &mut writer);
            }
        });
        known += check(&finish(recorded, writer));
    }
    assert!(known > 1_000, "{known}");
}

#[test]
fn a_recording_that_begins_later_knows_the_place() {
    let mut run = RandomRun::new(5, 200);
    let mut recorded = pool(&run);
    let here = CallerLocation::new("src/orders.rs", 41, 32);
    recorded.set_place(Some(here));
    let mut recorded = recorded.with_flight_recorder(64 << 10).with_journal(small_chunks());
    // A second journal takes the place of the first.
    recorded.begin_journal(small_chunks());
    while let Some((now, input)) = run.next_tagged(&recorded) {
        let _ = recorded.handle(now, input, &mut Vec::<cenote_core::pool::Action<Tagged>>::new());
    }
    let flight = recorded.flight_recording().expect("there is a flight recorder");
    let flight = flight.write_to(&info(), Vec::new()).expect("memory");
    for trace in [flight, finish(recorded, TraceWriter::new(Vec::new(), info()))] {
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let mut asked = 0;
        while let Some(step) = replay.step(&mut Vec::new()).expect("a good trace") {
            if matches!(step.input, Input::CheckOutRequested { .. }) {
                assert_eq!(step.place.as_deref(), Some(here.to_string().as_str()));
                asked += 1;
            }
        }
        assert!(asked > 10, "{asked}");
    }
}

#[test]
fn a_flight_recorder_keeps_the_place_when_it_begins_again() {
    let mut known = 0;
    for seed in 0..100 {
        let mut run = RandomRun::with_late_replies(seed, 300);
        let mut recorded = pool(&run).with_flight_recorder(1_200);
        play(&mut run, &mut recorded, |_| {});
        let recording = recorded.flight_recording().expect("there is a flight recorder");
        known += check(&recording.write_to(&info(), Vec::new()).expect("memory"));
    }
    assert!(known > 500, "{known}");
}

#[test]
fn places_beyond_the_limit_are_left_out() {
    const FILE: &str = "src/generated.rs";
    let mut run = RandomRun::new(1, 20_000);
    let mut recorded = pool(&run).with_journal(JournalOptions::default());
    let mut writer = TraceWriter::new(Vec::new(), info());
    let mut line = 0;
    while let Some((now, input)) = run.next_tagged(&recorded) {
        if matches!(input, Input::CheckOutRequested { .. }) {
            line += 1;
            recorded.set_place(Some(CallerLocation::new(FILE, line, 1)));
        }
        let _ = recorded.handle(now, input, &mut Vec::<cenote_core::pool::Action<Tagged>>::new());
        if line % 200 == 0 {
            recorded.flush();
            drain(&mut recorded, &mut writer);
        }
    }
    assert!(line > 1_100, "{line}");
    let trace = finish(recorded, writer);
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    let (mut asked, mut known) = (0, 0);
    while let Some(step) = replay.step(&mut Vec::new()).expect("a good trace") {
        asked += u32::from(matches!(step.input, Input::CheckOutRequested { .. }));
        if let Some(place) = step.place {
            assert_eq!(*place, *format!("{FILE}:{asked}:1"));
            known += 1;
        }
    }
    assert!(asked == line && known == 1_024, "{known} of {asked}, {line}");
}

#[test]
fn places_are_told_as_texts_are() {
    let told = |texts| {
        let mut run = RandomRun::new(3, 200);
        let mut recorded = pool(&run).with_journal(JournalOptions::default());
        play(&mut run, &mut recorded, |_| {});
        let writer = TraceWriter::new(Vec::new(), info().with_texts(texts));
        let trace = finish(recorded, writer);
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let mut places = Vec::new();
        while let Some(step) = replay.step(&mut Vec::new()).expect("a good trace") {
            places.extend(step.place);
        }
        places
    };
    let plain = told(Disclosure::Plain);
    assert!(!plain.is_empty() && plain.iter().all(|place| place.starts_with("src/orders.rs:")));
    let hashed = told(Disclosure::Hashed);
    assert!(hashed.len() == plain.len() && hashed.iter().all(|place| place.starts_with('#')));
    assert!(told(Disclosure::Omitted).is_empty());
}
