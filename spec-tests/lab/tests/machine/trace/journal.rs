//! Everything that happens, recorded and replayed.

use cenote_core::pool::{Action, Input, Instant, NoPayload, PoolState};
use cenote_core::trace::{ActionRecord, JournalOptions, Recorder, Replay, TraceWriter, Traced};
use cenote_lab::lockstep::{Tagged, strip_action, strip_input};
use cenote_lab::random_run::RandomRun;

use super::recorded::{drain, finish, info, play, pool, small_chunks, trace};

const RUNS: u64 = 1_000;
const STEPS: usize = 200;

#[test]
fn a_run_with_payloads_replays_the_same_without() {
    for seed in 0..RUNS {
        let mut run = RandomRun::with_late_replies(seed, STEPS);
        let options = small_chunks().with_actions(seed % 2 == 0);
        let mut recorded = pool(&run).with_journal(options);
        let mut writer = TraceWriter::new(Vec::new(), info());
        let mut fingerprints = Vec::new();
        let actions = play(&mut run, &mut recorded, |pool| {
            drain(pool, &mut writer);
            fingerprints.push(pool.fingerprint());
        });
        let trace = finish(recorded, writer);

        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let mut bare = bare(&run);
        for (number, (expected, fingerprint)) in actions.iter().zip(&fingerprints).enumerate() {
            let mut again = Vec::new();
            let step = replay.step(&mut again).unwrap_or_else(|error| panic!("{seed}: {error}"));
            let step = step.expect("as many steps as were taken");
            assert_eq!(step.number, number as u64 + 1);
            assert_eq!(records(&again), records(expected), "seed {seed} step {number}");
            assert_eq!(replay.pool().fingerprint(), *fingerprint);
            // And with no payloads at all.
            let mut none = Vec::new();
            let outcome = bare.handle(step.at, without_payloads(step.input), &mut none);
            assert_eq!(outcome.is_err(), step.refused);
            let stripped: Vec<_> = expected.iter().filter_map(strip_action).collect();
            let none: Vec<_> = none.into_iter().filter(is_no_event).collect();
            assert_eq!(none, stripped);
            assert_eq!(bare.fingerprint(), *fingerprint);
        }
        assert_eq!(replay.step(&mut Vec::new()).expect("an end"), None);
        assert_eq!(replay.steps(), actions.len() as u64);
    }
}

#[test]
fn recording_makes_no_difference() {
    for seed in 0..RUNS / 4 {
        let play_with = |record: fn(Recorder<Tagged>) -> Recorder<Tagged>| {
            let mut run = RandomRun::with_late_replies(seed, STEPS);
            let mut pool = record(pool(&run));
            let actions = play(&mut run, &mut pool, |_| {});
            (actions, pool.fingerprint())
        };
        let off = play_with(|pool| pool);
        assert_eq!(play_with(|pool| pool.with_flight_recorder(2_000)), off);
        let journal = small_chunks().with_actions(true).with_backlog(3);
        let recorded = |pool: Recorder<Tagged>| {
            pool.with_flight_recorder(500).with_journal(JournalOptions::default())
        };
        assert_eq!(play_with(recorded), off);
        let mut run = RandomRun::with_late_replies(seed, STEPS);
        let mut pool = pool(&run).with_journal(journal);
        assert_eq!(play(&mut run, &mut pool, |_| {}), off.0);
    }
}

#[test]
fn a_writer_that_does_not_keep_up_leaves_a_gap_that_is_told() {
    let mut gaps = 0;
    for seed in 0..200 {
        let mut run = RandomRun::with_late_replies(seed, 400);
        let options = small_chunks().with_backlog(1).with_actions(seed % 2 == 0);
        let mut recorded = pool(&run).with_journal(options);
        let mut writer = TraceWriter::new(Vec::new(), info());
        let mut count = 0;
        let actions = play(&mut run, &mut recorded, |pool| {
            count += 1;
            if count % 150 == 0 {
                drain(pool, &mut writer);
            }
        });
        let fingerprint = recorded.fingerprint();
        let trace = finish(recorded, writer);
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let mut told = 0;
        while let Some(step) = replay.step(&mut Vec::new()).expect("a good trace") {
            told += step.lost_before.unwrap_or(0);
        }
        gaps += u64::from(told > 0);
        assert_eq!(replay.pool().fingerprint(), fingerprint);
        assert!(replay.steps() + told <= actions.len() as u64);
        if told == 0 {
            assert!(replay.steps() <= actions.len() as u64);
        }
    }
    assert!(gaps > 100, "{gaps} gaps");
}

#[test]
fn the_same_run_is_the_same_trace() {
    let options = JournalOptions::default().with_actions(true);
    assert_eq!(trace(3, 300, options), trace(3, 300, options));
}

fn bare(run: &RandomRun) -> PoolState<NoPayload> {
    let ignore = &mut |_: Action<NoPayload>| {};
    PoolState::new(Instant::ORIGIN, run.options.clone(), ignore).expect("usable options")
}

fn records<S: cenote_core::pool::PoolTypes>(actions: &[Action<S>]) -> Vec<ActionRecord> {
    actions.iter().filter_map(ActionRecord::of).collect()
}

fn is_no_event(action: &Action<NoPayload>) -> bool {
    !matches!(action, Action::EmitEvent(_))
}

fn without_payloads(input: Input<Traced>) -> Input<NoPayload> {
    strip_input(input)
}
