//! Waiting until there is a server: which one it is, [`cenote_shell::client`] says.

use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;

use cenote_core::client::{ClientError, SelectionError, Selector};
use cenote_core::pool::Purpose;

use super::{Client, Inner, Server};
use crate::connection::MongoConnector;
use crate::guard::PooledConnection;

impl Client {
    /// A connection, and the server that it is to. `place` is where the application asks for it.
    pub(super) fn check_out_at(
        &self,
        place: &'static Location<'static>,
        selector: &Selector,
        purpose: Purpose,
    ) -> Result<(&Arc<Server>, PooledConnection<MongoConnector>), ClientError> {
        let timeout = self.inner.servers.settings().operation_timeout;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let server = match self.inner.servers.choose(selector) {
            Some(server) => server,
            None => self.inner.wait_for(selector, deadline)?,
        };
        Ok((server, server.pool.check_out_at(place, purpose, deadline)?))
    }
}

impl Inner {
    /// Blocks until there is one, or the time is over, or nothing that could be waited for would help.
    /// Has servers checked meanwhile.
    fn wait_for(
        &self,
        selector: &Selector,
        operation: Option<Instant>,
    ) -> Result<&Arc<Server>, SelectionError> {
        let begin = Instant::now();
        let own = begin.checked_add(self.servers.settings().selection_timeout);
        let deadline = own.into_iter().chain(operation).min();
        loop {
            let known = self.news.known();
            if let Some(server) = self.servers.look(selector)? {
                return Ok(server);
            }
            if !self.news.wait(known, deadline) {
                return Err(self.servers.timed_out(selector, begin.elapsed()));
            }
        }
    }
}
