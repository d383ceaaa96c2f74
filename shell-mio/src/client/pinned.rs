use std::panic::Location;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector};
use cenote_core::pool::Purpose;
use cenote_shell::client::Watching;

use super::{Client, Server};
use crate::connection::MongoConnector;
use crate::guard::PooledConnection;

/// What a cursor or a transaction goes on with: behind a load balancer its one connection, which is
/// not checked in meanwhile (LB-30); anywhere else any connection to the same server.
///
/// Dropped or [unpinned](Self::unpin), a pinned connection goes back to its pool. One user at a time:
/// it is lent mutably (LB-35). A cursor in a transaction uses the transaction's (LB-37).
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
pub struct Pinned {
    server: Arc<Server>,
    purpose: Purpose,
    held: Option<PooledConnection<MongoConnector>>,
}

impl Client {
    /// Chooses a server for a cursor or a transaction. Behind a load balancer a connection is checked
    /// out at once, and counted by its purpose (LB-06).
    ///
    /// # Errors
    ///
    /// There is no such server, or no connection.
    #[track_caller]
    pub fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Pinned, ClientError> {
        let (server, connection) = self.check_out_at(Location::caller(), selector, purpose)?;
        Ok(Pinned { server: Arc::clone(server), purpose, held: Some(connection) })
    }
}

impl Pinned {
    /// Does something with the connection: the pinned one, or one to the same server.
    ///
    /// After an error the connection stays pinned, as broken as it may be: a `getMore` that failed is
    /// not sent on another one (LB-33, LB-34).
    ///
    /// # Errors
    ///
    /// There is no connection, or what `operation` fails with.
    #[track_caller]
    pub fn with_connection<R, E: From<ClientError>>(
        &mut self,
        operation: impl FnOnce(&mut PooledConnection<MongoConnector>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut connection = match self.held.take() {
            Some(connection) => connection,
            None => {
                let checked_out = self.server.pool.check_out_for(self.purpose, None);
                checked_out.map_err(ClientError::from)?
            }
        };
        if !self.is_pinning() {
            return operation(&mut connection);
        }
        operation(self.held.insert(connection))
    }

    /// Gives the connection back, if one is pinned: when the cursor's id is 0, or the transaction's
    /// rules say so (LB-32, LB-36). What is asked for later is done on another one.
    pub fn unpin(&mut self) {
        self.held = None;
    }

    /// Whether a connection is kept now.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.held.is_some() && self.is_pinning()
    }

    /// The server that was chosen.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.server.pool.address()
    }

    /// LB-30: only behind a load balancer can another connection be another server.
    fn is_pinning(&self) -> bool {
        matches!(self.server.watching, Watching::LoadBalancer)
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned")
            .field("address", self.address())
            .field("purpose", &self.purpose)
            .field("is_pinned", &self.is_pinned())
            .finish_non_exhaustive()
    }
}
