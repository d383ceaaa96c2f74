//! Recording every input: chunks are filled under the lock of the topology, and written without it.

use std::collections::VecDeque;

use crate::pool::Instant;
use crate::topology::Topology;
use crate::trace::JournalOptions;

use super::chunk::{Chunk, Entry, is_writable};

/// See the module.
pub(super) struct Journal {
    options: JournalOptions,
    present: Chunk,
    full: VecDeque<Chunk>,
    /// How many inputs were not recorded since one could not be.
    lost: Option<u64>,
}

impl Journal {
    pub(super) fn new(
        now: Instant,
        options: JournalOptions,
        topology: &Topology,
        steps: u64,
    ) -> Self {
        let mut journal =
            Self { options, present: Chunk::default(), full: VecDeque::new(), lost: Some(0) };
        journal.resume(now, topology, steps);
        journal
    }

    /// Records an input, after which the topology is as it is now, and there were so many steps.
    pub(super) fn record(&mut self, topology: &Topology, steps: u64, entry: Entry) {
        let is_full = self.present.weight >= self.options.chunk_bytes;
        if self.lost.is_none() && entry.is_writable() && (!is_full || self.turn_over()) {
            return self.present.push(entry);
        }
        self.lost = Some(self.lost.unwrap_or_default() + 1);
        self.resume(entry.now, topology, steps);
    }

    pub(super) fn is_due(&self) -> bool {
        !self.full.is_empty()
    }

    pub(super) fn take(&mut self) -> Option<Chunk> {
        self.full.pop_front()
    }

    /// Completes the present chunk, if it has anything new.
    pub(super) fn flush(&mut self) {
        if !self.present.is_blank() {
            self.complete();
        }
    }

    /// Goes on in the present state, if that can be written.
    fn resume(&mut self, now: Instant, topology: &Topology, steps: u64) {
        let Some(lost) = self.lost else { return };
        if is_writable(topology) && (self.present.is_blank() || self.turn_over()) {
            self.present = Chunk::from(now, topology, steps, lost);
            self.lost = None;
        }
    }

    /// Begins another chunk. `false` if too many wait to be written.
    fn turn_over(&mut self) -> bool {
        let has_room = self.full.len() < self.options.backlog;
        if has_room {
            self.complete();
        }
        has_room
    }

    fn complete(&mut self) {
        self.full.push_back(core::mem::take(&mut self.present));
    }
}
