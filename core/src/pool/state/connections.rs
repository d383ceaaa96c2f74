//! The connections of a pool: the state of each, and how many there are in each state.
//!
//! A connection lives in a slot of a slab and is on exactly one list, that of its state. Each list
//! is in order of time, so that the oldest is first: moving a connection costs a constant, and
//! pruning costs what is pruned. Only this module writes to a connection, which keeps its state,
//! its list and the counts in step.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use slab::Slab;

use super::lists::{List, Lists};
use super::verify::{Verdict, ensure};
use crate::pool::id::{ConnId, ServiceId, WaiterId};
use crate::pool::input::Purpose;
use crate::pool::time::Instant;

/// One connection.
// CO-12
#[derive(Clone)]
pub(in crate::pool) struct Connection<C> {
    pub(in crate::pool) number: u64,
    /// The pool's generation when it was created; in load-balanced mode its service's when hello
    /// was done.
    pub(in crate::pool) generation: u64,
    pub(in crate::pool) service: Option<ServiceId>,
    pub(in crate::pool) created: Instant,
    /// The end of its lifetime, from establishment on.
    pub(in crate::pool) expires: Option<Instant>,
    /// Whether that end came while it was not available: then it is closed instead of becoming
    /// available. A connection that retires has met its end, even before it is established.
    pub(in crate::pool) expiry_met: bool,
    pub(in crate::pool) state: ConnState<C>,
}

/// The state of a connection.
#[derive(Clone)]
pub(in crate::pool) enum ConnState<C> {
    /// Being established, for the request that started it if that still wants it.
    // CO-13
    Pending { owner: Option<WaiterId>, handshaken: bool },
    /// Waiting in the pool, and on the list `PendingResponse` if a late reply has to be read first.
    // CO-14
    Available { conn: C, since: Instant },
    /// Checked out.
    // CO-15
    InUse { since: Instant, purpose: Purpose, interrupted: bool },
    /// The shell has the payload and reads a late reply, for a request and its purpose if one waits.
    Draining { owner: Option<(WaiterId, Purpose)> },
}

/// See the module.
#[derive(Clone)]
pub(in crate::pool) struct Connections<C> {
    slots: Slab<Connection<C>>,
    lists: Lists,
    last_number: u64,
    /// When connections that have a lifetime reach its end. Entries of closed connections go when
    /// they would be next, or when they become the majority.
    expiries: BinaryHeap<Reverse<(Instant, ConnId)>>,
    /// How many connections are in use for each purpose.
    purposes: [u32; PURPOSES],
}

const PURPOSES: usize = Purpose::Transaction as usize + 1;

impl<C> Connections<C> {
    pub(in crate::pool) fn new() -> Self {
        Self {
            slots: Slab::new(),
            lists: Lists::new(),
            last_number: 0,
            expiries: BinaryHeap::new(),
            purposes: [0; PURPOSES],
        }
    }

