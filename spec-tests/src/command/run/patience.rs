use std::num::NonZeroU32;
use std::time::Duration;

use cenote_replay::random::SplitMix;

/// When the callers of a task give up.
pub(super) struct Patience {
    one_in: Option<NonZeroU32>,
    random: SplitMix,
}

impl Patience {
    pub(super) const fn new(one_in: Option<NonZeroU32>, task: u32) -> Self {
        Self { one_in, random: SplitMix(task as u64) }
    }

    /// How long a caller waits: of one in N a random time up to `most`, else `None` for as long as it takes.
    pub(super) fn next(&mut self, most: Duration) -> Option<Duration> {
        let one_in = self.one_in?.get().into();
        self.random.one_in(one_in).then(|| most.mul_f64(self.random.part()))
    }
}
