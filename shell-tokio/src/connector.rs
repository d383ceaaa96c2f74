use std::future::Future;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{ConnId, Input, ServiceId};
use tokio::time::Instant;

use crate::shared::Shared;

/// How connections are made and judged: what a driver brings that has sockets and a handshake of
/// its own.
///
/// [`MongoConnector`](crate::MongoConnector) is the one that is there.
pub trait Connector: Send + Sync + Sized + 'static {
    /// What is pooled. It is dropped to close it, on whatever thread finds that it is time: that
    /// must not block. If it panics, nobody else notices.
    type Connection: Send + 'static;

    /// Opens a connection to `target`, ready for its first command.
    ///
    /// In load-balanced mode it calls [`HandshakeReporter::handshaken`] once hello is done. It ends by
    /// `target`'s deadline, if there is one, with an error that says how far it came; where it does
    /// not, it is given up then. When the pool has no use for the connection any more,
    /// the future is dropped.
    ///
    /// # Errors
    ///
    /// Why there is no connection. It fails the request that the connection was for.
    fn connect(
        &self,
        target: Target,
        progress: HandshakeReporter<Self>,
    ) -> impl Future<Output = Result<Self::Connection, ConnectionError>> + Send;

    /// Why a connection that comes back must not be used again, such as a reply that was not read
    /// to its end; `None`, the default, is for none. Called when a guard is dropped: it must not
    /// block (CO-19). If it panics, the connection is taken for broken.
    fn fault(&self, connection: &Self::Connection) -> Option<ConnectionError> {
        let _ = connection;
        None
    }
}

/// Where a connection is to go, and by when.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// The server.
    pub address: Arc<ServerAddress>,
    /// The number of the connection, as in events: 1, 2, 3, …
    pub connection_id: u64,
    /// When the request for which it is made gives up; `None` for a connection that nobody waits
    /// for, or who waits without limit. The connector has limits of its own besides.
    pub deadline: Option<Instant>,
    /// Whether it is made for the minimum and not for a request (CS-08).
    pub background: bool,
}

/// How a connector tells what it knows before it is done.
pub struct HandshakeReporter<K: Connector> {
    pub(crate) shared: Arc<Shared<K>>,
    pub(crate) id: ConnId,
}

impl<K: Connector> HandshakeReporter<K> {
    /// Hello is done, and the server is of this service. To be called once, and only in
    /// load-balanced mode: from now on a clear of that service concerns the connection (LB-03).
    ///
    /// # Panics
    ///
    /// When it is called twice, or for a pool that is not load-balanced.
    pub fn handshaken(&self, service: ServiceId) {
        self.shared.feed(Input::Handshaken { id: self.id, service: Some(service) });
    }
}

impl<K: Connector> std::fmt::Debug for HandshakeReporter<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandshakeReporter").field("id", &self.id).finish_non_exhaustive()
    }
}