    /// Puts connections back into their slots, in the order in which `listed` names them for each
    /// list. Their slots and `free`, the next to be used first, must together be 0, 1, 2, …
    pub(in crate::pool) fn restore(
        last_number: u64,
        listed: Vec<(u32, List, Connection<C>)>,
        free: &[u32],
    ) -> Self {
        let count = listed.len() + free.len();
        let places = listed.iter().map(|&(slot, list, _)| (slot, list));
        let mut connections = Self {
            slots: Slab::with_capacity(count),
            lists: Lists::restore(count, places, free),
            last_number,
            expiries: BinaryHeap::new(),
            purposes: [0; PURPOSES],
        };
        let mut by_slot = listed;
        by_slot.sort_unstable_by_key(|&(slot, _, _)| slot);
        let mut waiting = by_slot.into_iter().peekable();
        for slot in 0..count {
            let taken = waiting.next_if(|&(taken, _, _)| taken as usize == slot);
            let connection = taken.map_or_else(Connection::placeholder, |(_, _, taken)| taken);
            connections.count_purpose(&connection.state);
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

    /// Makes a pending connection with the next number.
    // CO-05, CC-01, CC-03
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
            state: ConnState::Pending { owner, handshaken: false },
        }));
        self.lists.append(slot, List::Pending);
        ConnId::from_parts(number, slot)
    }

    /// Hello is done. With a service, the connection belongs to it and to its generation.
    pub(in crate::pool) fn set_handshaken(
        &mut self,
        id: ConnId,
        service: Option<(ServiceId, u64)>,
    ) {
        let connection = self.known_mut(id);
        if let Some((service, generation)) = service {
            (connection.service, connection.generation) = (Some(service), generation);
        }
        if let ConnState::Pending { handshaken, .. } = &mut connection.state {
            *handshaken = true;
        }
    }

    /// Separates a pending or draining connection from the request that owns it.
    pub(in crate::pool) fn take_owner(&mut self, id: ConnId) -> Option<WaiterId> {
        match &mut self.known_mut(id).state {
            ConnState::Pending { owner, .. } => owner.take(),
            ConnState::Draining { owner } => {
                let (request, purpose) = owner.take()?;
                self.discount(purpose);
                self.lists.transfer(id.slot(), List::DrainingUnowned);
                Some(request)
            }
            ConnState::Available { .. } | ConnState::InUse { .. } => None,
        }
    }

    /// Gives a pending or draining connection to a request, in a pool that is being restored.
    pub(in crate::pool) fn restore_owner(
        &mut self,
        id: ConnId,
        request: WaiterId,
        purpose: Purpose,
    ) -> Verdict {
        const OTHER: &str = "owns a connection that has another owner";
        ensure(self.get(id).is_some(), "owns a connection that does not exist")?;
        match &mut self.known_mut(id).state {
            ConnState::Pending { owner, .. } => {
                ensure(owner.is_none(), OTHER)?;
                *owner = Some(request);
            }
            ConnState::Draining { owner } => {
                ensure(owner.is_none(), OTHER)?;
                *owner = Some((request, purpose));
                self.purposes[purpose as usize] += 1;
            }
            ConnState::Available { .. } | ConnState::InUse { .. } => {
                return Err("owns a connection that is not pending");
            }
        }
        Ok(())
    }

    /// An available connection has to receive a late reply first.
    pub(in crate::pool) fn set_pending_response(&mut self, id: ConnId) {
        assert_eq!(self.lists.list_of(id.slot()), List::Available, "it has just come back");
        self.lists.transfer(id.slot(), List::PendingResponse);
    }

    /// A connection that is pending a response is draining from now on, for no request yet, and
    /// hands out its payload.
    pub(in crate::pool) fn start_drain(&mut self, id: ConnId) -> C {
        let ConnState::Available { conn, .. } = self.set(id, ConnState::Draining { owner: None })
        else {
            unreachable!("an available connection")
        };
        conn
    }

    /// A request waits for the end of a drain from now on.
    pub(in crate::pool) fn own_drain(&mut self, id: ConnId, request: WaiterId, purpose: Purpose) {
        let was = self.set(id, ConnState::Draining { owner: Some((request, purpose)) });
        assert!(matches!(was, ConnState::Draining { owner: None }), "a drain without an owner");
        self.purposes[purpose as usize] += 1;
    }

    /// Ends the lives of all connections that are not available, at `now`.
    pub(in crate::pool) fn expire_all(&mut self, now: Instant) {
        for (_, connection) in &mut self.slots {
            (connection.expires, connection.expiry_met) = (Some(now), true);
        }
        self.expiries.clear();
    }

    /// The payload of an available connection.
    #[inline]
    pub(in crate::pool) fn available_mut(&mut self, id: ConnId) -> Option<&mut C> {
        let connection = self.slots.get_mut(id.slot() as usize)?;
        match &mut connection.state {
            ConnState::Available { conn, .. } if connection.number == id.number() => Some(conn),
            ConnState::Available { .. }
            | ConnState::Pending { .. }
            | ConnState::InUse { .. }
            | ConnState::Draining { .. } => None,
        }
    }

    /// A pending connection that is established, one in use, or one without an owner that is drained,
    /// is available from now on.
    #[inline(always)]
    pub(in crate::pool) fn make_available(&mut self, id: ConnId, conn: C, since: Instant) {
        let was = self.set(id, ConnState::Available { conn, since });
        self.discount_purpose(&was);
    }

    /// An available connection is in use from now on, and hands out its payload.
    #[inline(always)]
    pub(in crate::pool) fn check_out(&mut self, id: ConnId, since: Instant, purpose: Purpose) -> C {
        let ConnState::Available { conn, .. } = self.start_use(id, since, purpose) else {
            unreachable!("an available connection")
        };
        conn
    }

    /// A connection that was not in use is, from now on. Returns its state before.
    // OUT-15, OUT-21
    #[inline(always)]
    pub(in crate::pool) fn start_use(
        &mut self,
        id: ConnId,
        since: Instant,
        purpose: Purpose,
    ) -> ConnState<C> {
        let was = self.set(id, ConnState::InUse { since, purpose, interrupted: false });
        self.purposes[purpose as usize] += 1;
        was
    }

    /// A connection in use is used by another request from now on.
    #[inline(always)]
    pub(in crate::pool) fn reuse(&mut self, id: ConnId, since: Instant, purpose: Purpose) {
        let was = self.start_use(id, since, purpose);
        self.discount_purpose(&was);
    }

    /// A connection in use serves another purpose from now on.
    // LB-06, LB-30
    pub(in crate::pool) fn repurpose(&mut self, id: ConnId, to: Purpose) {
        if let ConnState::InUse { purpose, .. } = &mut self.known_mut(id).state {
            let from = core::mem::replace(purpose, to);
            self.purposes[from as usize] -= 1;
            self.purposes[to as usize] += 1;
        }
    }

    /// Marks a connection in use as interrupted; `false` if it was before.
    pub(in crate::pool) fn interrupt(&mut self, id: ConnId) -> bool {
        match &mut self.known_mut(id).state {
            ConnState::InUse { interrupted, .. } => !core::mem::replace(interrupted, true),
            ConnState::Pending { .. }
            | ConnState::Available { .. }
            | ConnState::Draining { .. } => false,
        }
    }

    /// Moves a connection in use to those that were reported as possible leaks.
    pub(in crate::pool) fn set_overdue(&mut self, id: ConnId) {
        assert_eq!(self.lists.list_of(id.slot()), List::InUse, "reported once");
        self.lists.transfer(id.slot(), List::Overdue);
    }

    /// Forgets a connection; its slot is free from now on.
    // CO-16, EV-16, EV-26, KX-01, KX-03, KX-04
    pub(in crate::pool) fn remove(&mut self, id: ConnId) -> Connection<C> {
        self.lists.release(id.slot());
        let removed = self.slots.remove(id.slot() as usize);
        assert_eq!(removed.number, id.number(), "a connection of this pool");
        self.discount_purpose(&removed.state);
        self.sweep_expiries();
        removed
    }

    /// Sets when a connection reaches the end of its lifetime.
    pub(in crate::pool) fn set_expiry(&mut self, id: ConnId, expires: Instant) {
        self.known_mut(id).expires = Some(expires);
        self.expiries.push(Reverse((expires, id)));
        // While it was pending it had no entry, and others may have been closed.
        self.sweep_expiries();
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
        self.sweep_expiries();
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

    /// How many connections are on a list.
    // PS-19, AV-02
    pub(in crate::pool) const fn len(&self, list: List) -> u32 {
        self.lists.len(list)
    }

    /// Pending, available and in use together.
    // PS-20
    #[inline]
    pub(in crate::pool) fn total(&self) -> u32 {
        self.slots.len() as u32
    }

    /// In use, whether reported or not, or draining for a request.
    // LB-38
    pub(in crate::pool) const fn in_use(&self) -> u32 {
        self.len(List::InUse) + self.len(List::Overdue) + self.len(List::Draining)
    }

    /// Available, with or without a late reply to read first.
    pub(in crate::pool) const fn available(&self) -> u32 {
        self.len(List::Available) + self.pending_response()
    }

    /// Of those that are available, how many have to receive a late reply first.
    pub(in crate::pool) const fn pending_response(&self) -> u32 {
        self.len(List::PendingResponse) + self.len(List::DrainingUnowned)
    }

    /// The list that a connection is on.
    pub(in crate::pool) fn list_of(&self, id: ConnId) -> List {
        self.lists.list_of(id.slot())
    }

    /// How many are in use for a purpose.
    pub(in crate::pool) const fn in_use_for(&self, purpose: Purpose) -> u32 {
        self.purposes[purpose as usize]
    }

    /// The number of the connection that was created last; 0 before the first.
    pub(in crate::pool) const fn last_number(&self) -> u64 {
        self.last_number
    }

    /// The first of a list.
    pub(in crate::pool) fn first(&self, list: List) -> Option<ConnId> {
        self.lists.first(list).map(|slot| self.id_at(slot))
    }

    /// Since when the first of a list has been in its state.
    pub(in crate::pool) fn oldest_since(&self, list: List) -> Option<Instant> {
        self.lists.first(list).map(|slot| self.slots[slot as usize].since())
    }

    /// The last of a list.
    #[inline(always)]
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

    /// Recounts what is kept as a number or a link.
    pub(in crate::pool) fn verify(&self) -> Verdict {
        self.lists.verify()?;
        let mut purposes = [0; PURPOSES];
        for list in List::ALL {
            for (_, connection) in self.iter(list) {
                let state = &connection.state;
                ensure(state.may_be_on(list), "a connection is on the list of its state")?;
                if let Some(purpose) = state.purpose() {
                    purposes[purpose as usize] += 1;
                }
            }
        }
        let on_lists = List::ALL.iter().map(|&list| self.len(list)).sum::<u32>();
        ensure(on_lists == self.total(), "each connection is on a list")?;
        ensure(purposes == self.purposes, "each use is counted for one purpose")?;
        let free = self.lists.free_slots().next().unwrap_or(self.total());
        let vacant = slot_number(self.slots.vacant_key());
        ensure(vacant == free, "the slab takes the slot that the lists name")
    }

    /// The same for the ends of lifetimes, once connections are known to have right numbers.
    pub(in crate::pool) fn verify_expiries(&self) -> Verdict {
        let next = self.expiries.peek().map(|&Reverse((_, id))| id);
        let exists = next.is_none_or(|id| self.get(id).is_some());
        ensure(exists, "the next expiry is that of a connection")?;
        let is_bounded = self.expiries.len() <= self.expiries_at_most();
        ensure(is_bounded, "expiries of closed connections are bounded")
    }

    /// Moves a connection to the end of the list of its new state; returns the state before.
    #[inline(always)]
    fn set(&mut self, id: ConnId, state: ConnState<C>) -> ConnState<C> {
        self.lists.transfer(id.slot(), state.list());
        core::mem::replace(&mut self.known_mut(id).state, state)
    }

    #[inline]
    fn known_mut(&mut self, id: ConnId) -> &mut Connection<C> {
        let connection = &mut self.slots[id.slot() as usize];
        debug_assert_eq!(connection.number, id.number(), "a connection of this pool");
        connection
    }

    fn count_purpose(&mut self, state: &ConnState<C>) {
        if let Some(purpose) = state.purpose() {
            self.purposes[purpose as usize] += 1;
        }
    }

    // LB-06
    #[inline(always)]
    fn discount_purpose(&mut self, was: &ConnState<C>) {
        if let ConnState::InUse { purpose, .. } = was {
            self.discount(*purpose);
        }
    }

    #[inline(always)]
    fn discount(&mut self, purpose: Purpose) {
        let count = &mut self.purposes[purpose as usize];
        *count = count.checked_sub(1).expect("counted when the use began");
    }

    /// Makes the earliest expiry one of a connection that exists: a closed one is no reason to be
    /// woken.
    fn sweep_expiries(&mut self) {
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

    #[inline]
    fn id_at(&self, slot: u32) -> ConnId {
        ConnId::from_parts(self.slots[slot as usize].number, slot)
    }

    /// Fewer entries of closed connections are not worth a sweep.
    const EXPIRIES_TOLERATED: usize = 32;
}

impl<C> Connection<C> {
    /// Whether it has reached the end of its lifetime.
    #[inline]
    pub(in crate::pool) fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }

    /// Since when it has been in its state; of a draining one, since when it exists.
    pub(in crate::pool) const fn since(&self) -> Instant {
        match self.state {
            ConnState::Pending { .. } | ConnState::Draining { .. } => self.created,
            ConnState::Available { since, .. } | ConnState::InUse { since, .. } => since,
        }
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
            state: ConnState::Pending { owner: None, handshaken: false },
        }
    }
}

