//! Replays a thousand runs from their inputs alone.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use cenote_core::pool::{Action, Instant, NoPayload, PoolState, PoolTypes};
use cenote_core::trace::{ActionRecord, JournalOptions, Replay};
use cenote_lab::lockstep::strip_input;
use cenote_tokio::Recording;

use crate::recorded::modes::SECRET;
use crate::recorded::{on_mio, on_tokio};

const RUNS: u64 = 1_000;

/// All inputs except the fork and the end of idle connections, which the shells do not report.
const KINDS: &str = "CheckOutCancelled CheckOutRequested CheckedIn Clear Close EstablishFailed \
                     EstablishSucceeded Handshaken Ready SetOptions Timer";

#[test]
fn a_run_of_the_tokio_shell_replays_the_same_on_a_bare_machine() {
    let mut seen = Seen::default();
    for seed in 0..RUNS {
        let (recording, buffer) = recording();
        on_tokio::run(
            seed,
            |builder| builder.record(recording),
            async |pool| pool.end_recording().await.expect("writing to memory succeeds"),
        );
        seen.replay(seed, &buffer.read());
    }
    seen.judge();
}

/// Several at a time, because most of a run is waiting.
#[test]
fn a_run_of_the_mio_shell_replays_the_same_on_a_bare_machine() {
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
                    on_mio::run(
                        seed,
                        |builder| builder.record(recording),
                        |pool| pool.end_recording().expect("writing to memory succeeds"),
                    );
                    seen.lock().expect("no panic").replay(seed, &buffer.read());
                }
            });
        }
    });
    seen.into_inner().expect("no panic").judge();
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

    fn judge(self) {
        assert!(self.inputs > 100 * RUNS, "{} inputs", self.inputs);
        assert_eq!(self.kinds.into_iter().collect::<Vec<_>>().join(" "), KINDS);
    }
}

fn records<S: PoolTypes>(actions: &[Action<S>]) -> Vec<ActionRecord> {
    actions.iter().filter_map(ActionRecord::of).collect()
}

/// A buffer in memory.
#[derive(Clone, Default)]
pub(crate) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    fn read(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
