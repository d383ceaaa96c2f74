//! Random numbers and random runs of a pool, reproducible from a seed.

use cenote_core::pool::{Input, Instant, NoPayload, PoolOptions, PoolState};

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

/// The generator SplitMix64. The same seed always gives the same numbers, in every version of Cenote.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[3]
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit.max(1)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// A number from 0 to 1, without 1.
    pub fn part(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// `true` half of the time.
    pub fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// `true` once in `times` draws on average; never if `times` is 0.
    pub fn one_in(&mut self, times: u64) -> bool {
        times != 0 && self.below(times) == 0
    }

    /// One of the items; `None` if there are none.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len() as u64);
        items.get(usize::try_from(index).ok()?).cloned()
    }
}
