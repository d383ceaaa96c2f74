//! What a caller has left after its turn, so that it can go on with its own work: a task performs or tells it, in turns.

use std::mem;
use std::sync::Arc;

use cenote_core::pool::ConnId;

use super::driver::{InnerGuard, PoolDriver};
use super::inner::TaskKey;
use crate::connection::Connector;
use crate::runtime::{Runtime, yield_once};

/// Releases the lock. The next caller that acts may come first, so that nothing is lost where nothing drives the runtime.
#[cold]
pub(super) fn leave_work<R: Runtime, K: Connector<R>>(
    driver: &Arc<PoolDriver<R, K>>,
    mut inner: InnerGuard<'_, R, K>,
) {
    let has_task = mem::replace(&mut inner.pending.has_work_task, true);
    drop(inner);
    if !has_task {
        start(driver, PoolDriver::perform_rest);
    }
}

/// Does one more turn. Returns whether something is left.
type Turn<R, K> = fn(&Arc<PoolDriver<R, K>>) -> bool;

/// Starts the task to which the rest is left.
#[cold]
pub(super) fn start<R: Runtime, K: Connector<R>>(driver: &Arc<PoolDriver<R, K>>, turn: Turn<R, K>) {
    let (key, _) = driver.add_task(NO_CONNECTION);
    let rest = Rest { driver: Arc::clone(driver), turn, key, has_ended: false };
    driver.spawn_task(key, rest.run());
}

/// The numbers of connections begin at 1.
pub(super) const NO_CONNECTION: ConnId = ConnId::from_parts(0, 0);

/// The task. Dropped before its end, as by a runtime that has shut down, it does all of it.
struct Rest<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    turn: Turn<R, K>,
    key: TaskKey,
    has_ended: bool,
}

impl<R: Runtime, K: Connector<R>> Rest<R, K> {
    async fn run(mut self) {
        while (self.turn)(&self.driver) {
            yield_once().await;
        }
        self.has_ended = true;
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Rest<R, K> {
    fn drop(&mut self) {
        // In a child process it is the parent's.
        while !self.has_ended && !self.driver.is_inherited() {
            self.has_ended = !(self.turn)(&self.driver);
        }
        self.driver.task_ended(self.key);
    }
}
