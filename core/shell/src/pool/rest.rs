//! What a caller has left to be performed after its turn, so that it can go on with its own work: a task does it, in turns.

use std::sync::Arc;

use cenote_core::pool::ConnId;

use super::driver::PoolDriver;
use super::inner::TaskKey;
use crate::connection::Connector;
use crate::runtime::{Runtime, yield_once};

/// Starts a task that performs what is queued, unless another thread does so already.
#[cold]
pub(super) fn start<R: Runtime, K: Connector<R>>(driver: &Arc<PoolDriver<R, K>>) {
    let key = driver.add_task(NO_CONNECTION);
    let rest = Rest { driver: Arc::clone(driver), key };
    driver.spawn_task(key, rest.run());
}

/// The numbers of connections begin at 1.
const NO_CONNECTION: ConnId = ConnId::from_parts(0, 0);

/// The task. Dropped before its end, as by a runtime that has shut down, it performs all of it.
struct Rest<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    key: TaskKey,
}

impl<R: Runtime, K: Connector<R>> Rest<R, K> {
    async fn run(self) {
        while self.driver.perform_pending() {
            yield_once().await;
        }
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Rest<R, K> {
    fn drop(&mut self) {
        if !self.driver.is_inherited() {
            while self.driver.perform_pending() {}
        }
        self.driver.task_ended(self.key);
    }
}
