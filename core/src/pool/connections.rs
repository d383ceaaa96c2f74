//! The connections of a pool: where each of them lies, and how many there are of each kind.
//!
//! A connection lives in a slot of a slab and hangs on exactly one list, by what it does at
//! present. Each list is in order of time, so that the oldest is always first: moving a
//! connection costs a constant, and pruning costs what is pruned.

mod clone;

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use slab::Slab;

use super::action::Shell;
use super::id::{ConnId, ServiceId};
use super::input::Purpose;
use super::time::Instant;
use super::wait_queue::Request;

/// One connection (CO-12).
pub(super) struct Connection<S: Shell> {
    number: u64,
    /// The pool's generation when it was created; in load-balanced mode its service's when hello
    /// was done (CO-09, LB-03).
    pub(super) generation: u64,
    pub(super) service: Option<ServiceId>,
    pub(super) created: Instant,
    /// The end of its lifetime, from establishment on.
    pub(super) expires: Option<Instant>,
    pub(super) doing: Doing<S>,
    list: List,
    previous: u32,
    next: u32,
}

/// What a connection does at present (CO-13 … CO-15).
pub(super) enum Doing<S: Shell> {
    /// Being established, for the request that started it if that still wants it.
    Pending { owner: Option<Request<S::Waiter>>, handshaken: bool },
    /// Waiting in the pool.
    Available { conn: S::Conn, since: Instant },
    /// Checked out.
    InUse { since: Instant, purpose: Purpose, interrupted: bool },
}

/// The lists; each connection is on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// In the order of creation.
    Pending,
    /// In the order in which they became available.
    Available,
    /// In the order of check-out.
    InUse,
    /// In use, and reported as held too long.
    Overdue,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
    len: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// See the module.
pub(super) struct Connections<S: Shell> {
    slots: Slab<Connection<S>>,
    lists: [Ends; 4],
    last_number: u64,
    /// When connections that have a lifetime reach its end; those of closed connections go when
    /// they would be next, or when they become the majority.
    expiries: BinaryHeap<Reverse<(Instant, ConnId)>>,
}

