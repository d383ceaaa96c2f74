//! Selecting a server, and waiting for one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use cenote_core::client::{
    self, ClientError, Selection, SelectionError, Selector, TimeLimit, choose_of_two,
};

use super::request::ServerRequest;
use super::selection_log::SelectionLog;
use super::{ClientInner, SelectedFor, Server};
use crate::connection::operation::{CommandTimeouts, Deadline, OperationOptions};
use crate::runtime::{Network, timeout_at};

/// How long one operation of a client may take: `timeoutMS`, or the limit of the call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClientLimit {
    /// For the operation's command.
    pub options: OperationOptions,
    /// For the whole; `None` is without limit.
    pub whole: Option<Deadline>,
    /// For selection and check-out together: at most `serverSelectionTimeoutMS`. `None` is for an operation to which
    /// the older timeouts apply.
    // CS-02.
    pub check_out: Option<Instant>,
    before_command: Option<TimeLimit>,
}

impl ClientLimit {
    /// The error of a command as one of this operation.
    pub fn named(&self, error: impl Into<ClientError>) -> ClientError {
        let limit = self.whole.map(|deadline| TimeLimit::Operation(deadline.after));
        within(error.into(), limit)
    }

    /// The error of selection or check-out as one of this operation.
    pub fn named_before_command(&self, error: impl Into<ClientError>) -> ClientError {
        within(error.into(), self.before_command)
    }
}

fn within(error: ClientError, limit: Option<TimeLimit>) -> ClientError {
    match limit {
        Some(limit) => error.within(limit),
        None => error,
    }
}

impl<R: Network> ClientInner<R> {
    /// How long an operation that begins now may take.
    // CS-10
    #[must_use]
    pub fn limit(&self, options: OperationOptions) -> ClientLimit {
        let operation = self.settings.operation_timeout;
        let has_limit = operation.is_some() || options.is_limited();
        if !has_limit {
            return ClientLimit { options, whole: None, check_out: None, before_command: None };
        }
        let (now, mut timeouts) = (R::now(), CommandTimeouts::default());
        timeouts.operation = operation;
        let whole = timeouts.limit(options, || now).deadline;
        let check_out = self.selection_deadline(now, whole.map(|deadline| deadline.at));
        let before_command = whole.map(|deadline| match check_out {
            Some(check_out) if check_out < deadline.at => {
                TimeLimit::ServerSelection(self.settings.selection_timeout)
            }
            Some(_) | None => TimeLimit::Operation(deadline.after),
        });
        let options = whole.map_or(options, |deadline| options.with_deadline(deadline.at));
        ClientLimit { options, whole, check_out, before_command }
    }

    /// A server that fits, by its last check; `None` also when the client is closed, and in a forked child process.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Option<Arc<Server<R>>> {
        if self.is_inherited() {
            return None;
        }
        let (topology, draw) = {
            let locked = self.driver.lock();
            if locked.is_closed {
                return None;
            }
            (Arc::clone(locked.state.description()), locked.draw())
        };
        // Not under the lock, for which others wait.
        let (heartbeat, threshold) = (self.heartbeat_frequency, self.settings.local_threshold);
        let selected = client::select(selector, &topology, heartbeat, threshold, |fitting| {
            if let [(address, _)] = fitting {
                return self.driver.lock().server_at(address);
            }
            let servers = self.driver.lock().servers_at(fitting);
            choose_of_two(&servers, draw, |server| server.operations()).map(Arc::clone)
        });
        match selected {
            Ok(Selection::Found(server)) => Some(server),
            Ok(_) | Err(_) => None,
        }
    }

    /// Waits until there is a server that fits, for `serverSelectionTimeoutMS` at most, and within the limit of the
    /// operation.
    pub(super) async fn wait_for_server(
        &self,
        selector: &Selector,
        limit: &ClientLimit,
        purpose: SelectedFor<'_>,
    ) -> Result<Arc<Server<R>>, SelectionError> {
        let mut log = SelectionLog::start(self, selector, purpose, &limit.options);
        let outcome = match self.select(selector) {
            Some(server) => Ok(server),
            // Boxed, because few wait.
            None => Box::pin(self.wait_until(selector, limit.check_out, &mut log)).await,
        };
        log.end(&outcome);
        outcome
    }

    // SS-13
    async fn wait_until(
        &self,
        selector: &Selector,
        deadline: Option<Instant>,
        log: &mut SelectionLog<'_, R>,
    ) -> Result<Arc<Server<R>>, SelectionError> {
        let mut request = ServerRequest::new(self, selector, deadline);
        let waiter = request.waiter();
        loop {
            // Before the answer is looked at, so that it is not missed.
            let answered = waiter.listen();
            if let Some(outcome) = request.outcome() {
                return outcome;
            }
            log.wait(|| request.remaining());
            let Some(deadline) = request.deadline() else {
                answered.await;
                continue;
            };
            if timeout_at(&self.driver.runtime, deadline, pin!(answered)).await.is_none() {
                request.time_out();
            }
        }
    }

    /// Blocks until there is a server that fits, for `serverSelectionTimeoutMS` at most, and within the limit of the
    /// operation, by the clock of the operating system.
    ///
    /// # Errors
    ///
    /// The time is over, or waiting would not help.
    pub fn wait_for_server_blocking(
        &self,
        selector: &Selector,
        limit: &ClientLimit,
        purpose: SelectedFor<'_>,
    ) -> Result<Arc<Server<R>>, SelectionError> {
        let mut log = SelectionLog::start(self, selector, purpose, &limit.options);
        let outcome = self.block_until(selector, limit.check_out, &mut log);
        log.end(&outcome);
        outcome
    }

    // SS-13
    fn block_until(
        &self,
        selector: &Selector,
        deadline: Option<Instant>,
        log: &mut SelectionLog<'_, R>,
    ) -> Result<Arc<Server<R>>, SelectionError> {
        if let Some(server) = self.select(selector) {
            return Ok(server);
        }
        let mut request = ServerRequest::new(self, selector, deadline);
        let waiter = request.waiter();
        loop {
            // Before the answer is looked at, so that it is not missed.
            let answered = waiter.listen();
            if let Some(outcome) = request.outcome() {
                return outcome;
            }
            log.wait(|| request.remaining());
            if !answered.wait(request.deadline()) {
                request.time_out();
            }
        }
    }

    pub(super) fn selection_deadline(
        &self,
        begin: Instant,
        operation: Option<Instant>,
    ) -> Option<Instant> {
        let selection = begin.checked_add(self.settings.selection_timeout);
        selection.into_iter().chain(operation).min()
    }
}