impl<C> ConnState<C> {
    const fn list(&self) -> List {
        match self {
            Self::Pending { .. } => List::Pending,
            Self::Available { .. } => List::Available,
            Self::InUse { .. } => List::InUse,
            Self::Draining { owner: Some(_) } => List::Draining,
            Self::Draining { owner: None } => List::DrainingUnowned,
        }
    }

    fn may_be_on(&self, list: List) -> bool {
        match list {
            List::Overdue => self.list() == List::InUse,
            List::PendingResponse => self.list() == List::Available,
            List::Pending
            | List::Available
            | List::InUse
            | List::Draining
            | List::DrainingUnowned => self.list() == list,
        }
    }

    /// What it is used for, by its user or by the request that waits for the end of a drain.
    const fn purpose(&self) -> Option<Purpose> {
        match *self {
            Self::InUse { purpose, .. } | Self::Draining { owner: Some((_, purpose)) } => {
                Some(purpose)
            }
            Self::Pending { .. } | Self::Available { .. } | Self::Draining { owner: None } => None,
        }
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
        let fits = "a connection is on the list of its state";
        assert_found(busy(), |it| it.connections.lists.transfer(0, List::Pending), fits);
        assert_found(busy(), |it| it.connections.lists.transfer(2, List::Overdue), fits);
        assert_found(idle(), |it| it.connections.lists.transfer(0, List::Overdue), fits);
    }