impl<S: Shell> Connections<S> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Slab::new(),
            lists: [Ends { first: NONE, last: NONE, len: 0 }; 4],
            last_number: 0,
            expiries: BinaryHeap::new(),
        }
    }

    /// Makes a pending connection with the next number (CC-01, CC-02).
    pub(super) fn create(
        &mut self,
        created: Instant,
        generation: u64,
        owner: Option<Request<S::Waiter>>,
    ) -> ConnId {
        self.last_number += 1;
        let number = self.last_number;
        let slot = slot_number(self.slots.insert(Connection {
            number,
            generation,
            service: None,
            created,
            expires: None,
            doing: Doing::Pending { owner, handshaken: false },
            list: List::Pending,
            previous: NONE,
            next: NONE,
        }));
        self.append(slot, List::Pending);
        ConnId::from_parts(number, slot)
    }

    /// Moves a connection to the end of the list that fits what it does from now on, and tells what
    /// it did before.
    pub(super) fn set(&mut self, id: ConnId, doing: Doing<S>) -> Doing<S> {
        self.detach(id.slot());
        self.append(id.slot(), doing.list());
        core::mem::replace(&mut self.at_mut(id.slot()).doing, doing)
    }

    /// Moves a connection that is in use to those that were reported.
    pub(super) fn set_overdue(&mut self, id: ConnId) {
        assert_eq!(self.at(id.slot()).list, List::InUse, "reported once");
        self.detach(id.slot());
        self.append(id.slot(), List::Overdue);
    }

    /// Forgets a connection; its slot is free from now on (KX-03).
    pub(super) fn remove(&mut self, id: ConnId) -> Connection<S> {
        self.detach(id.slot());
        let removed = self.slots.remove(id.slot() as usize);
        assert_eq!(removed.number, id.number(), "a connection of this pool");
        self.settle_expiries();
        removed
    }

    /// The earliest expiry is always one of a connection that exists: a closed one is no reason to
    /// be woken.
    fn settle_expiries(&mut self) {
        while let Some(&Reverse((_, id))) = self.expiries.peek() {
            if self.get(id).is_some() {
                break;
            }
            self.expiries.pop();
        }
        if self.expiries.len() > 2 * self.slots.len() + Self::EXPIRIES_TOLERATED {
            let mut expiries = core::mem::take(&mut self.expiries);
            expiries.retain(|&Reverse((_, id))| self.get(id).is_some());
            self.expiries = expiries;
        }
    }

    /// Notes when a connection reaches the end of its lifetime.
    pub(super) fn set_expiry(&mut self, id: ConnId, expires: Instant) {
        self.at_mut(id.slot()).expires = Some(expires);
        self.expiries.push(Reverse((expires, id)));
    }

    /// Takes the next connection that reaches the end of its lifetime, if `due`.
    pub(super) fn pop_expired(&mut self, due: impl FnOnce(Instant) -> bool) -> Option<ConnId> {
        let &Reverse((expires, id)) = self.expiries.peek()?;
        if !due(expires) {
            return None;
        }
        self.expiries.pop();
        self.settle_expiries();
        Some(id)
    }

    /// When the next connection reaches the end of its lifetime.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.peek().map(|&Reverse((expires, _))| expires)
    }

    /// Looks a connection up; `None` when this id is not, or no longer, one of the pool's.
    pub(super) fn get(&self, id: ConnId) -> Option<&Connection<S>> {
        self.slots.get(id.slot() as usize).filter(|connection| connection.number == id.number())
    }

    /// The connection of an id that is known to be the pool's.
    pub(super) fn known(&self, id: ConnId) -> &Connection<S> {
        self.get(id).expect("a connection of this pool")
    }

    /// The same, to change it; what it does is changed by [`set`](Self::set).
    pub(super) fn known_mut(&mut self, id: ConnId) -> &mut Connection<S> {
        let connection = self.at_mut(id.slot());
        assert_eq!(connection.number, id.number(), "a connection of this pool");
        connection
    }

    /// How many connections are on a list.
    pub(super) const fn len(&self, list: List) -> u32 {
        self.lists[list as usize].len
    }

    /// Pending, available and in use together (PS-20).
    pub(super) const fn total(&self) -> u32 {
        self.len(List::Pending) + self.len(List::Available) + self.in_use()
    }

    /// In use, whether reported or not.
    pub(super) const fn in_use(&self) -> u32 {
        self.len(List::InUse) + self.len(List::Overdue)
    }

    /// The number of the connection that was created last; 0 before the first.
    pub(super) const fn last_number(&self) -> u64 {
        self.last_number
    }

    /// The first of a list.
    pub(super) fn first(&self, list: List) -> Option<ConnId> {
        self.id_at(self.lists[list as usize].first)
    }

    /// The last of a list.
    pub(super) fn last(&self, list: List) -> Option<ConnId> {
        self.id_at(self.lists[list as usize].last)
    }

    /// The one behind `id` on its list.
    pub(super) fn next(&self, id: ConnId) -> Option<ConnId> {
        self.id_at(self.known(id).next)
    }

    /// Each connection of a list, in its order.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = (ConnId, &Connection<S>)> {
        core::iter::successors(self.first(list), |&id| self.next(id)).map(|id| (id, self.known(id)))
    }

    fn id_at(&self, slot: u32) -> Option<ConnId> {
        (slot != NONE).then(|| ConnId::from_parts(self.at(slot).number, slot))
    }

    fn at(&self, slot: u32) -> &Connection<S> {
        &self.slots[slot as usize]
    }

    fn at_mut(&mut self, slot: u32) -> &mut Connection<S> {
        &mut self.slots[slot as usize]
    }

    fn append(&mut self, slot: u32, list: List) {
        let ends = &mut self.lists[list as usize];
        let previous = core::mem::replace(&mut ends.last, slot);
        ends.len += 1;
        if previous == NONE {
            ends.first = slot;
        } else {
            self.at_mut(previous).next = slot;
        }
        let connection = self.at_mut(slot);
        (connection.list, connection.previous, connection.next) = (list, previous, NONE);
    }

    fn detach(&mut self, slot: u32) {
        let &Connection { list, previous, next, .. } = self.at(slot);
        let ends = &mut self.lists[list as usize];
        assert!(ends.len > 0, "the list that it is on");
        ends.len -= 1;
        if previous == NONE {
            ends.first = next;
        }
        if next == NONE {
            ends.last = previous;
        }
        if previous != NONE {
            self.at_mut(previous).next = next;
        }
        if next != NONE {
            self.at_mut(next).previous = previous;
        }
    }

    /// Recounts what is kept as a number or a link.
    pub(super) fn check_invariants(&self) {
        for list in [List::Pending, List::Available, List::InUse, List::Overdue] {
            let mut previous = NONE;
            let mut len = 0;
            for (id, connection) in self.iter(list) {
                assert_eq!(connection.previous, previous, "linked both ways");
                assert_eq!(connection.list, list, "on the list it names");
                assert!(connection.doing.may_be_on(list), "on the list that fits");
                assert!((1..=self.last_number).contains(&connection.number), "a number given out");
                previous = id.slot();
                len += 1;
            }
            assert_eq!(self.lists[list as usize].last, previous, "the end is the end");
            assert_eq!(self.len(list), len, "counted right");
        }
        assert_eq!(self.slots.len(), self.total() as usize, "each connection is on a list");
        let next = self.expiries.peek().map(|&Reverse((_, id))| id);
        assert!(next.is_none_or(|id| self.get(id).is_some()), "only who exists can expire");
    }

    /// So many entries of closed connections are not worth a sweep.
    const EXPIRIES_TOLERATED: usize = 32;
}

impl<S: Shell> Doing<S> {
    const fn list(&self) -> List {
        match self {
            Self::Pending { .. } => List::Pending,
            Self::Available { .. } => List::Available,
            Self::InUse { .. } => List::InUse,
        }
    }

    fn may_be_on(&self, list: List) -> bool {
        list == self.list() || (list == List::Overdue && self.list() == List::InUse)
    }
}

fn slot_number(key: usize) -> u32 {
    let slot = u32::try_from(key).expect("no more connections than maxPoolSize can say");
    assert_ne!(slot, NONE, "one number stays free");
    slot
}
