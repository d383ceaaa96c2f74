//! Choosing a server, and waiting until there is one.

use std::panic::Location;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use cenote_core::client::{ClientError, SelectionError, Selector, choose, seen};
use cenote_core::pool::Purpose;

use super::server::Server;
use super::{Client, Inner};
use crate::connection::Mongo;
use crate::guard::PooledConnection;

impl Client {
    /// A connection, and the server that it is to. `place` is where the application asks for it.
    pub(super) fn check_out_at(
        &self,
        place: &'static Location<'static>,
        selector: &Selector,
        purpose: Purpose,
    ) -> Result<(&Arc<Server>, PooledConnection<Mongo>), ClientError> {
        let timeout = self.inner.settings.operation_timeout;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let server = match self.inner.choose(selector) {
            Some(server) if !self.inner.is_closed() => server,
            Some(_) | None => self.inner.wait_for(selector, deadline)?,
        };
        Ok((server, server.pool.check_out_at(place, purpose, deadline)?))
    }
}

impl Inner {
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// As last seen.
    fn choose<'a>(&'a self, selector: &Selector) -> Option<&'a Arc<Server>> {
        let servers = self.candidates(selector);
        choose(selector, servers, |server| server.candidate(), |server| server.pool.snapshot())
    }

    /// Blocks until there is one, or the time is over, or nothing that could be waited for would help.
    /// Has servers checked meanwhile.
    fn wait_for(
        &self,
        selector: &Selector,
        operation: Option<Instant>,
    ) -> Result<&Arc<Server>, SelectionError> {
        if let Selector::Address(address) = selector {
            if self.candidates(selector).next().is_none() {
                return Err(SelectionError::NotOfThisClient { address: address.clone() });
            }
        }
        let begin = Instant::now();
        let own = begin.checked_add(self.settings.selection_timeout);
        let deadline = own.into_iter().chain(operation).min();
        loop {
            let known = self.news.known();
            if self.is_closed() {
                return Err(SelectionError::Closed);
            }
            if let Some(server) = self.choose(selector) {
                return Ok(server);
            }
            let is_hopeless = self.candidates(selector).all(|server| server.is_hopeless());
            self.candidates(selector).for_each(|server| server.request_check());
            if is_hopeless {
                return Err(SelectionError::Hopeless {
                    selector: selector.clone(),
                    servers: self.seen(),
                });
            }
            if !self.news.wait(known, deadline) {
                return Err(SelectionError::TimedOut {
                    selector: selector.clone(),
                    after: begin.elapsed(),
                    servers: self.seen(),
                });
            }
        }
    }

    fn candidates(&self, selector: &Selector) -> slice::Iter<'_, Arc<Server>> {
        self.servers.get(self.settings.places(selector)).unwrap_or_default().iter()
    }

    fn seen(&self) -> String {
        seen(self.servers.iter().map(|server| server.status()))
    }
}