    #[test]
    fn uses_can_be_counted_wrong() {
        let for_one = "each use is counted for one purpose";
        let cursor = Purpose::Cursor as usize;
        assert_found(busy(), |it| it.connections.purposes[cursor] = 1, for_one);
        assert_found(busy(), |it| it.connections.purposes[Purpose::Other as usize] = 1, for_one);
    }

    #[test]
    fn connections_can_be_counted_wrong() {
        let given_out = "has a number that was not given out";
        assert_found(idle(), |it| it.connections.last_number = 1, given_out);
        assert_found(idle(), |it| it.connections.slots[0].number = 0, given_out);
        let on_a_list = "each connection is on a list";
        assert_found(idle(), |it| it.connections.lists.release(1), on_a_list);
    }

    fn verify(connections: &Connections<()>) {
        assert_eq!(connections.verify().and(connections.verify_expiries()), Ok(()));
    }

    /// Pending connections count while others are closed, and add their expiries later.
    #[test]
    fn expiries_are_bounded_when_pending_connections_add_theirs() {
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
            verify(&connections);
        }
        connections.set_expiry(pending.expect("it was made"), Instant::from_nanos(2));
        verify(&connections);
    }

    #[test]
    fn too_many_expiries_can_be_kept() {
        let gone = Reverse((Instant::ORIGIN, id(9)));
        let exists = "the next expiry is that of a connection";
        assert_found(idle(), |it| it.connections.expiries.push(gone), exists);

        let late = |number| Reverse((Instant::from_nanos(u64::MAX - 1), id(number)));
        // The two that exist have an entry each.
        let mut pool = idle();
        pool.connections.expiries.extend((10..10 + 2 + 32).map(late));
        let forgotten = "expiries of closed connections are bounded";
        assert_found(pool, |it| it.connections.expiries.push(late(9)), forgotten);
    }

    #[test]
    fn expiries_of_closed_connections_are_swept() {
        let mut connections = Connections::<()>::new();
        let id = connections.create(Instant::ORIGIN, 0, None);
        connections.set_expiry(id, Instant::from_nanos(1));
        let gone = |number| Reverse((Instant::from_nanos(2), ConnId::from_parts(number, 0)));
        connections.expiries.extend((100..200).map(gone));
        connections.sweep_expiries();
        assert_eq!(connections.expiries.len(), 1);
    }
}
