use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector};
use cenote_core::pool::Purpose;

use super::{Checked, Client, SelectedFor, Server};
use crate::connection::Connection;
use crate::connection::operation::OperationOptions;
use crate::pool::Until;
use crate::runtime::{CurrentRuntime, Network};

/// The server of a cursor or a transaction. Behind a load balancer one connection stays checked out for it;
/// anywhere else each use checks out any connection to the same server.
///
/// Dropping it, or [`unpin`](Self::unpin), checks the pinned connection in. It has one user at a time. A cursor
/// in a transaction uses the transaction's.
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_core::client::{ClientError, Selector};
/// use cenote_core::pool::Purpose;
/// # use cenote_shell::client::Client;
/// # use cenote_shell::connection::Connection;
/// # use cenote_shell::runtime::{CurrentRuntime, Network};
///
/// # async fn example<R: Network<Connection = Connection<R>> + CurrentRuntime>(
/// #     client: Client<R>,
/// # ) -> Result<(), ClientError> {
/// let mut cursor = client.pin(&Selector::Any, Purpose::Cursor).await?;
/// let find = rawdoc! { "find": "birds", "batchSize": 2 };
/// let first = cursor.with_connection(async |connection| {
///     Ok::<_, ClientError>(connection.command("zoo", &find).await?)
/// });
/// println!("{:?}", first.await?);
/// // … getMore, until the cursor's id is 0.
/// cursor.unpin();
/// # Ok(())
/// # }
/// ```
// LB-30, LB-31, LB-35, LB-37, LN-01.
pub struct Pinned<R: Network> {
    state: PinnedState<R, Checked<R>>,
}

/// A [`Pinned`] with guards of type `C`, for faces that have guards of their own.
pub struct PinnedState<R: Network, C> {
    server: Arc<Server<R>>,
    purpose: Purpose,
    connection: Option<C>,
}

impl<R: Network<Connection = Connection<R>> + CurrentRuntime> Client<R> {
    /// Selects a server for a cursor or a transaction. Behind a load balancer a connection stays checked out
    /// for it, and is counted by its purpose.
    ///
    /// # Errors
    ///
    /// There is no such server, or no connection.
    // ER-06, LB-06.
    #[track_caller]
    pub fn pin<'a>(
        &'a self,
        selector: &'a Selector,
        purpose: Purpose,
    ) -> impl Future<Output = Result<Pinned<R>, ClientError>> + Send + 'a {
        // A function that returns a future, because an `async fn` would not know the caller.
        self.pin_with(selector, purpose, OperationOptions::new())
    }

    /// As [`pin`](Self::pin), with a limit of this call for selection and check-out.
    ///
    /// # Errors
    ///
    /// As [`pin`](Self::pin).
    #[track_caller]
    pub fn pin_with<'a>(
        &'a self,
        selector: &'a Selector,
        purpose: Purpose,
        options: OperationOptions,
    ) -> impl Future<Output = Result<Pinned<R>, ClientError>> + Send + 'a {
        let caller = Location::caller();
        async move {
            let limit = self.inner.limit(options);
            let selected_for = SelectedFor::Method("pin");
            let checked_out = self.check_out_at(caller, selector, purpose, &limit, selected_for);
            let (server, connection) = checked_out.await?;
            Ok(Pinned::new(PinnedState::new(&server, purpose, connection)))
        }
    }
}

impl<R: Network> Pinned<R> {
    const fn new(state: PinnedState<R, Checked<R>>) -> Self {
        Self { state }
    }

    /// Checks the pinned connection in, if there is one: when the cursor's id is 0, or the rules for
    /// transactions say so. Later uses check out another one.
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

impl<R: Network<Connection = Connection<R>> + CurrentRuntime> Pinned<R> {
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
    pub fn with_connection<T, E: From<ClientError>>(
        &mut self,
        operation: impl AsyncFnOnce(&mut Checked<R>) -> Result<T, E>,
    ) -> impl Future<Output = Result<T, E>> {
        // A function that returns a future, because an `async fn` would not know the caller.
        let caller = Location::caller();
        async move {
            let state = &mut self.state;
            let connection = match state.take() {
                Some(connection) => connection,
                None => {
                    let pool = state.server.pool();
                    let checked_out =
                        pool.check_out_at(caller, state.purpose, Until::Timeout).await;
                    checked_out.map_err(ClientError::from)?
                }
            };
            // If the future is dropped now, a pinned connection stays with `self`.
            operation(state.lend(connection, &mut None)).await
        }
    }
}

impl<R: Network, C> PinnedState<R, C> {
    /// With the connection that was checked out when the server was selected.
    pub fn new(server: &Arc<Server<R>>, purpose: Purpose, connection: C) -> Self {
        Self { server: Arc::clone(server), purpose, connection: Some(connection) }
    }

    /// The connection for the next use, to be [lent](Self::lend). With `None` one is checked out of the
    /// server's pool.
    pub fn take(&mut self) -> Option<C> {
        self.connection.take()
    }

    /// Lends the connection for one use. It is kept here if the server is a load balancer, and otherwise in
    /// `slot`, whose end checks it in.
    pub fn lend<'a>(&'a mut self, connection: C, slot: &'a mut Option<C>) -> &'a mut C {
        let slot = if self.server.is_load_balancer() { &mut self.connection } else { slot };
        slot.insert(connection)
    }

    /// See [`Pinned::unpin`].
    pub fn unpin(&mut self) {
        self.connection = None;
    }

    /// See [`Pinned::is_pinned`].
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.connection.is_some() && self.server.is_load_balancer()
    }

    /// The server that was selected.
    #[must_use]
    pub const fn server(&self) -> &Arc<Server<R>> {
        &self.server
    }

    /// What the connections are for.
    #[must_use]
    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.server.pool().driver().address()
    }
}

impl<R: Network, C> fmt::Debug for PinnedState<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned")
            .field("address", self.address())
            .field("purpose", &self.purpose)
            .field("is_pinned", &self.is_pinned())
            .finish_non_exhaustive()
    }
}

impl<R: Network> fmt::Debug for Pinned<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}
