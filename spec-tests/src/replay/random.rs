//! Random runs by seed: what happens to pools that nobody has, so that there are traces of it.

use cenote_core::pool::{Input, Instant, NoPayload, PoolOptions, PoolState};

use crate::fuzzing::decode_run;
use crate::lockstep::{Ids, Payload, Step, Tagged, resolve};

/// A random pool and what is to happen to it: legal, illegal, early, late and backwards in time.
#[derive(Clone, Debug)]
pub struct RandomRun {
    /// Of the pool; usable.
    pub options: PoolOptions,
    steps: Vec<Step>,
    next: usize,
    ids: Ids,
}

impl RandomRun {
    /// The run of a seed, with about so many steps. Seeds whose options no pool can work with are
    /// passed over for the next that can.
    pub fn new(seed: u64, steps: usize) -> Self {
        let mut numbers = SplitMix(seed);
        loop {
            let (options, steps) = decode_run(|| numbers.byte(), steps);
            if options.validate().is_ok() {
                let ids = Ids { last_waiter: 0, clock: Instant::ORIGIN };
                return Self { options, steps, next: 0, ids };
            }
        }
    }

    /// What happens next to a pool without payloads, given the state that it is in; `None` at the
    /// end.
    pub fn next_bare(
        &mut self,
        machine: &PoolState<NoPayload>,
    ) -> Option<(Instant, Input<NoPayload>)> {
        self.next_input(machine, |_| ())
    }

    /// The same for a pool with payloads. They are numbers that tell nothing, so that nothing can
    /// depend on them.
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

/// A small generator of numbers: SplitMix64.
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

    /// The next number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit.max(1)
    }
}
