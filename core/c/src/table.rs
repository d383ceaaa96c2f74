//! Handles: numbers in the shape of pointers.
//!
//! C holds a pool, a client or a cause as a pointer that is never followed. It is a number that is looked up here,
//! and tells a slot, how often that slot was used before, and the kind. So a handle that was freed, is
//! of another kind, or was never one is an error and nothing worse. No lock is waited for: not by two
//! threads at once, and not in the child of a fork.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, RwLock, RwLockWriteGuard, TryLockError};

use crate::status::{Failure, Status};

pub(crate) struct Table<T> {
    /// Each page is twice as large as the one before.
    pages: [OnceLock<Box<[Slot<T>]>>; PAGES],
    /// How many slots have ever been used.
    used: AtomicU32,
    free: Mutex<Vec<u32>>,
    /// In the lowest bits of handles.
    kind: usize,
    name: &'static str,
}

struct Slot<T> {
    /// The use of the slot, and in the lower half its references.
    state: AtomicU64,
    value: RwLock<Option<T>>,
}

const PAGES: usize = 18;
const FIRST_PAGE: u32 = 64;
const KIND_BITS: u32 = 2;
const INDEX_BITS: u32 = 24;
const SLOTS: u32 = FIRST_PAGE * ((1 << PAGES) - 1);
const USE_BITS: u32 = {
    let left = usize::BITS - KIND_BITS - INDEX_BITS;
    if left < 32 { left } else { 32 }
};

impl<T> Table<T> {
    pub(crate) const fn new(kind: usize, name: &'static str) -> Self {
        const { assert!(SLOTS <= 1 << INDEX_BITS) };
        Self {
            pages: [const { OnceLock::new() }; PAGES],
            used: AtomicU32::new(0),
            free: Mutex::new(Vec::new()),
            kind,
            name,
        }
    }

    /// Keeps a value, with one reference.
    pub(crate) fn insert(&self, value: T) -> Result<usize, Failure> {
        loop {
            let freed = self.free.try_lock().ok().and_then(|mut free| free.pop());
            let next = |used| (used < SLOTS).then_some(used + 1);
            let fresh = || self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
            let full = || Failure::new(Status::Full, format!("there are too many {}s", self.name));
            let index = freed.or_else(fresh).ok_or_else(full)?;
            let (page, place) = place_of(index);
            let empty = || Slot { state: AtomicU64::new(1 << 32), value: RwLock::new(None) };
            let slots =
                self.pages[page].get_or_init(|| (0..FIRST_PAGE << page).map(|_| empty()).collect());
            let slot = &slots[place];
            // A thread with an old handle can be about to find that out; then take another slot.
            let Ok(mut empty) = slot.value.try_write() else { continue };
            *empty = Some(value);
            let state = slot.state.fetch_add(1, Ordering::AcqRel);
            return Ok((use_of(state) << (KIND_BITS + INDEX_BITS))
                | ((index as usize) << KIND_BITS)
                | self.kind);
        }
    }

