//! Random runs of a pool, reproducible from a seed.

use std::io;

use cenote_core::pool::{Action, Input, Instant, NoPayload, PoolOptions, PoolState};
use cenote_core::trace::JournalOptions;
use cenote_replay::random::SplitMix;
use cenote_replay::record::RecordedRun;

use crate::fuzzing::{Run, decode_run, without_late_replies};
use crate::lockstep::{Ids, Payload, Step, Tagged, resolve};

/// Random pool options and random inputs: valid and invalid, early, late and backwards in time.
#[derive(Clone, Debug)]
pub struct RandomRun {
    /// The pool's options, which are valid.
    pub options: PoolOptions,
    steps: Vec<Step>,
    next: usize,
    ids: Ids,
}

impl RandomRun {
    /// The run of a seed, with about `steps` inputs, without late replies. Invalid options are skipped
    /// and drawn again.
    pub fn new(seed: u64, steps: usize) -> Self {
        Self::draw(seed, steps, without_late_replies)
    }

    /// The same, in most runs with late replies.
    pub fn with_late_replies(seed: u64, steps: usize) -> Self {
        Self::draw(seed, steps, |run| run)
    }

    fn draw(seed: u64, steps: usize, change: impl Fn(Run) -> Run) -> Self {
        let mut numbers = SplitMix(seed);
        loop {
            let (options, steps) = change(decode_run(|| numbers.byte(), steps));
            if options.validate().is_ok() {
                let ids = Ids { last_waiter: 0, clock: Instant::ORIGIN };
                return Self { options, steps, next: 0, ids };
            }
        }
    }

    /// The next input for a pool without payloads in its present state; `None` at the end.
    pub fn next_bare(
        &mut self,
        machine: &PoolState<NoPayload>,
    ) -> Option<(Instant, Input<NoPayload>)> {
        self.next_input(machine, |_| ())
    }

    /// The same for a pool with payloads, which are arbitrary numbers so that nothing can depend on them.
    pub fn next_tagged(&mut self, machine: &PoolState<Tagged>) -> Option<(Instant, Input<Tagged>)> {
        let salt = self.ids.clock.as_nanos() << 8;
        self.next_input(machine, |holder| holder.unwrap_or(0) ^ salt)
    }

    fn next_input<S, T>(
        &mut self,
        machine: &PoolState<S>,
        payload: impl FnMut(Option<u64>) -> T,
    ) -> Option<(Instant, Input<S>)>
    where
        S: Payload<Conn = T, Waiter = T>,
    {
        let step = self.steps.get(self.next)?;
        self.next += 1;
        let (now, input) = resolve(step, machine, self.ids, payload);
        self.ids.clock = now;
        if let Input::CheckOutRequested { id, .. } = &input {
            self.ids.last_waiter = self.ids.last_waiter.max(id.0);
        }
        Some((now, input))
    }
}

/// Writes a trace of the random run of a seed, with about `steps` inputs, some of which are
/// refused.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn record<W: io::Write>(
    seed: u64,
    steps: usize,
    journal: JournalOptions,
    sink: W,
) -> io::Result<W> {
    let mut inputs = RandomRun::new(seed, steps);
    let ignore = &mut |_: Action<Tagged>| {};
    let pool = PoolState::new(Instant::ORIGIN, inputs.options.clone(), ignore);
    let mut run = RecordedRun::begin(pool.expect("usable options"), journal, sink);
    while let Some((now, input)) = inputs.next_tagged(run.pool()) {
        // Some inputs are invalid on purpose.
        run.offer(now, input)?;
    }
    run.finish()
}
