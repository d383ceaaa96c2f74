use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

use slab::Slab;

use super::{EventLoop, Inner, Name, Work};

/// Everything that goes on.
#[derive(Default)]
pub(super) struct Tasks {
    slots: Slab<Task>,
    by_name: BTreeMap<Name, usize>,
}

struct Task {
    name: Name,
    work: Work,
    waker: Waker,
}

/// Has one task be looked at in the next turn.
struct TaskWaker {
    event_loop: Weak<Inner>,
    slot: usize,
}

impl EventLoop {
    /// Goes on with everything that can go on, as far as it can without waiting. What becomes
    /// possible meanwhile is left for the next turn.
    pub(crate) fn turn(&self) {
        self.ring(Instant::now());
        let (started, stopped, called, mut woken) = {
            let mut state = self.inner.state();
            state.is_awake = true;
            let state = &mut *state;
            (
                std::mem::take(&mut state.started),
                std::mem::take(&mut state.stopped),
                std::mem::take(&mut state.called),
                std::mem::take(&mut state.woken),
            )
        };
        let mut tasks = self.inner.tasks();
        // One that is started in this turn looks at everything anyway.
        woken.extend(called.iter().filter_map(|name| tasks.by_name.get(name)));
        woken.sort_unstable();
        woken.dedup();
        for slot in woken {
            tasks.advance(slot);
        }
        for (name, work) in started {
            let slot = tasks.add(name, work, &self.inner);
            tasks.advance(slot);
        }
        // Whatever is stopped has been started before.
        for name in stopped {
            tasks.remove(name);
        }
    }

    /// Wakes those whose time has come.
    fn ring(&self, now: Instant) {
        let mut due = Vec::new();
        {
            let mut state = self.inner.state();
            while let Some(timer) = state.timers.first_entry() {
                if timer.key().0 > now {
                    break;
                }
                due.push(timer.remove());
            }
        }
        due.into_iter().for_each(Waker::wake);
    }
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn add(&mut self, name: Name, work: Work, event_loop: &Arc<Inner>) -> usize {
        let entry = self.slots.vacant_entry();
        let slot = entry.key();
        let waker =
            Waker::from(Arc::new(TaskWaker { event_loop: Arc::downgrade(event_loop), slot }));
        entry.insert(Task { name, work, waker });
        self.by_name.insert(name, slot);
        slot
    }

    /// A task may be woken when it is over and another one has its slot: that does no harm.
    fn advance(&mut self, slot: usize) {
        let Some(Task { name, work, waker }) = self.slots.get_mut(slot) else { return };
        let mut context = Context::from_waker(waker);
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut context)));
        // Whoever panics has said so, and is over.
        if polled.map_or(true, |poll| poll.is_ready()) {
            let name = *name;
            self.remove(name);
        }
    }

    fn remove(&mut self, name: Name) {
        if let Some(slot) = self.by_name.remove(&name) {
            let task = self.slots.remove(slot);
            // One that panics again has said so, too.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let Some(event_loop) = self.event_loop.upgrade() else { return };
        let mut state = event_loop.state();
        if !state.is_over {
            state.woken.push(self.slot);
            event_loop.rouse(state);
        }
    }
}
