//! The connections of a pool: where each of them lies, and how many there are of each kind.
//!
//! A connection lives in a slot of a slab and is on exactly one list, by what it does at present.
//! Each list is in order of time, so that the oldest is always first: moving a connection costs a
//! constant, and pruning costs what is pruned.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use slab::Slab;

use super::lists::{List, Lists};
use crate::pool::checkpoint::ConnectionCheckpoint;
use crate::pool::id::{ConnId, ServiceId, WaiterId};
use crate::pool::input::Purpose;
use crate::pool::time::Instant;

/// One connection (CO-12).
#[derive(Clone)]
pub(in crate::pool) struct Connection<C> {
    number: u64,
    /// The pool's generation when it was created; in load-balanced mode its service's when hello
    /// was done (CO-09, LB-03).
    pub(in crate::pool) generation: u64,
    pub(in crate::pool) service: Option<ServiceId>,
    pub(in crate::pool) created: Instant,
    /// The end of its lifetime, from establishment on.
    pub(in crate::pool) expires: Option<Instant>,
    /// Whether that end came while it was in use: then it is closed when it is checked in.
    pub(in crate::pool) expiry_met: bool,
    pub(in crate::pool) doing: Doing<C>,
}

/// What a connection does at present (CO-13 … CO-15).
#[derive(Clone)]
pub(in crate::pool) enum Doing<C> {
    /// Being established, for the request that started it if that still wants it.
    Pending { owner: Option<WaiterId>, handshaken: bool },
    /// Waiting in the pool.
    Available { conn: C, since: Instant },
    /// Checked out.
    InUse { since: Instant, purpose: Purpose, interrupted: bool },
}

/// See the module.
#[derive(Clone)]
pub(in crate::pool) struct Connections<C> {
    slots: Slab<Connection<C>>,
    lists: Lists,
    last_number: u64,
    /// When connections that have a lifetime reach its end; those of closed connections go when
    /// they would be next, or when they become the majority.
    expiries: BinaryHeap<Reverse<(Instant, ConnId)>>,
}

impl<C> Connections<C> {
    pub(in crate::pool) fn new() -> Self {
        Self {
            slots: Slab::new(),
            lists: Lists::new(),
            last_number: 0,
            expiries: BinaryHeap::new(),
        }
    }

    /// Puts connections back into their slots, in the order in which `listed` names them for each
    /// list. Their slots and `free`, the next to be used first, must together be 0, 1, 2, …
    pub(in crate::pool) fn restore(
        last_number: u64,
        listed: Vec<(ConnId, List, Connection<C>)>,
        free: &[u32],
    ) -> Self {
        let count = listed.len() + free.len();
        let places = listed.iter().map(|&(id, list, _)| (id.slot(), list));
        let mut connections = Self {
            slots: Slab::with_capacity(count),
            lists: Lists::restore(count, places, free),
            last_number,
            expiries: BinaryHeap::new(),
        };
        let mut by_slot = listed;
        by_slot.sort_unstable_by_key(|(id, _, _)| id.slot());
        let mut waiting = by_slot.into_iter().peekable();
        for slot in 0..count {
            let taken = waiting.next_if(|(id, _, _)| id.slot() as usize == slot);
            let connection = taken.map_or_else(Connection::placeholder, |(_, _, taken)| taken);
            connections.slots.insert(connection);
        }
        for &slot in free.iter().rev() {
            connections.slots.remove(slot as usize);
        }
        let expiries = connections.slots.iter().filter(|(_, connection)| !connection.expiry_met);
        connections.expiries = expiries
            .filter_map(|(slot, connection)| {
                let id = ConnId::from_parts(connection.number, slot_number(slot));
                Some(Reverse((connection.expires?, id)))
            })
            .collect();
        connections
    }

    /// Makes a pending connection with the next number (CC-01, CC-02).
    pub(in crate::pool) fn create(
        &mut self,
        created: Instant,
        generation: u64,
        owner: Option<WaiterId>,
    ) -> ConnId {
        self.last_number += 1;
        let number = self.last_number;
        let slot = slot_number(self.slots.insert(Connection {
            number,
            generation,
            service: None,
            created,
            expires: None,
            expiry_met: false,
            doing: Doing::Pending { owner, handshaken: false },
        }));
        self.lists.append(slot, List::Pending);
        ConnId::from_parts(number, slot)
    }

    /// Moves a connection to the end of the list that fits what it does from now on, and tells what
    /// it did before.
    #[inline(always)]
    pub(in crate::pool) fn set(&mut self, id: ConnId, doing: Doing<C>) -> Doing<C> {
        self.lists.transfer(id.slot(), doing.list());
        core::mem::replace(&mut self.known_mut(id).doing, doing)
    }

