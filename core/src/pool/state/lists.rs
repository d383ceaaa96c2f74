//! Lists of slots: one for each state of a connection, each in order of time.
//!
//! The lists are circular and doubly linked, and run through one table, each closed by an anchor:
//! moving a slot from one list to the end of another is a handful of assignments without a branch.
//! Free slots are chained through the same table, the one that was freed last first. The slab
//! reuses them in this order, so it is part of a checkpoint.

use alloc::vec::Vec;

use super::verify::{Verdict, ensure};

/// The lists; each connection is on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pool) enum List {
    /// In the order of creation.
    Pending,
    /// In the order in which they became available.
    Available,
    /// In the order of check-out.
    InUse,
    /// In use, and reported as a possible leak.
    Overdue,
    /// Available once a late reply has been read, in the order in which they were checked in.
    PendingResponse,
    /// A late reply is being read, and a request waits for that; in the order in which requests took
    /// them.
    Draining,
    /// A late reply is being read, and no request waits for that; in the order in which that began.
    DrainingUnowned,
}

impl List {
    pub(in crate::pool) const ALL: [Self; 7] = [
        Self::Pending,
        Self::Available,
        Self::InUse,
        Self::Overdue,
        Self::PendingResponse,
        Self::Draining,
        Self::DrainingUnowned,
    ];

    /// Where its anchor lies in the table.
    const fn anchor(self) -> u32 {
        self as u32
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    /// Only for slots: the list that it is on.
    list: List,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    /// First the anchors, then the slots.
    table: Vec<Link>,
    lens: [u32; List::ALL.len()],
    /// Where in the table the slot that was freed last lies; `NONE` if every slot is taken.
    free: u32,
}

/// No place in the table.
const NONE: u32 = u32::MAX;

const ANCHORS: u32 = List::ALL.len() as u32;

impl Lists {
    pub(super) fn new() -> Self {
        let alone = |list: List| Link { previous: list.anchor(), next: list.anchor(), list };
        Self { table: List::ALL.map(alone).to_vec(), lens: [0; List::ALL.len()], free: NONE }
    }

    /// Lists with `slots` slots, of which those of `free`, the next to be used first, are on none,
    /// and the others are on the lists on which `listed` puts them, in this order. Each slot must
    /// be in one of the two, once.
    pub(super) fn restore(
        slots: usize,
        listed: impl Iterator<Item = (u32, List)>,
        free: &[u32],
    ) -> Self {
        let mut lists = Self::new();
        let blank = Link { previous: NONE, next: NONE, list: List::Pending };
        lists.table.resize(slots + ANCHORS as usize, blank);
        listed.for_each(|(slot, list)| lists.link(slot + ANCHORS, list));
        free.iter().rev().for_each(|&slot| lists.push_free(slot));
        lists
    }

    /// Puts a slot that is on no list at the end of one.
    pub(super) fn append(&mut self, slot: u32, list: List) {
        let at = slot + ANCHORS;
        if at as usize >= self.table.len() {
            assert_eq!(at as usize, self.table.len(), "slots are taken into use one by one");
            self.table.push(Link { previous: at, next: at, list });
        } else {
            assert_eq!(at, self.free, "the slot that was freed last is taken first");
            self.free = self.table[at as usize].next;
        }
        self.link(at, list);
    }

    /// Takes a slot from its list; it is free from now on.
    pub(super) fn release(&mut self, slot: u32) {
        self.detach(slot);
        self.push_free(slot);
    }

    fn push_free(&mut self, slot: u32) {
        let at = slot + ANCHORS;
        self.table[at as usize].next = core::mem::replace(&mut self.free, at);
    }

    /// The slots that are on no list, in the order in which they will be taken.
    pub(super) fn free_slots(&self) -> impl Iterator<Item = u32> {
        let place = |at: u32| (at != NONE).then_some(at);
        core::iter::successors(place(self.free), move |&at| place(self.table[at as usize].next))
            .map(|at| at - ANCHORS)
    }

    /// Takes a slot from its list and puts it at the end of another.
    #[inline(always)]
    pub(super) fn transfer(&mut self, slot: u32, list: List) {
        self.detach(slot);
        self.link(slot + ANCHORS, list);
    }

