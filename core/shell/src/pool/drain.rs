//! Reading a late reply, in a task of its own that owes the machine an answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{ConnId, Input};

use super::driver::PoolDriver;
use super::fork::ForkTrigger;
use super::fork_guarded::ForkGuarded;
use super::types::PooledSocket;
use crate::connection::{Connector, DrainReporter};
use crate::interrupt::Interrupt;
use crate::runtime::Runtime;

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
    let drain = Drain { driver: Arc::clone(driver), id, is_answered: false };
    driver.spawn_task(id, drain.run(conn));
}

/// The task. Dropped without an answer, it answers for itself.
struct Drain<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    id: ConnId,
    is_answered: bool,
}

impl<R: Runtime, K: Connector<R>> Drain<R, K> {
    async fn run(mut self, conn: Box<PooledSocket<R, K>>) {
        match self.drained(conn).await {
            Ok(conn) => {
                self.is_answered = true;
                self.driver.feed(Input::DrainSucceeded { id: self.id, conn });
            }
            Err(cause) => self.fail(cause),
        }
    }

    async fn drained(
        &self,
        conn: Box<PooledSocket<R, K>>,
    ) -> Result<Box<PooledSocket<R, K>>, ConnectionError> {
        let (driver, id) = (Arc::clone(&self.driver), self.id);
        let last = Mutex::new(None::<Instant>);
        let reporter = DrainReporter::new(move || {
            let now = R::now();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| now.saturating_duration_since(last) >= PROGRESS_INTERVAL) {
                *last = Some(now);
                drop(last);
                driver.feed(Input::DrainProgress { id });
            }
        });
        let connection = conn.connection.into_inner()?;
        let connector = self.driver.connector();
        let connection = connector.drain(self.driver.runtime(), connection, reporter).await?;
        // The socket may be another handle of the runtime's by now.
        let interrupt = Arc::new(Interrupt::new(connector.interrupter(&connection)));
        self.driver.add_interrupt(id, Arc::clone(&interrupt));
        let connection = ForkGuarded::new(connection);
        Ok(Box::new(PooledSocket { connection, interrupt, error: None, is_unfinished: false }))
    }

    fn fail(&mut self, cause: ConnectionError) {
        self.is_answered = true;
        self.driver.feed(Input::DrainFailed { id: self.id, cause });
        self.driver.socket_ended(self.id);
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Drain<R, K> {
    /// The task was aborted, the connector panicked, or the runtime shut down. By now the socket is closed.
    fn drop(&mut self) {
        if !self.is_answered {
            if self.driver.is_aborted(self.id) || thread::panicking() {
                let reason =
                    "given up: the task that read its late reply was aborted or has panicked";
                self.fail(ConnectionError::network(Stage::Operation, reason));
            } else {
                self.driver.socket_ended(self.id);
                self.driver.runtime_ended();
            }
        }
        self.driver.task_ended(self.id);
    }
}
