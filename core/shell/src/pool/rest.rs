//! What a caller has left to be told after its turn, so that it can go on with its own work: a task tells it, in turns.

use std::sync::Arc;

use cenote_core::pool::ConnId;

use super::driver::PoolDriver;
use super::inner::TaskKey;
use crate::connection::Connector;
use crate::runtime::{Runtime, yield_once};

/// Starts the task to which the rest is left.
#[cold]
pub(super) fn start<R: Runtime, K: Connector<R>>(driver: &Arc<PoolDriver<R, K>>) {
    let (key, _) = driver.add_task(NO_CONNECTION);
    let rest = Rest { driver: Arc::clone(driver), key, has_ended: false };
    driver.spawn_task(key, rest.run());
}

/// The numbers of connections begin at 1.
const NO_CONNECTION: ConnId = ConnId::from_parts(0, 0);

/// The task. Dropped before its end, as by a runtime that has shut down, it tells all of it.
struct Rest<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    key: TaskKey,
    has_ended: bool,
}

impl<R: Runtime, K: Connector<R>> Rest<R, K> {
    async fn run(mut self) {
        while self.driver.notify_rest() {
            yield_once().await;
        }
        self.has_ended = true;
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Rest<R, K> {
    fn drop(&mut self) {
        // In a child process it is the parent's.
        while !self.has_ended && !self.driver.is_inherited() {
            self.has_ended = !self.driver.notify_rest();
        }
        self.driver.task_ended(self.key);
    }
}
