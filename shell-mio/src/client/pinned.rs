use std::fmt;
use std::panic::Location;

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector};
use cenote_core::pool::Purpose;
use cenote_shell::client::{PinnedState, SelectedFor};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::pool::Until;

use super::Client;
use crate::check_out::check_out;
use crate::connection::MongoConnector;
use crate::event_loop::EventLoop;
use crate::pooled_connection::PooledConnection;

/// The server of a cursor or a transaction. Behind a load balancer one connection stays checked out for it;
/// anywhere else each use checks out any connection to the same server.
///
/// Dropping it, or [`unpin`](Self::unpin), checks the pinned connection in. It has one user at a time. A cursor
/// in a transaction uses the transaction's.
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_core::pool::Purpose;
/// use cenote_mio::{Client, ClientError, Selector};
///
/// # fn example(client: Client) -> Result<(), ClientError> {
/// let mut cursor = client.pin(&Selector::Any, Purpose::Cursor)?;
/// let find = rawdoc! { "find": "birds", "batchSize": 2 };
/// let first = cursor.with_connection(|connection| {
///     Ok::<_, ClientError>(connection.command("zoo", &find)?)
/// });
/// println!("{:?}", first?);
/// // … getMore, until the cursor's id is 0.
/// cursor.unpin();
/// # Ok(())
/// # }
/// ```
// LB-30, LB-35, LB-37.
pub struct Pinned {
    state: PinnedState<EventLoop, PooledConnection<MongoConnector>>,
}

impl Client {
    /// Selects a server for a cursor or a transaction. Behind a load balancer a connection stays checked out
    /// for it, and is counted by its purpose.
    ///
    /// # Errors
    ///
    /// There is no such server, or no connection.
    #[track_caller]
    pub fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Pinned, ClientError> {
        self.pin_with(selector, purpose, OperationOptions::new())
    }

    /// As [`pin`](Self::pin), with a limit of this call for selection and check-out.
    ///
    /// # Errors
    ///
    /// As [`pin`](Self::pin).
    #[track_caller]
    pub fn pin_with(
        &self,
        selector: &Selector,
        purpose: Purpose,
        options: OperationOptions,
    ) -> Result<Pinned, ClientError> {
        let (caller, limit) = (Location::caller(), self.inner.limit(options));
        let selected_for = SelectedFor::Method("pin");
        let checked_out = self.check_out_at(caller, selector, purpose, limit, selected_for);
        let (server, connection) = checked_out?;
        Ok(Pinned { state: PinnedState::new(&server, purpose, connection) })
    }
}

impl Pinned {
    /// Passes the connection to `operation`: the pinned one, or one to the same server.
    ///
    /// After an error the connection stays pinned, even if it is broken: a `getMore` that failed is not sent on
    /// another one.
    ///
    /// # Errors
    ///
    /// There is no connection, or the error of `operation`.
    // LB-33, LB-34.
    #[track_caller]
    pub fn with_connection<R, E: From<ClientError>>(
        &mut self,
        operation: impl FnOnce(&mut PooledConnection<MongoConnector>) -> Result<R, E>,
    ) -> Result<R, E> {
        let caller = Location::caller();
        let connection = match self.state.take() {
            Some(connection) => connection,
            None => {
                let (server, purpose) = (self.state.server(), self.state.purpose());
                let driver = server.pool().driver();
                let checked_out = check_out(driver, caller, purpose, Until::Timeout);
                checked_out.map_err(ClientError::from)?
            }
        };
        operation(self.state.lend(connection, &mut None))
    }

    /// Checks the pinned connection in, if there is one: [`cenote_shell::client::Pinned::unpin`].
    // LB-32, LB-36.
    pub fn unpin(&mut self) {
        self.state.unpin();
    }

    /// Whether a connection is pinned now.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.state.is_pinned()
    }

    /// The server that was selected.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.state.address()
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}
