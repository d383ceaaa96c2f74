use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

use super::{EventLoop, Inner, Work, wake_all};
use cenote_shell::runtime::contain;

/// The loop's tasks by number.
#[derive(Default)]
pub(super) struct Tasks(BTreeMap<u64, SpawnedTask>);

struct SpawnedTask {
    work: Work,
    waker: Waker,
}

/// Has the loop poll one task in its next turn.
struct TaskWaker {
    event_loop: Weak<Inner>,
    task: u64,
}

impl EventLoop {
    /// Runs `work` to its end, unless it is [stopped](Self::stop). Returns its number. A loop that has
    /// ended drops it.
    pub(super) fn start(&self, work: impl Future<Output = ()> + Send + 'static) -> u64 {
        let mut state = self.inner.state();
        state.last_task += 1;
        let number = state.last_task;
        if state.has_ended() {
            // Without the lock: work that is dropped may use the loop.
            drop(state);
            drop(work);
        } else {
            state.spawned.push((number, Box::pin(work)));
            self.inner.wake(state);
        }
        number
    }

    /// Drops a task in the next turn, if it has not ended.
    pub(super) fn stop(&self, number: u64) {
        let mut state = self.inner.state();
        if !state.has_ended() {
            state.stopped.push(number);
            self.inner.wake(state);
        }
    }

    /// Polls every task that was spawned or woken, once, after those that were stopped are gone: their sockets are closed
    /// before new ones are opened in their place. Tasks that are woken meanwhile are left to the next turn.
    pub(crate) fn turn(&self) {
        self.fire_timers(Instant::now());
        let (spawned, stopped, mut woken) = {
            let mut state = self.inner.state();
            state.is_awake = true;
            let state = &mut *state;
            (
                std::mem::take(&mut state.spawned),
                std::mem::take(&mut state.stopped),
                std::mem::take(&mut state.woken),
            )
        };
        let mut tasks = self.inner.tasks();
        woken.sort_unstable();
        woken.dedup();
        let new: Vec<_> = spawned.iter().map(|(number, _)| *number).collect();
        for (number, work) in spawned {
            tasks.add(number, work, &self.inner);
        }
        // A task may be spawned and stopped between two turns.
        for number in stopped {
            tasks.remove(number);
        }
        for number in woken.into_iter().chain(new) {
            tasks.poll(number);
        }
    }

    fn fire_timers(&self, now: Instant) {
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
        wake_all(due);
    }
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, task: u64, work: Work, event_loop: &Arc<Inner>) {
        let event_loop = Arc::downgrade(event_loop);
        let waker = Waker::from(Arc::new(TaskWaker { event_loop, task }));
        self.0.insert(task, SpawnedTask { work, waker });
    }

    /// A task may be woken after its end.
    fn poll(&mut self, number: u64) {
        let Some(SpawnedTask { work, waker }) = self.0.get_mut(&number) else { return };
        let mut context = Context::from_waker(waker);
        // One that panics has ended.
        if contain(|| work.as_mut().poll(&mut context)).is_none_or(|poll| poll.is_ready()) {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        let task = self.0.remove(&number);
        contain(|| drop(task));
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(event_loop) = self.event_loop.upgrade() else { return };
        let mut state = event_loop.state();
        if !state.has_ended() {
            state.woken.push(self.task);
            event_loop.wake(state);
        }
    }
}
