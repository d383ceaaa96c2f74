//! Opening a connection, in a task of its own that owes the machine an answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::thread;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{ConnId, Input, WaiterId};

use super::driver::PoolDriver;
use super::fork::ForkTrigger;
use super::fork_guarded::{ForkGuarded, inherited};
use super::inner::TaskKey;
use super::types::PooledSocket;
use crate::connection::interrupt::Interrupt;
use crate::connection::stages::{RecordStage, Stages};
use crate::connection::{Connector, HandshakeReporter, Target};
use crate::runtime::{Runtime, timeout_at};

/// Opens a connection on the pool's runtime.
pub(super) fn start<R: Runtime, K: Connector<R>>(
    driver: &Arc<PoolDriver<R, K>>,
    id: ConnId,
    owner: Option<WaiterId>,
    has_deadline: bool,
) {
    if driver.is_inherited() {
        // FK-03
        // After a reset the machine has forgotten this connection.
        if driver.reset_in_child(ForkTrigger::Establishing).is_err() {
            let cause = inherited(Stage::Tcp);
            driver.feed(Input::EstablishFailed { id, cause, overloaded: false });
        }
        return;
    }
    let runtime = driver.runtime();
    let (key, waits) = driver.add_task(id);
    let span = driver.spans.establish(owner, id.number(), driver.address());
    let record = driver.is_recording().then(|| record_stages(driver, id));
    let stages = Stages::begin(driver.measured(), span, record, R::now);
    let establishment =
        Establishment { driver: Arc::clone(driver), key, stages, is_answered: false };
    let limit = driver.connector().connect_timeout().and_then(|limit| R::now().checked_add(limit));
    // CO-01, PS-05
    let target = Target {
        address: Arc::clone(driver.address()),
        connection_id: id.number(),
        background: owner.is_none(),
        has_deadline,
        runtime,
    };
    driver.spawn_task(key, establishment.run(target, limit, waits));
}

fn record_stages<R: Runtime, K: Connector<R>>(
    driver: &Arc<PoolDriver<R, K>>,
    id: ConnId,
) -> RecordStage {
    let driver = Arc::clone(driver);
    Box::new(move |stage| driver.record_stage(id, stage, None))
}

/// The task. Dropped without an answer, it answers for itself.
struct Establishment<R: Runtime, K: Connector<R>> {
    driver: Arc<PoolDriver<R, K>>,
    key: TaskKey,
    stages: Stages,
    is_answered: bool,
}

impl<R: Runtime, K: Connector<R>> Establishment<R, K> {
    /// Within the limit of the connector, whether a caller waits or not. The sockets of attempts that were given up are closed
    /// first: the server never sees more than the pool's limits.
    // SD-23, OP-02, PS-12
    async fn run(mut self, target: Target<R>, limit: Option<std::time::Instant>, waits: bool) {
        let (driver, key, id) = (Arc::clone(&self.driver), self.key, self.key.id);
        let earlier = Arc::clone(&driver);
        let handshaken = move |service| {
            driver.feed(Input::Handshaken { id, service: Some(service), clears_at_hello: None });
        };
        let reporter = HandshakeReporter::new(handshaken, self.stages.clone());
        let runtime = target.runtime.clone();
        let connector = self.driver.connector();
        let connecting = async {
            if waits {
                earlier.earlier_sockets_closed(key).await;
            }
            connector.connect(target, reporter).await
        };
        let outcome = within(&runtime, limit, pin!(connecting)).await;
        let outcome = outcome.and_then(|connection| self.check_service().map(|()| connection));
        self.stages.end(outcome.as_ref().map(drop));
        match outcome {
            Ok(connection) => self.succeed(connection),
            Err(cause) => {
                self.driver.show_failure(id, &cause);
                let overloaded = cause.is_overload();
                self.fail(cause, overloaded);
            }
        }
    }

    /// A load-balanced pool has to know the service of a connection. A connection that was aborted
    /// meanwhile counts as stale.
    fn check_service(&self) -> Result<(), ConnectionError> {
        let status = self.driver.connection_status(self.key.id);
        if !status.load_balanced || status.is_stale || status.service.is_some() {
            return Ok(());
        }
        let reason = "the pool is load-balanced, and the connector returned a connection without \
                      its service: call HandshakeReporter::handshaken when hello is done";
        Err(ConnectionError::configuration(Stage::Hello, reason))
    }

    fn succeed(&mut self, connection: K::Connection) {
        // May panic: until then the drop answers.
        let interrupter = self.driver.connector().interrupter(&connection);
        self.is_answered = true;
        let interrupt = Arc::new(Interrupt::new(interrupter));
        self.driver.add_interrupt(self.key.id, Arc::clone(&interrupt));
        let connection = ForkGuarded::new(connection);
        let conn = Box::new(PooledSocket::new(self.key.id, connection, interrupt));
        self.driver.feed(Input::EstablishSucceeded { id: self.key.id, conn });
    }

    fn fail(&mut self, cause: ConnectionError, overloaded: bool) {
        self.is_answered = true;
        self.driver.feed(Input::EstablishFailed { id: self.key.id, cause, overloaded });
    }

    /// The task was aborted, the connector panicked, or the runtime shut down.
    fn answer_for_lost_task(&mut self) {
        self.stages.abort();
        if self.driver.task_closed(self.key) || thread::panicking() {
            let reason = "given up: the task that opened it was aborted or has panicked";
            self.fail(ConnectionError::network(Stage::Tcp, reason), false);
        } else {
            // The timer closes the pool, too, but possibly later: until then the next caller in the queue
            // would wait for a connection that no task opens.
            self.driver.runtime_ended();
        }
    }
}

impl<R: Runtime, K: Connector<R>> Drop for Establishment<R, K> {
    /// By now everything that the task had open is closed.
    fn drop(&mut self) {
        if !self.is_answered {
            self.answer_for_lost_task();
        }
        self.driver.task_ended(self.key);
    }
}

/// Ends a connector that has no limit of its own.
async fn within<R: Runtime, C, E: Into<ConnectionError>>(
    runtime: &R,
    limit: Option<std::time::Instant>,
    connecting: impl Future<Output = Result<C, E>> + Unpin,
) -> Result<C, ConnectionError> {
    let Some(limit) = limit else { return connecting.await.map_err(Into::into) };
    let after = limit.saturating_duration_since(R::now());
    match timeout_at(runtime, limit, connecting).await {
        Some(outcome) => outcome.map_err(Into::into),
        None => Err(ConnectionError::timeout(Stage::Tcp, after)),
    }
}
