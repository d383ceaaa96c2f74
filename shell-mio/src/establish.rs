//! Connections that are being opened, each by itself on the event loop.

use std::future::Future;
use std::sync::Arc;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{ConnId, Input, Instant};

use crate::connector::{Connector, HandshakeReporter, Target};
use crate::desk::Held;
use crate::event_loop::{EventLoop, timeout_at};
use crate::failure;
use crate::interrupt::Interrupt;
use crate::shared::Shared;

/// Opens a connection on the event loop. Whatever becomes of it, the machine is answered.
pub(crate) fn start<K: Connector>(
    shared: &Arc<Shared<K>>,
    id: ConnId,
    deadline: Option<Instant>,
    background: bool,
) {
    let event_loop = shared.lock().event_loop.clone();
    let mut opening = Opening { shared: Arc::clone(shared), id, is_answered: false };
    if shared.is_foreign() {
        // Nobody turns the loop here.
        let reason = "the pool is the parent process's: call reset_after_fork first";
        return opening.fail(ConnectionError::configuration(Stage::Tcp, reason));
    }
    let target = Target {
        address: Arc::clone(&shared.address),
        connection_id: id.number(),
        deadline: deadline.and_then(|deadline| shared.time_of(deadline)),
        background,
        event_loop: event_loop.clone(),
    };
    event_loop.start(id.number(), Box::pin(opening.run(target)));
}

/// Whoever asked is told by his deadline, also when the connector looks at none (CS-03).
async fn within<C>(
    event_loop: &EventLoop,
    deadline: Option<std::time::Instant>,
    connecting: impl Future<Output = Result<C, ConnectionError>>,
) -> Result<C, ConnectionError> {
    let Some(deadline) = deadline else { return connecting.await };
    let after = deadline.saturating_duration_since(std::time::Instant::now());
    // A connector that looks at it knows the stage, and comes first at the same moment.
    match timeout_at(event_loop, deadline, connecting).await {
        Some(outcome) => outcome,
        None => Err(ConnectionError::timeout(Stage::Tcp, after)),
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
        let (event_loop, deadline) = (target.event_loop.clone(), target.deadline);
        let connecting = self.shared.connector.connect(target, progress);
        match within(&event_loop, deadline, connecting).await {
            Ok(connection) => self.succeed(connection),
            Err(cause) => {
                failure::show(&self.shared, self.id, &cause);
                self.fail(cause);
            }
        }
    }

    fn succeed(&mut self, connection: K::Connection) {
        self.is_answered = true;
        let interrupter = self.shared.connector.interrupter(&connection);
        let interrupt = Arc::new(Interrupt::new(interrupter));
        let id = self.id;
        self.shared.lock().interrupts.insert(id, Arc::clone(&interrupt));
        let conn = Box::new(Held { connection, interrupt, error: None });
        self.shared.feed(Input::EstablishSucceeded { id, conn });
    }

    fn fail(&mut self, cause: ConnectionError) {
        self.is_answered = true;
        self.shared.feed(Input::EstablishFailed { id: self.id, cause });
    }
}

impl<K: Connector> Drop for Opening<K> {
    /// It was stopped, the event loop ended, or the connector panicked.
    fn drop(&mut self) {
        if !self.is_answered {
            let reason = "given up: the event loop does not go on with it";
            self.fail(ConnectionError::network(Stage::Tcp, reason));
        }
    }
}
