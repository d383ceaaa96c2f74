//! Replies that are still to come, after the callers that asked for them timed out.

use alloc::collections::BTreeMap;

use crate::pool::id::ConnId;
use crate::pool::time::Instant;

/// What is known of each connection whose late reply was not read yet.
#[derive(Clone, Debug)]
pub(in crate::pool) struct PendingResponses<C> {
    map: BTreeMap<ConnId, PendingResponse<C>>,
    /// When the next drain, or the request that waits for it, may go on no longer.
    next_due: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(in crate::pool) struct PendingResponse<C> {
    pub(in crate::pool) request_id: i32,
    /// When bytes were read, or else when the connection was checked in.
    pub(in crate::pool) last_read: Instant,
    /// The timeout of the caller.
    pub(in crate::pool) cause: C,
    pub(in crate::pool) drain: Option<Drain>,
}

/// The reply is being read.
#[derive(Clone, Copy, Debug)]
pub(in crate::pool) struct Drain {
    /// Since when.
    pub(in crate::pool) started: Instant,
    /// Since when a request waits for it, if one does.
    pub(in crate::pool) announced: Option<Instant>,
}

impl<C> PendingResponses<C> {
    pub(in crate::pool) const fn new() -> Self {
        Self { map: BTreeMap::new(), next_due: None }
    }

    pub(in crate::pool) fn insert(&mut self, id: ConnId, response: PendingResponse<C>) {
        self.map.insert(id, response);
    }

    pub(in crate::pool) fn get(&self, id: ConnId) -> Option<&PendingResponse<C>> {
        self.map.get(&id)
    }

    /// The response of a connection that is known to be pending one.
    pub(in crate::pool) fn known(&self, id: ConnId) -> &PendingResponse<C> {
        self.get(id).expect("a connection that is pending a response")
    }

    pub(in crate::pool) fn known_mut(&mut self, id: ConnId) -> &mut PendingResponse<C> {
        self.map.get_mut(&id).expect("a connection that is pending a response")
    }

    /// Nothing more is due on this connection, or it is closed.
    pub(in crate::pool) fn remove(&mut self, id: ConnId) {
        self.map.remove(&id);
    }

    pub(in crate::pool) fn len(&self) -> usize {
        self.map.len()
    }

    /// In the order of connections.
    pub(in crate::pool) fn iter(&self) -> impl Iterator<Item = (ConnId, &PendingResponse<C>)> {
        self.map.iter().map(|(&id, response)| (id, response))
    }

    /// See the field.
    #[inline(always)]
    pub(in crate::pool) const fn next_due(&self) -> Option<Instant> {
        self.next_due
    }

    pub(in crate::pool) fn set_next_due(&mut self, next_due: Option<Instant>) {
        self.next_due = next_due;
    }
}

impl<C> PendingResponse<C> {
    /// When the drain is given up: 3 s after bytes were read, 30 s after it began so that a peer
    /// which sends a byte now and then does not hold it for ever, and not at once, because the reply
    /// may be there already.
    // LR-05
    pub(in crate::pool) fn limit(&self) -> Option<Instant> {
        let started = self.drain?.started;
        let window = self.last_read.after(WINDOW).max(started.after(FIRST_LOOK));
        Some(window.min(started.after(LONGEST_DRAIN)))
    }
}

const MILLISECOND: u64 = 1_000_000;
/// How long after bytes were read the reply may still be awaited.
// LR-05
const WINDOW: u64 = 3_000 * MILLISECOND;
/// How long a drain may take at least, however old the reply is: as long as a busy machine lets the reading task wait.
// LR-06
const FIRST_LOOK: u64 = 100 * MILLISECOND;
/// How long a drain may take at most.
const LONGEST_DRAIN: u64 = 30_000 * MILLISECOND;
