//! Recording every input: chunks are filled under the pool's lock and written without it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::pool::{Input, Instant, PoolState, PoolTypes};

use super::action::ActionRecord;
use super::caller_location::CallerLocation;
use super::cause::TraceCause;
use super::chunk::Chunk;
use super::stage::StageRecord;

/// The options of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalOptions {
    /// Bytes of a chunk; default 64 KiB.
    pub chunk_bytes: usize,
    /// How many full chunks may wait to be written; default 256. If writing does not keep up,
    /// inputs are lost; the trace says how many, and continues with a checkpoint from after them.
    pub backlog: usize,
    /// How many inputs there are between two fingerprints; more if the pool is so large that the
    /// fingerprint would cost more than a fraction of handling them. Default 256.
    pub fingerprint_every: u64,
    /// Whether actions are recorded, too; default `false`. Replay finds a difference at once with
    /// them, and at the next fingerprint without.
    pub actions: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { chunk_bytes: 64 << 10, backlog: 256, fingerprint_every: 256, actions: false }
    }
}

impl JournalOptions {
    /// Sets [`fingerprint_every`](Self::fingerprint_every).
    #[must_use]
    pub const fn with_fingerprint_every(self, fingerprint_every: u64) -> Self {
        Self { fingerprint_every, ..self }
    }

    /// Sets [`actions`](Self::actions).
    #[must_use]
    pub const fn with_actions(self, actions: bool) -> Self {
        Self { actions, ..self }
    }

    /// Sets [`chunk_bytes`](Self::chunk_bytes).
    #[must_use]
    pub const fn with_chunk_bytes(self, chunk_bytes: usize) -> Self {
        Self { chunk_bytes, ..self }
    }

    /// Sets [`backlog`](Self::backlog).
    #[must_use]
    pub const fn with_backlog(self, backlog: usize) -> Self {
        Self { backlog, ..self }
    }
}

/// See the module.
pub(super) struct Journal {
    options: JournalOptions,
    present: Chunk,
    full: VecDeque<Chunk>,
    /// Memory of chunks that were written.
    spare: Vec<Chunk>,
    since_fingerprint: u64,
}

impl Journal {
    pub(super) fn new<S: PoolTypes>(
        options: JournalOptions,
        pool: &PoolState<S>,
        place: Option<CallerLocation>,
    ) -> Self {
        let mut present = Chunk::with_capacity(options.chunk_bytes);
        present.restart(pool, 0, place);
        present.log.has_actions = options.actions;
        let (full, spare) = (VecDeque::new(), Vec::new());
        Self { options, present, full, spare, since_fingerprint: 0 }
    }

    pub(super) const fn wants_actions(&self) -> bool {
        self.options.actions
    }