    /// Takes a slot from its list.
    #[inline(always)]
    fn detach(&mut self, slot: u32) {
        let Link { previous, next, list } = self.table[(slot + ANCHORS) as usize];
        self.table[previous as usize].next = next;
        self.table[next as usize].previous = previous;
        self.lens[list as usize] -= 1;
    }

    #[inline(always)]
    fn link(&mut self, at: u32, list: List) {
        let last = core::mem::replace(&mut self.table[list as usize].previous, at);
        self.table[last as usize].next = at;
        self.table[at as usize] = Link { previous: last, next: list.anchor(), list };
        self.lens[list as usize] += 1;
    }

    /// How many slots are on a list.
    #[inline]
    pub(super) const fn len(&self, list: List) -> u32 {
        self.lens[list as usize]
    }

    /// The first slot of a list.
    #[inline]
    pub(super) fn first(&self, list: List) -> Option<u32> {
        self.table[list as usize].next.checked_sub(ANCHORS)
    }

    /// The last slot of a list.
    #[inline]
    pub(super) fn last(&self, list: List) -> Option<u32> {
        self.table[list as usize].previous.checked_sub(ANCHORS)
    }

    /// The slot behind this one on its list.
    #[inline]
    pub(super) fn next(&self, slot: u32) -> Option<u32> {
        self.table[(slot + ANCHORS) as usize].next.checked_sub(ANCHORS)
    }

    /// The list that a slot is on.
    pub(super) fn list_of(&self, slot: u32) -> List {
        self.table[(slot + ANCHORS) as usize].list
    }

    /// Walks every list and recounts it.
    pub(super) fn verify(&self) -> Verdict {
        for list in List::ALL {
            let (mut count, mut previous) = (0, list.anchor());
            for slot in core::iter::successors(self.first(list), |&slot| self.next(slot)) {
                ensure(self.list_of(slot) == list, "a slot names the list that it is on")?;
                let link = self.table[(slot + ANCHORS) as usize];
                ensure(link.previous == previous, "links lead back as they lead forward")?;
                previous = slot + ANCHORS;
                count += 1;
            }
            ensure(count == self.len(list), "lists are counted")?;
            let last = (count != 0).then(|| previous - ANCHORS);
            ensure(last == self.last(list), "a list ends with its last slot")?;
        }
        let taken = self.lens.iter().sum::<u32>() as usize;
        let slots = self.table.len() - ANCHORS as usize;
        ensure(self.free_slots().count() == slots - taken, "a slot on no list is free")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> Lists {
        let taken = [(0, List::InUse), (2, List::InUse), (4, List::Pending)];
        let lists = Lists::restore(5, taken.into_iter(), &[3, 1]);
        assert_eq!(lists.verify(), Ok(()));
        lists
    }

    #[test]
    fn a_list_can_be_counted_wrong() {
        let mut lists = lists();
        lists.lens[List::InUse as usize] = 1;
        assert_eq!(lists.verify(), Err("lists are counted"));
    }

    #[test]
    fn a_list_can_have_another_end() {
        let mut lists = lists();
        lists.table[List::InUse as usize].previous = ANCHORS;
        assert_eq!(lists.verify(), Err("a list ends with its last slot"));
    }

    #[test]
    fn a_slot_can_name_another_list() {
        let mut lists = lists();
        lists.table[ANCHORS as usize].list = List::Pending;
        assert_eq!(lists.verify(), Err("a slot names the list that it is on"));
    }

    #[test]
    fn a_slot_can_forget_the_one_before() {
        let mut lists = lists();
        lists.table[2 + ANCHORS as usize].previous = 4 + ANCHORS;
        assert_eq!(lists.verify(), Err("links lead back as they lead forward"));
    }

    #[test]
    fn a_free_slot_can_be_lost() {
        let mut lists = lists();
        lists.free = 1 + ANCHORS;
        assert_eq!(lists.verify(), Err("a slot on no list is free"));
    }

    #[test]
    fn free_slots_come_in_the_order_in_which_they_are_taken() {
        let mut lists = lists();
        assert_eq!(lists.free_slots().collect::<Vec<_>>(), [3, 1]);
        lists.release(2);
        assert_eq!(lists.free_slots().collect::<Vec<_>>(), [2, 3, 1]);
        lists.append(2, List::Available);
        assert_eq!(lists.free_slots().collect::<Vec<_>>(), [3, 1]);
        assert_eq!(lists.verify(), Ok(()));
    }
}
