//! Waiting until there is a server: which one it is, [`cenote_shell::client`] says.

use std::panic::Location;
use std::sync::Arc;

use cenote_core::client::{ClientError, SelectionError, Selector};
use cenote_core::pool::Purpose;
use tokio::time::{Instant, timeout_at};

use super::{Client, Inner, Server};
use crate::connection::MongoConnector;
use crate::guard::PooledConnection;

impl Client {
    /// A connection, and the server that it is to. `place` is where the application asks for it.
    pub(super) async fn check_out_at<'a>(
        &'a self,
        place: &'static Location<'static>,
        selector: &Selector,
        purpose: Purpose,
    ) -> Result<(&'a Arc<Server>, PooledConnection<MongoConnector>), ClientError> {
        let timeout = self.inner.servers.settings().operation_timeout;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let server = match self.inner.servers.choose(selector) {
            Some(server) => server,
            None => self.inner.wait_for(selector, deadline).await?,
        };
        Ok((server, server.pool.check_out_at(place, purpose, deadline).await?))
    }
}

impl Inner {
    /// Until there is one, or the time is over, or nothing that could be waited for would help. Has
    /// servers checked meanwhile.
    async fn wait_for<'a>(
        &'a self,
        selector: &Selector,
        operation: Option<Instant>,
    ) -> Result<&'a Arc<Server>, SelectionError> {
        let begin = Instant::now();
        let own = begin.checked_add(self.servers.settings().selection_timeout);
        let deadline = own.into_iter().chain(operation).min();
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // Before anything is looked at, so that no news falls between.
            news.as_mut().enable();
            if let Some(server) = self.servers.look(selector)? {
                return Ok(server);
            }
            let waited = match deadline {
                Some(deadline) => timeout_at(deadline, news).await,
                None => {
                    news.await;
                    Ok(())
                }
            };
            if waited.is_err() {
                return Err(self.servers.timed_out(selector, begin.elapsed()));
            }
        }
    }
}
