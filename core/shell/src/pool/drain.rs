//! Reading a late reply, in a task of its own that owes the machine an answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{ConnId, Input};

use super::driver::PoolDriver;
use super::fork::ForkTrigger;
use super::fork_guarded::ForkGuarded;
use super::inner::TaskKey;
use super::types::PooledSocket;
use crate::connection::interrupt::Interrupt;
use crate::connection::{Connector, DrainReporter};
use crate::runtime::Runtime;
use crate::runtime::contain;

/// How often the machine hears at most that bytes have come.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Reads a connection's late reply on the pool's runtime.
pub(super) fn start<R: Runtime, K: Connector<R>>(
    driver: &Arc<PoolDriver<R, K>>,
    id: ConnId,
    conn: Box<PooledSocket<R, K>>,
) {
    if driver.is_inherited() {
        // After a reset the machine has forgotten this connection.
        drop(conn);
        if driver.reset_in_child(ForkTrigger::Establishing).is_err() {
            let reason = "it belongs to the process that this one was forked from";
            let cause = ConnectionError::configuration(Stage::Operation, reason);
            driver.feed(Input::DrainFailed { id, cause });
        }
        return;
    }
    let (key, _) = driver.add_task(id);
    let drain = Drain { driver: Arc::clone(driver), key, unread: Some(conn), is_answered: false };
    driver.spawn_task(key, drain.run());
}

/// The task. Dropped without an answer, it answers for itself.
struct Drain<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    key: TaskKey,
    /// Until the task is polled.
    unread: Option<Box<PooledSocket<R, K>>>,
    is_answered: bool,
}

impl<R: Runtime, K: Connector<R>> Drain<R, K> {
    async fn run(mut self) {
        let Some(conn) = self.unread.take() else { unreachable!("it is there until now") };
        let (driver, id) = (Arc::clone(&self.driver), self.key.id);
        match Self::drained(&driver, id, conn).await {
            Ok(conn) => {
                self.is_answered = true;
                self.driver.feed(Input::DrainSucceeded { id: self.key.id, conn });
            }
            Err(cause) => self.fail(cause),
        }
    }

    async fn drained(
        driver: &Arc<PoolDriver<R, K>>,
        id: ConnId,
        conn: Box<PooledSocket<R, K>>,
    ) -> Result<Box<PooledSocket<R, K>>, ConnectionError> {
        let progress = Arc::clone(driver);
        let last = Mutex::new(None::<Instant>);
        let reporter = DrainReporter::new(move || {
            let now = R::now();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| now.saturating_duration_since(last) >= PROGRESS_INTERVAL) {
                *last = Some(now);
                drop(last);
                progress.feed(Input::DrainProgress { id });
            }
        });
        let connection = conn.connection.into_inner()?;
        let connector = driver.connector();
        let connection = connector.drain(driver.runtime(), connection, reporter).await?;
        // The socket may be another handle of the runtime's by now.
        let interrupt = Arc::new(Interrupt::new(connector.interrupter(&connection)));
        driver.add_interrupt(id, Arc::clone(&interrupt));
        let connection = ForkGuarded::new(connection);
        Ok(Box::new(PooledSocket::new(id, connection, interrupt)))
    }

    fn fail(&mut self, cause: ConnectionError) {
        self.is_answered = true;
        // First, because subscribers may keep this thread: closing the pool does not wait for them as long as for sockets.
        self.driver.socket_ended(self.key.id);
        self.driver.feed(Input::DrainFailed { id: self.key.id, cause });
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Drain<R, K> {
    /// The task was aborted, the connector panicked, or the runtime shut down. By now the socket is closed.
    fn drop(&mut self) {
        let unread = self.unread.take();
        // A connection whose drop panics is closed all the same.
        contain(|| drop(unread));
        if !self.is_answered {
            if self.driver.task_closed(self.key) || thread::panicking() {
                let reason =
                    "given up: the task that read its late reply was aborted or has panicked";
                self.fail(ConnectionError::network(Stage::Operation, reason));
            } else {
                self.driver.socket_ended(self.key.id);
                self.driver.runtime_ended();
            }
        }
        self.driver.task_ended(self.key);
    }
}