    #[inline]
    pub(super) fn record<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        now: Instant,
        input: &Input<S>,
    ) where
        S::Cause: TraceCause,
    {
        if !self.present.log.record_if_compact(now, input) {
            self.make_room(pool);
            self.present.log.record(now, input);
        }
    }

    /// Records the place of the check-outs that follow, if it is another one.
    pub(super) fn set_place<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        place: Option<CallerLocation>,
    ) {
        if !self.present.log.is_at(place) {
            self.make_room(pool);
            self.present.log.record_place(place);
        }
    }

    /// Records to which stage an establishment has come, or in which a connection failed.
    pub(super) fn enter_stage<S: PoolTypes>(&mut self, pool: &PoolState<S>, record: StageRecord) {
        self.make_room(pool);
        self.present.log.record_stage(record);
    }

    /// Records which step of the client the next input follows.
    pub(super) fn follow<S: PoolTypes>(&mut self, pool: &PoolState<S>, step: u64) {
        self.make_room(pool);
        self.present.log.record_follows(step);
    }

    /// The actions of the last recorded input.
    #[inline]
    pub(super) fn handled<S: PoolTypes>(
        &mut self,
        pool: &PoolState<S>,
        refused: bool,
        actions: &[ActionRecord],
    ) {
        if refused {
            self.present.log.mark_refused();
        }
        for action in actions {
            if self.make_room(pool) {
                // The step to which it belongs is not in the trace any more.
                return;
            }
            self.present.log.record_action(action);
        }
        self.since_fingerprint += 1;
        if self.since_fingerprint >= self.options.fingerprint_every {
            self.fingerprint_if_cheap(pool);
        }
    }

    pub(super) fn is_due(&self) -> bool {
        !self.full.is_empty()
    }

    pub(super) fn take(&mut self) -> Option<Chunk> {
        self.full.pop_front()
    }

    /// Completes the present chunk, with a fingerprint at its end, if it has anything new: the
    /// trace of an unused pool does not grow.
    pub(super) fn flush<S: PoolTypes>(&mut self, pool: &PoolState<S>) {
        let is_told = self.since_fingerprint == 0 && self.present.is_blank();
        if is_told {
            return;
        }
        self.fingerprint(pool);
        self.complete();
    }

    pub(super) fn give_back(&mut self, chunk: Chunk) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(chunk);
        }
    }

    /// Makes room for one more record. `true` if the records since the last full chunk were lost.
    #[inline]
    fn make_room<S: PoolTypes>(&mut self, pool: &PoolState<S>) -> bool {
        !self.present.log.has_room() && self.turn_over(pool)
    }

    #[cold]
    #[inline(never)]
    fn turn_over<S: PoolTypes>(&mut self, pool: &PoolState<S>) -> bool {
        if self.full.len() < self.options.backlog {
            self.complete();
            return false;
        }
        let lost_before = self.present.start.as_ref().map_or(0, |start| start.lost);
        let place = self.present.log.context.place;
        self.present.restart(pool, lost_before + self.present.inputs(), place);
        self.since_fingerprint = 0;
        true
    }

    fn complete(&mut self) {
        let mut next =
            self.spare.pop().unwrap_or_else(|| Chunk::with_capacity(self.options.chunk_bytes));
        next.follow(&self.present);
        next.log.has_actions = self.options.actions;
        self.full.push_back(core::mem::replace(&mut self.present, next));
    }

    /// A fingerprint costs as much as the pool is large, so it waits for as many inputs.
    #[inline(never)]
    fn fingerprint_if_cheap<S: PoolTypes>(&mut self, pool: &PoolState<S>) {
        let snapshot = pool.snapshot();
        let size = u64::from(snapshot.total) + snapshot.waiting;
        if self.since_fingerprint >= size {
            self.fingerprint(pool);
        }
    }

    fn fingerprint<S: PoolTypes>(&mut self, pool: &PoolState<S>) {
        self.since_fingerprint = 0;
        // Inputs are worth more than a fingerprint of them.
        if self.present.log.has_room() || self.full.len() < self.options.backlog {
            self.make_room(pool);
            self.present.log.record_fingerprint(pool.fingerprint());
        }
    }
}

const SPARE_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::prelude::v1::*;

    use super::*;
    use crate::pool::{NoPayload, PoolOptions};

    impl Journal {
        /// How many chunks there are for reuse.
        pub(in crate::trace) fn spare_chunks(&self) -> usize {
            self.spare.len()
        }
    }

    #[test]
    fn memory_that_is_given_back_is_used_again() {
        let options = PoolOptions::default();
        let pool =
            PoolState::<NoPayload>::new(Instant::ORIGIN, options, &mut |_| {}).expect("options");
        let mut journal = Journal::new(JournalOptions::default(), &pool, None);
        let full = |journal: &mut Journal| {
            journal.record(&pool, Instant::ORIGIN, &Input::Ready);
            journal.flush(&pool);
            journal.take().expect("a full one")
        };
        let chunk = full(&mut journal);
        let place = chunk.log.written().as_ptr();
        journal.give_back(chunk);
        assert_eq!(journal.spare_chunks(), 1);
        let other = full(&mut journal);
        assert_eq!(journal.spare_chunks(), 0);
        assert_eq!(journal.present.log.written().as_ptr(), place);
        journal.give_back(other);
        // Of the many that wait while writing does not keep up, not all are kept for ever.
        let many: Vec<_> = (0..2 * SPARE_MAX).map(|_| full(&mut journal)).collect();
        for chunk in many {
            journal.give_back(chunk);
        }
        assert_eq!(journal.spare_chunks(), SPARE_MAX);
    }

    #[test]
    fn no_more_than_the_backlog_waits() {
        let pool =
            PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {});
        let pool = pool.expect("options");
        let options = JournalOptions::default().with_chunk_bytes(1).with_backlog(2);
        let mut journal = Journal::new(options, &pool, None);
        for _ in 0..1000 {
            journal.record(&pool, Instant::ORIGIN, &Input::Ready);
        }
        assert_eq!(journal.full.len(), 2);
    }
}