    /// Moves a connection that is in use to those that were reported.
    pub(in crate::pool) fn set_overdue(&mut self, id: ConnId) {
        assert_eq!(self.lists.list_of(id.slot()), List::InUse, "reported once");
        self.lists.transfer(id.slot(), List::Overdue);
    }

    /// Forgets a connection; its slot is free from now on (KX-03).
    pub(in crate::pool) fn remove(&mut self, id: ConnId) -> Connection<C> {
        self.lists.release(id.slot());
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
        if self.expiries.len() > self.expiries_at_most() {
            let mut expiries = core::mem::take(&mut self.expiries);
            expiries.retain(|&Reverse((_, id))| self.get(id).is_some());
            self.expiries = expiries;
        }
    }

    /// Each connection has one, and as many again may be of those that were closed.
    fn expiries_at_most(&self) -> usize {
        2 * self.slots.len() + Self::EXPIRIES_TOLERATED
    }

    /// Notes when a connection reaches the end of its lifetime.
    pub(in crate::pool) fn set_expiry(&mut self, id: ConnId, expires: Instant) {
        self.known_mut(id).expires = Some(expires);
        self.expiries.push(Reverse((expires, id)));
        // It was pending while others went, so that it has not counted among the entries yet.
        self.settle_expiries();
    }

    /// Takes the next connection that reaches the end of its lifetime, if `due`.
    pub(in crate::pool) fn pop_expired(
        &mut self,
        due: impl FnOnce(Instant) -> bool,
    ) -> Option<ConnId> {
        let &Reverse((expires, id)) = self.expiries.peek()?;
        if !due(expires) {
            return None;
        }
        self.expiries.pop();
        self.known_mut(id).expiry_met = true;
        self.settle_expiries();
        Some(id)
    }

    /// When the next connection reaches the end of its lifetime.
    pub(in crate::pool) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.peek().map(|&Reverse((expires, _))| expires)
    }

    /// Looks a connection up; `None` when this id is not, or no longer, one of the pool's.
    #[inline]
    pub(in crate::pool) fn get(&self, id: ConnId) -> Option<&Connection<C>> {
        self.slots.get(id.slot() as usize).filter(|connection| connection.number == id.number())
    }

    /// The connection of an id that is known to be the pool's.
    #[inline]
    pub(in crate::pool) fn known(&self, id: ConnId) -> &Connection<C> {
        let connection = &self.slots[id.slot() as usize];
        debug_assert_eq!(connection.number, id.number(), "a connection of this pool");
        connection
    }

    /// The same, to change it; what it does is changed by [`set`](Self::set).
    #[inline]
    pub(in crate::pool) fn known_mut(&mut self, id: ConnId) -> &mut Connection<C> {
        let connection = &mut self.slots[id.slot() as usize];
        debug_assert_eq!(connection.number, id.number(), "a connection of this pool");
        connection
    }

    /// How many connections are on a list.
    pub(in crate::pool) const fn len(&self, list: List) -> u32 {
        self.lists.len(list)
    }

    /// Pending, available and in use together (PS-20).
    #[inline]
    pub(in crate::pool) fn total(&self) -> u32 {
        self.slots.len() as u32
    }

    /// In use, whether reported or not.
    pub(in crate::pool) const fn in_use(&self) -> u32 {
        self.len(List::InUse) + self.len(List::Overdue)
    }

    /// The number of the connection that was created last; 0 before the first.
    pub(in crate::pool) const fn last_number(&self) -> u64 {
        self.last_number
    }

    /// The first of a list.
    pub(in crate::pool) fn first(&self, list: List) -> Option<ConnId> {
        self.lists.first(list).map(|slot| self.id_at(slot))
    }

    /// The last of a list.
    pub(in crate::pool) fn last(&self, list: List) -> Option<ConnId> {
        self.lists.last(list).map(|slot| self.id_at(slot))
    }

    /// The one behind `id` on its list.
    pub(in crate::pool) fn next(&self, id: ConnId) -> Option<ConnId> {
        self.lists.next(id.slot()).map(|slot| self.id_at(slot))
    }

    /// The slots without a connection, in the order in which they will be taken.
    pub(in crate::pool) fn free_slots(&self) -> impl Iterator<Item = u32> {
        self.lists.free_slots()
    }

    /// Each connection of a list, in its order.
    pub(in crate::pool) fn iter(
        &self,
        list: List,
    ) -> impl Iterator<Item = (ConnId, &Connection<C>)> {
        core::iter::successors(self.first(list), |&id| self.next(id)).map(|id| (id, self.known(id)))
    }

    #[inline]
    fn id_at(&self, slot: u32) -> ConnId {
        ConnId::from_parts(self.slots[slot as usize].number, slot)
    }

    /// Recounts what is kept as a number or a link.
    pub(in crate::pool) fn check_invariants(&self) {
        self.lists.check_invariants();
        for list in List::ALL {
            for (_, connection) in self.iter(list) {
                assert!(connection.doing.may_be_on(list), "on the list that fits");
                assert!((1..=self.last_number).contains(&connection.number), "a number given out");
            }
        }
        let on_lists = List::ALL.iter().map(|&list| self.len(list)).sum::<u32>();
        assert_eq!(on_lists, self.total(), "each connection is on a list");
        let free = self.lists.free_slots().next().unwrap_or(self.total());
        assert_eq!(
            slot_number(self.slots.vacant_key()),
            free,
            "the slab takes what the lists name"
        );
        let next = self.expiries.peek().map(|&Reverse((_, id))| id);
        assert!(next.is_none_or(|id| self.get(id).is_some()), "only who exists can expire");
        assert!(self.expiries.len() <= self.expiries_at_most(), "what is closed is forgotten");
    }

    /// So few entries of closed connections are not worth a sweep.
    const EXPIRIES_TOLERATED: usize = 32;
}

