//! Replays a thousand runs from their inputs alone.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use cenote_core::pool::{Action, Instant, NoPayload, PoolState, PoolTypes};
use cenote_core::trace::{ActionRecord, JournalOptions, Replay};
use cenote_lab::lockstep::strip_input;
use cenote_shell::trace::Recording;

use crate::pool::blocking::{TestRuntime, on_all_runtimes};
use crate::recorded::run::{SECRET, run};
use crate::recording::shared_buffer::SharedBuffer;

const RUNS: u64 = 1_000;

/// All inputs, that of callers who give up first, except the fork and the end of idle connections, which the shells do not report.
const KINDS: &str = "CheckOutCancelled CheckOutRequested CheckedIn Clear Close EstablishFailed \
                     EstablishSucceeded Handshaken Ready SetOptions Timer";

on_all_runtimes!(a_run_replays_the_same_on_a_bare_machine);

/// Several at a time, because most of a run is waiting.
fn a_run_replays_the_same_on_a_bare_machine<R: TestRuntime>() {
    let (seen, next) = (Mutex::new(Seen::default()), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= RUNS {
                        return;
                    }
                    let (recording, buffer) = recording();
                    run::<R>(seed, recording);
                    seen.lock().expect("no panic").replay(seed, &buffer.read());
                }
            });
        }
    });
    seen.into_inner().expect("no panic").judge(R::CAN_GIVE_UP);
}

/// With a fingerprint after each input, and its actions.
fn recording() -> (Recording, SharedBuffer) {
    let buffer = SharedBuffer::default();
    let journal = JournalOptions::default()
        .with_actions(true)
        .with_fingerprint_every(1)
        .with_chunk_bytes(1 << 10)
        .with_backlog(1 << 10);
    (Recording::to_writer(buffer.clone()).with_journal(journal), buffer)
}

/// The inputs of all runs.
#[derive(Default)]
struct Seen {
    inputs: u64,
    kinds: BTreeSet<&'static str>,
}

impl Seen {
    fn replay(&mut self, seed: u64, trace: &[u8]) {
        assert!(!trace.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
        // Each fingerprint and each action is compared with the recording.
        let mut replay = Replay::new(trace).expect("a trace");
        assert!(replay.header().is_new && replay.header().has_actions);
        let options = replay.header().options.clone();
        let mut bare =
            PoolState::<NoPayload>::new(Instant::ORIGIN, options, &mut |_: Action<NoPayload>| {})
                .expect("the options of a pool");
        let mut actions = Vec::new();
        while let Some(step) =
            replay.step(&mut actions).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        {
            assert!(!step.refused && step.lost_before.is_none());
            self.inputs += 1;
            self.kinds.insert(step.input.name());
            let mut again = Vec::new();
            bare.handle(step.at, strip_input(step.input), &mut again).expect("a valid input");
            assert_eq!(records(&again), records(&actions), "seed {seed}, step {}", step.number);
            assert_eq!(bare.fingerprint(), replay.pool().fingerprint());
            actions.clear();
        }
        assert_eq!(replay.pool().snapshot().total, 0);
    }

    fn judge(self, can_give_up: bool) {
        assert!(self.inputs > 50 * RUNS, "{} inputs", self.inputs);
        let told = self.kinds.into_iter().collect::<Vec<_>>().join(" ");
        let expected = if can_give_up { KINDS } else { &KINDS["CheckOutCancelled ".len()..] };
        assert_eq!(told, expected);
    }
}

fn records<S: PoolTypes>(actions: &[Action<S>]) -> Vec<ActionRecord> {
    actions.iter().filter_map(ActionRecord::of).collect()
}
