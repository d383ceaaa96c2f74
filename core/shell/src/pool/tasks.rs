//! Tasks that open connections or read late replies, and the sockets that end with them.

use std::future::Future;
use std::sync::Arc;

use cenote_core::pool::ConnId;

use super::driver::{InnerGuard, PoolDriver};
use super::inner::{ConnectionTask, TaskKey};
use crate::connection::Connector;
use crate::connection::interrupt::Interrupt;
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    pub(super) fn socket_closed(&self, id: ConnId) {
        let mut inner = self.lock();
        let interrupt = inner.interrupts.remove(&id);
        // A reset after a fork forgets sockets that were to be closed.
        inner.pending.closing = inner.pending.closing.saturating_sub(1);
        self.notify_if_empty(inner);
        drop(interrupt);
    }

    /// A socket was closed by the task that had it.
    pub(super) fn socket_ended(&self, id: ConnId) {
        let mut inner = self.lock();
        let interrupt = inner.interrupts.remove(&id);
        self.notify_if_empty(inner);
        drop(interrupt);
    }

    /// Releases the lock, and wakes callers of `close` if there is nothing left to wait for, or nothing but
    /// subscribers and tasks.
    pub(super) fn notify_if_empty(&self, inner: InnerGuard<'_, R, K>) {
        let is_empty = inner.is_empty();
        drop(inner);
        if is_empty {
            self.drained.notify_all();
        }
    }

    /// Adds a task that opens a connection or reads its late reply. It has to [end](Self::task_ended). Says whether one
    /// that was aborted has not ended yet.
    pub(super) fn add_task(&self, id: ConnId) -> (TaskKey, bool) {
        let mut inner = self.lock();
        inner.last_task += 1;
        let key = TaskKey { id, number: inner.last_task };
        let is_one_aborted = inner.has_aborted_before(key);
        inner.tasks.insert(key, ConnectionTask { task: None, is_aborted: false, is_open: true });
        (key, is_one_aborted)
    }

    /// Until those that were aborted before this one was added have ended, and their sockets are closed.
    pub(super) async fn earlier_sockets_closed(&self, key: TaskKey) {
        self.wait_until(|driver| !driver.lock().has_aborted_before(key)).await;
    }

    /// Spawns a task that was [added](Self::add_task).
    pub(super) fn spawn_task(&self, key: TaskKey, work: impl Future<Output = ()> + Send + 'static) {
        // The task may end before its handle is known. It is not spawned under the lock, because a runtime that
        // has shut down drops it at once.
        let task = self.runtime().spawn(work);
        let unused = match self.lock().tasks.get_mut(&key) {
            Some(entry) if entry.is_aborted => Some(task),
            Some(entry) => {
                entry.task = Some(task);
                None
            }
            None => return drop(task),
        };
        unused.into_iter().for_each(R::abort);
    }

    /// Ends the last task of a connection that the pool does not want any more. Earlier ones have done their work.
    pub(super) fn abort_task(&self, id: ConnId) {
        let all = TaskKey { id, number: 0 }..=TaskKey { id, number: u64::MAX };
        let task = self.lock().tasks.range_mut(all).next_back().and_then(|(_, entry)| {
            entry.is_aborted = true;
            entry.task.take()
        });
        task.into_iter().for_each(R::abort);
    }

    /// A task has closed what it had open, without a result. Returns whether it was aborted.
    pub(super) fn task_closed(&self, key: TaskKey) -> bool {
        let is_aborted = self.lock().tasks.get_mut(&key).is_none_or(|entry| {
            entry.is_open = false;
            entry.is_aborted
        });
        if is_aborted {
            self.drained.notify_all();
        }
        is_aborted
    }

    pub(super) fn task_ended(&self, key: TaskKey) {
        let mut inner = self.lock();
        let entry = inner.tasks.remove(&key);
        self.notify_if_empty(inner);
        if entry.is_some_and(|entry| entry.is_aborted && entry.is_open) {
            self.drained.notify_all();
        }
    }

    pub(super) fn add_interrupt(&self, id: ConnId, interrupt: Arc<Interrupt>) {
        self.lock().interrupts.insert(id, interrupt);
    }
}
