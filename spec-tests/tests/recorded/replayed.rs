//! A thousand runs, replayed with nothing but their inputs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use cenote::lockstep::strip_input;
use cenote_core::pool::{Action, Bare, Instant, PoolState, Shell};
use cenote_core::trace::{ActionRecord, JournalOptions, Replay};
use cenote_tokio::Recording;

use crate::run::{SECRET, run};

const RUNS: u64 = 1_000;

#[test]
fn a_run_of_the_shell_replays_the_same_on_a_bare_machine() {
    let (mut inputs, mut kinds) = (0, std::collections::BTreeSet::new());
    for seed in 0..RUNS {
        let trace = recorded(seed);
        assert!(!trace.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
        // Each fingerprint and each action is compared with the recorded ones.
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        assert!(replay.header().is_new && replay.header().has_actions);
        let options = replay.header().options.clone();
        let mut bare = PoolState::<Bare>::new(Instant::ORIGIN, options, &mut |_: Action<Bare>| {})
            .expect("the options of a pool");
        let mut actions = Vec::new();
        while let Some(step) =
            replay.step(&mut actions).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        {
            assert!(!step.refused && step.lost_before.is_none());
            inputs += 1;
            kinds.insert(step.input.name());
            let mut again = Vec::new();
            bare.handle(step.at, strip_input(step.input), &mut again).expect("a legal input");
            assert_eq!(records(&again), records(&actions), "seed {seed}, step {}", step.number);
            assert_eq!(bare.fingerprint(), replay.pool().fingerprint());
            actions.clear();
        }
        assert_eq!(replay.pool().snapshot().total, 0);
    }
    assert!(inputs > 100 * RUNS, "{inputs} inputs");
    // All but the fork and what only a driver with a watch on idle sockets says.
    let all = "CheckOutCancelled CheckOutRequested CheckedIn Clear Close EstablishFailed \
               EstablishSucceeded Handshaken Ready SetOptions Timer";
    assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), all);
}

/// With a fingerprint after each input, and its actions.
fn recorded(seed: u64) -> Vec<u8> {
    let paper = Paper::default();
    let journal = JournalOptions::default()
        .with_actions(true)
        .with_fingerprint_every(1)
        .with_chunk_bytes(1 << 10)
        .with_backlog(1 << 10);
    let recording = Recording::to_writer(paper.clone()).with_journal(journal);
    run(
        seed,
        |builder| builder.record(recording),
        async |pool| pool.end_recording().await.expect("memory can be written to"),
    );
    let trace = paper.0.lock().expect("no panic");
    trace.clone()
}

fn records<S: Shell>(actions: &[Action<S>]) -> Vec<ActionRecord> {
    actions.iter().filter_map(ActionRecord::of).collect()
}

/// Memory.
#[derive(Clone, Default)]
pub(crate) struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