    /// Looks at a value.
    pub(crate) fn with<R>(
        &self,
        handle: usize,
        look: impl FnOnce(&T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let slot = self.slot(handle)?;
        let value = slot.value.try_read().map_err(|_| self.busy())?;
        // It can have been freed meanwhile.
        self.slot(handle)?;
        look(value.as_ref().ok_or_else(|| self.no_such(handle))?)
    }

    /// Adds a reference.
    pub(crate) fn retain(&self, handle: usize) -> Result<(), Failure> {
        let slot = self.slot(handle)?;
        let more = |state: u64| {
            let is_in_use = (1..u32::MAX).contains(&references(state));
            (is_in_use && use_of(state) == use_of_handle(handle)).then_some(state + 1)
        };
        let updated = slot.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        updated.map(drop).map_err(|_| self.no_such(handle))
    }

    /// Gives a reference back. The value of the last one is returned, to be dropped by the caller.
    pub(crate) fn release(&self, handle: usize) -> Result<Option<T>, Failure> {
        loop {
            let slot = self.slot(handle)?;
            let state = slot.state.load(Ordering::Acquire);
            if references(state) > 1 && use_of(state) == use_of_handle(handle) {
                let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
                if slot.state.compare_exchange(state, state - 1, ok, failed).is_ok() {
                    return Ok(None);
                }
                continue;
            }
            let value = slot.value.try_write().map_err(|_| self.busy())?;
            if let Some(value) = self.end(slot, handle, value) {
                return Ok(Some(value));
            }
        }
    }

    /// Ends this use of a slot, unless its references have changed.
    fn end(
        &self,
        slot: &Slot<T>,
        handle: usize,
        mut value: RwLockWriteGuard<'_, Option<T>>,
    ) -> Option<T> {
        let last = (use_of_handle(handle) as u64) << 32 | 1;
        // A use of 0 would make handles that are null.
        let next = match (use_of_handle(handle) + 1) & use_mask() {
            0 => 1_u64 << 32,
            next => (next as u64) << 32,
        };
        let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
        slot.state.compare_exchange(last, next, ok, failed).ok()?;
        let value = value.take();
        // If another thread holds the list, this slot is not used again.
        if let Ok(mut free) = self.free.try_lock() {
            free.push(index_of(handle) as u32);
        }
        value
    }

    fn slot(&self, handle: usize) -> Result<&Slot<T>, Failure> {
        let found = || {
            let index = u32::try_from(index_of(handle)).ok().filter(|index| *index < SLOTS)?;
            let (page, place) = place_of(index);
            let slot = self.pages[page].get()?.get(place)?;
            let state = slot.state.load(Ordering::Acquire);
            let is_it = use_of(state) == use_of_handle(handle) && references(state) > 0;
            (is_it && handle & KIND_MASK == self.kind).then_some(slot)
        };
        found().ok_or_else(|| self.no_such(handle))
    }

    fn no_such(&self, handle: usize) -> Failure {
        let name = self.name;
        let why = match handle {
            0 => "it is null".to_owned(),
            _ => format!("{handle:#x} was freed or never was one"),
        };
        Failure::new(Status::BadHandle, format!("no {name}: {why}"))
    }

    fn busy(&self) -> Failure {
        let text = format!(
            "another thread is in a call with this {}: take a lock around each call",
            self.name
        );
        Failure::new(Status::Busy, text)
    }
}

impl<T> Table<Mutex<T>> {
    /// Runs a call with a value, unless another thread is in one.
    pub(crate) fn with_locked<R>(
        &self,
        handle: usize,
        body: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.with(handle, |value| match value.try_lock() {
            Ok(mut value) => body(&mut value),
            Err(TryLockError::WouldBlock) => Err(self.busy()),
            Err(TryLockError::Poisoned(_)) => {
                let text = format!(
                    "this {} met a bug of libcenote before, and can only be freed",
                    self.name
                );
                Err(Failure::new(Status::Panicked, text))
            }
        })
    }
}

const KIND_MASK: usize = (1 << KIND_BITS) - 1;

const fn use_mask() -> usize {
    usize::MAX >> (usize::BITS - USE_BITS)
}

const fn index_of(handle: usize) -> usize {
    handle >> KIND_BITS & ((1 << INDEX_BITS) - 1)
}

const fn use_of_handle(handle: usize) -> usize {
    handle >> (KIND_BITS + INDEX_BITS)
}

const fn use_of(state: u64) -> usize {
    (state >> 32) as usize
}

const fn references(state: u64) -> u32 {
    state as u32
}

/// The page of a slot, and its place there.
const fn place_of(index: u32) -> (usize, usize) {
    let number = index as u64 + FIRST_PAGE as u64;
    let page = (number / FIRST_PAGE as u64).ilog2();
    (page as usize, (number - ((FIRST_PAGE as u64) << page)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: usize = 1;

    fn table() -> Table<u32> {
        Table::new(KIND, "number")
    }

    fn status<T>(result: Result<T, Failure>) -> Status {
        crate::status::call(|| result.map(drop))
    }

    #[test]
    fn a_handle_is_good_until_its_last_reference_is_released() {
        let table = table();
        let handle = table.insert(7).unwrap();
        assert_eq!(table.with(handle, |value| Ok(*value)).unwrap(), 7);
        table.retain(handle).unwrap();
        assert_eq!(table.release(handle).unwrap(), None);
        assert_eq!(table.release(handle).unwrap(), Some(7));
        for wrong in [handle, 0, 1, 2, handle ^ 2, usize::MAX, usize::MAX - 2] {
            assert_eq!(status(table.release(wrong)), Status::BadHandle, "{wrong:#x}");
            assert_eq!(status(table.retain(wrong)), Status::BadHandle, "{wrong:#x}");
            assert_eq!(status(table.with(wrong, |_| Ok(()))), Status::BadHandle, "{wrong:#x}");
        }
        let next = table.insert(8).unwrap();
        assert_ne!(next, handle, "the slot is used again, the handle is not");
        assert_eq!(status(table.with(handle, |_| Ok(()))), Status::BadHandle);
    }

    #[test]
    fn what_is_looked_at_is_not_freed() {
        let table = table();
        let handle = table.insert(7).unwrap();
        let inside = table.with(handle, |_| Ok(status(table.release(handle)))).unwrap();
        assert_eq!(inside, Status::Busy);
        assert_eq!(table.release(handle).unwrap(), Some(7));
    }

    #[test]
    fn there_is_a_place_for_every_index() {
        let mut places: Vec<_> = (0..1000).map(place_of).collect();
        assert_eq!(places[0], (0, 0));
        assert_eq!(
            [places[63], places[64], places[191], places[192]],
            [(0, 63), (1, 0), (1, 127), (2, 0)]
        );
        places.dedup();
        assert_eq!(places.len(), 1000);
        assert_eq!(
            place_of(SLOTS - 1),
            (PAGES - 1, (FIRST_PAGE as usize) * (1 << (PAGES - 1)) - 1)
        );
    }

    #[test]
    fn threads_retain_and_release() {
        let table = table();
        let handle = table.insert(7).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..1000 {
                        table.retain(handle).unwrap();
                        let own = table.insert(round).unwrap();
                        assert_eq!(table.release(own).unwrap(), Some(round));
                        assert_eq!(table.release(handle).unwrap(), None);
                    }
                });
            }
        });
        assert_eq!(table.release(handle).unwrap(), Some(7));
    }
}
