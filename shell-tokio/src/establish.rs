//! Connections that are being opened, each in a task of its own.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{ConnId, Input, Instant};
use tokio::time::timeout_at;

use crate::connector::{Connector, HandshakeReporter, Target};
use crate::desk::{Held, OpeningTask};
use crate::failure;
use crate::home::Owned;
use crate::interrupt::Interrupt;
use crate::shared::Shared;

/// Opens a connection on the pool's runtime. Whatever becomes of the task, the machine is answered.
pub(crate) fn start<K: Connector>(
    shared: &Arc<Shared<K>>,
    id: ConnId,
    deadline: Option<Instant>,
    background: bool,
) {
    if !shared.home.is_here() {
        return shared.notice_fork(id);
    }
    let opening = Opening { shared: Arc::clone(shared), id, is_answered: false };
    let target = Target {
        address: Arc::clone(&shared.address),
        connection_id: id.number(),
        deadline: deadline.and_then(|deadline| shared.time_of(deadline)),
        background,
    };
    // The task may be over before it is known how to stop it: it takes its entry away then. It is
    // not spawned under the lock, because a runtime that has ended drops it at once.
    shared.lock().opening.insert(id, OpeningTask::default());
    let stop = shared.home.runtime().spawn(opening.run(target)).abort_handle();
    if let Some(task) = shared.lock().opening.get_mut(&id) {
        task.stop = Some(stop);
    }
}

/// Whoever asked is told by his deadline, also when the connector looks at none (CS-03).
async fn within<C>(
    deadline: Option<tokio::time::Instant>,
    connecting: impl Future<Output = Result<C, ConnectionError>>,
) -> Result<C, ConnectionError> {
    let Some(deadline) = deadline else { return connecting.await };
    let after = deadline.saturating_duration_since(tokio::time::Instant::now());
    // A connector that looks at it knows the stage, and comes first at the same moment.
    match timeout_at(deadline, connecting).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ConnectionError::timeout(Stage::Tcp, after)),
    }
}

/// Owes the machine an answer.
struct Opening<K: Connector> {
    shared: Arc<Shared<K>>,
    id: ConnId,
    is_answered: bool,
}

impl<K: Connector> Opening<K> {
    async fn run(mut self, target: Target) {
        let progress = HandshakeReporter { shared: Arc::clone(&self.shared), id: self.id };
        let deadline = target.deadline;
        let connecting = self.shared.connector.connect(target, progress);
        match within(deadline, connecting).await {
            Ok(connection) => self.succeed(connection),
            Err(cause) => {
                failure::show(&self.shared, self.id, &cause);
                self.fail(cause);
            }
        }
    }

    fn succeed(&mut self, connection: K::Connection) {
        self.is_answered = true;
        let interrupt = Arc::new(Interrupt::default());
        let id = self.id;
        self.shared.opened(id, Arc::clone(&interrupt));
        let connection = Owned::new(connection);
        let conn = Box::new(Held { connection, interrupt, error: None });
        self.shared.feed(Input::EstablishSucceeded { id, conn });
    }

    fn fail(&mut self, cause: ConnectionError) {
        self.is_answered = true;
        self.shared.feed(Input::EstablishFailed { id: self.id, cause });
    }
}

impl<K: Connector> Opening<K> {
    /// The pool has no use for the connection, the connector panicked, or the runtime has ended.
    fn give_up(&mut self) {
        let is_given_up =
            self.shared.lock().opening.get(&self.id).is_none_or(|task| task.is_given_up);
        if is_given_up || thread::panicking() {
            let reason = "given up: the task that opened it has panicked";
            self.fail(ConnectionError::network(Stage::Tcp, reason));
        } else {
            // As the timer does, which may come later: whoever is next in the queue need not find
            // out with a connection of his own.
            self.shared.runtime_ended();
        }
    }
}

impl<K: Connector> Drop for Opening<K> {
    /// Comes last: what the task had open is closed.
    fn drop(&mut self) {
        if !self.is_answered {
            self.give_up();
        }
        self.shared.opening_ended(self.id);
    }
}