impl<C> Connection<C> {
    /// A connection that a checkpoint tells of.
    pub(in crate::pool) const fn of(checkpoint: &ConnectionCheckpoint, doing: Doing<C>) -> Self {
        let &ConnectionCheckpoint {
            id,
            generation,
            service,
            created,
            expires,
            expiry_met,
            state: _,
        } = checkpoint;
        Self { number: id.number(), generation, service, created, expires, expiry_met, doing }
    }

    /// Keeps a slot until it is freed.
    const fn placeholder() -> Self {
        Self {
            number: 0,
            generation: 0,
            service: None,
            created: Instant::ORIGIN,
            expires: None,
            expiry_met: false,
            doing: Doing::Pending { owner: None, handshaken: false },
        }
    }
}

impl<C> Doing<C> {
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
    u32::try_from(key).expect("no more connections than maxPoolSize can say")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::invariants::tests::{assert_found, busy, id, idle};

    #[test]
    fn a_connection_can_be_on_a_list_that_does_not_fit() {
        let fits = "on the list that fits";
        assert_found(busy(), |it| it.connections.lists.transfer(0, List::Pending), fits);
        assert_found(busy(), |it| it.connections.lists.transfer(2, List::Overdue), fits);
        assert_found(idle(), |it| it.connections.lists.transfer(0, List::Overdue), fits);
    }

    #[test]
    fn connections_can_be_counted_wrong() {
        let given_out = "a number given out";
        assert_found(idle(), |it| it.connections.last_number = 1, given_out);
        assert_found(idle(), |it| it.connections.slots[0].number = 0, given_out);
        let on_a_list = "each connection is on a list";
        assert_found(idle(), |it| it.connections.lists.release(1), on_a_list);
    }

    /// As a world of services that come and go had it: those that are pending count as connections
    /// while others are closed, and bring their entries later.
    #[test]
    fn entries_are_bounded_when_pending_connections_bring_theirs() {
        let mut connections = Connections::<()>::new();
        let open = |connections: &mut Connections<()>, expires| {
            let id = connections.create(Instant::ORIGIN, 0, None);
            connections.set_expiry(id, Instant::from_nanos(expires));
            id
        };
        open(&mut connections, 1);
        let mut pending = None;
        for number in 0..35 {
            if number == 33 {
                pending = Some(connections.create(Instant::ORIGIN, 0, None));
            }
            let closed = open(&mut connections, 2);
            connections.remove(closed);
            connections.check_invariants();
        }
        connections.set_expiry(pending.expect("it was made"), Instant::from_nanos(2));
        connections.check_invariants();
    }

    #[test]
    fn what_has_gone_can_be_remembered() {
        let gone = Reverse((Instant::ORIGIN, id(9)));
        let exists = "only who exists can expire";
        assert_found(idle(), |it| it.connections.expiries.push(gone), exists);

        let late = |number| Reverse((Instant::from_nanos(u64::MAX - 1), id(number)));
        // The two that exist have an entry each.
        let mut pool = idle();
        pool.connections.expiries.extend((10..10 + 2 + 32).map(late));
        let forgotten = "what is closed is forgotten";
        assert_found(pool, |it| it.connections.expiries.push(late(9)), forgotten);
    }

    #[test]
    fn ends_of_connections_that_have_gone_are_forgotten_in_time() {
        let mut connections = Connections::<()>::new();
        let id = connections.create(Instant::ORIGIN, 0, None);
        connections.set_expiry(id, Instant::from_nanos(1));
        let gone = |number| Reverse((Instant::from_nanos(2), ConnId::from_parts(number, 0)));
        connections.expiries.extend((100..200).map(gone));
        connections.settle_expiries();
        assert_eq!(connections.expiries.len(), 1);
    }
}
