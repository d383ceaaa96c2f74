//! What is going to happen in a fleet, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cenote_core::pool::{ConnId, Instant};

use super::Ask;

/// Something that will happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A caller wants something done, perhaps again.
    Ask { client: u32, ask: Ask },
    /// A caller comes who never came before, to a client that has one for all.
    Arrive,
    /// The timer of a pool.
    Timer { client: u32 },
    /// A connection is open, or will not be.
    Opened { client: u32, id: ConnId, is_good: bool },
    /// An operation is done, if the connection still serves the same use.
    Answered { client: u32, id: ConnId, use_number: u64 },
    /// A connection has reached the age at which it is closed from outside.
    Cut { client: u32, id: ConnId },
    /// A client asks whether its server is there.
    Check { client: u32 },
    /// It hears whether it is.
    Checked { client: u32, is_good: bool },
    /// The server goes away.
    Down,
    /// It is back.
    Up,
    /// Connections are counted.
    Count,
}

/// In the order of time; what is due at the same moment, in the order in which it was planned.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    planned: u64,
}

#[derive(Debug)]
struct Entry {
    at: (Instant, u64),
    due: Due,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: Instant, due: Due) {
        self.planned += 1;
        self.heap.push(Reverse(Entry { at: (at, self.planned), due }));
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, Due)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at.0, entry.due))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
