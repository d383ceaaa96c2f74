//! Selecting a server, and waiting for one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_core::client::{
    self, ClientError, InvalidReadPreference, Selection, SelectionError, Selector, TimeLimit,
    choose_of_two, seen,
};
use cenote_core::pool::Status;
use cenote_core::topology::TopologyDescription;

use super::selection_log::SelectionLog;
use super::{ClientInner, SelectedFor, Server};
use crate::connection::operation::{CommandTimeouts, Deadline, OperationOptions};
use crate::runtime::platform::random;
use crate::runtime::signal::{Listener, Wakers};
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

    /// A server that fits, by its last check; `None` also when the client is closed.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Option<Arc<Server<R>>> {
        match self.look(selector, &self.topology()) {
            Ok(Selection::Found(server)) if !self.is_closed() => Some(server),
            Ok(_) | Err(_) => None,
        }
    }

    /// A server that fits, for a caller that waits for one. With `None` it waits for [news](Self::listen) and
    /// tries again; the servers are checked meanwhile.
    ///
    /// # Errors
    ///
    /// Waiting would not help.
    pub fn try_select_server(
        &self,
        selector: &Selector,
    ) -> Result<Option<Arc<Server<R>>>, SelectionError> {
        if self.is_closed() {
            return Err(SelectionError::Closed);
        }
        let is_hopeless = match self.look(selector, &self.topology())? {
            Selection::Found(server) => return Ok(Some(server)),
            Selection::Foreign(address) => return Err(SelectionError::NotOfThisClient { address }),
            Selection::Hopeless => true,
            Selection::Wait => false,
        };
        let list = self.servers.list();
        let mut servers = list.servers.iter().peekable();
        // Their runtime has shut down.
        let has_servers = servers.peek().is_some();
        if has_servers && servers.all(|server| server.snapshot().status == Status::Closed) {
            return Err(SelectionError::Closed);
        }
        list.servers.iter().for_each(|server| server.request_check());
        if is_hopeless {
            let (selector, servers) = (selector.clone(), self.seen());
            return Err(SelectionError::Hopeless { selector, servers });
        }
        Ok(None)
    }

    // SS-14
    fn look(
        &self,
        selector: &Selector,
        topology: &TopologyDescription,
    ) -> Result<Selection<Arc<Server<R>>>, InvalidReadPreference> {
        let heartbeat = self.shared.options.heartbeat_frequency;
        let threshold = self.settings.local_threshold;
        client::select(selector, topology, heartbeat, threshold, &[], |fitting| {
            let list = self.servers.list();
            // One that was just found is not on the list yet.
            let servers: Vec<_> =
                fitting.iter().filter_map(|(address, _)| list.server(address)).collect();
            let draw = if servers.len() > 1 { random() } else { 0 };
            choose_of_two(&servers, draw, |server| server.operations()).map(|it| Arc::clone(it))
        })
    }

    /// Listens for news of servers, from now on: a check has ended, a description has changed, or the client was
    /// closed.
    #[must_use]
    pub fn listen(&self) -> Listener<'_, R::Mutex<Wakers>> {
        self.shared.news.listen()
    }

    /// Waits until there is a server that fits, for `serverSelectionTimeoutMS` at most, and within the limit of the
    /// operation.
    pub(super) async fn wait_for_server(
        &self,
        selector: &Selector,
        limit: ClientLimit,
        purpose: SelectedFor<'_>,
    ) -> Result<Arc<Server<R>>, SelectionError> {
        let mut log = SelectionLog::start(self, selector, purpose, limit.options);
        let outcome = self.wait_until(selector, limit.check_out, &mut log).await;
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
        if let Some(server) = self.select(selector) {
            return Ok(server);
        }
        let begin = R::now();
        let deadline = self.selection_deadline(begin, deadline);
        loop {
            // Before the servers are looked at, so that no news is missed.
            let news = self.listen();
            if let Some(server) = self.try_select_server(selector)? {
                return Ok(server);
            }
            log.wait(|| remaining(deadline, R::now()));
            let Some(deadline) = deadline else {
                news.await;
                continue;
            };
            if timeout_at(&self.shared.runtime, deadline, news).await.is_none() {
                return Err(self.timed_out(selector, begin));
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
        limit: ClientLimit,
        purpose: SelectedFor<'_>,
    ) -> Result<Arc<Server<R>>, SelectionError> {
        let mut log = SelectionLog::start(self, selector, purpose, limit.options);
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
        let begin = R::now();
        let deadline = self.selection_deadline(begin, deadline);
        loop {
            // Before the servers are looked at, so that no news is missed.
            let news = self.listen();
            if let Some(server) = self.try_select_server(selector)? {
                return Ok(server);
            }
            log.wait(|| remaining(deadline, R::now()));
            if !news.wait(deadline) {
                return Err(self.timed_out(selector, begin));
            }
        }
    }

    fn selection_deadline(&self, begin: Instant, operation: Option<Instant>) -> Option<Instant> {
        let selection = begin.checked_add(self.settings.selection_timeout);
        selection.into_iter().chain(operation).min()
    }

    fn timed_out(&self, selector: &Selector, begin: Instant) -> SelectionError {
        let after = R::now().saturating_duration_since(begin);
        SelectionError::TimedOut { selector: selector.clone(), after, servers: self.seen() }
    }

    fn is_closed(&self) -> bool {
        self.servers.is_closed()
    }

    /// All servers with what is known of them, for errors.
    fn seen(&self) -> String {
        seen(&self.topology(), self.statuses())
    }
}

fn remaining(deadline: Option<Instant>, now: Instant) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(now))
}
