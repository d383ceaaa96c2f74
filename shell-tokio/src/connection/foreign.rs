//! Connections on streams that somebody else opened.

use cenote_core::error::ConnectionError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::limit::Limit;
use super::messages::Messages;
use super::stream::Stream;
use super::{Connection, MongoConnector, handshake};
use crate::connector::{Connector, HandshakeReporter, Target};

impl MongoConnector {
    /// Says hello and authenticates on a stream that is open already, such as one through a tunnel,
    /// over a TLS of another kind or in a simulated network: for a [`Connector`] of one's own, which
    /// opens the stream, calls this, and leaves [`Connector::fault`] to this one's.
    ///
    /// Takes until `target`'s deadline at most, and `connectTimeoutMS` from now, and for each command
    /// as long as [`MongoConnector`] says: whoever wants that to cover the opening, too, puts the deadline forward
    /// before. Of the connection string it does not use what is about opening: hosts, TLS and the proxy.
    /// Tells `progress` when hello is done, where that matters.
    ///
    /// # Errors
    ///
    /// The stream failed or was too slow, the server said no, or is none.
    pub async fn establish<K: Connector>(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        target: &Target,
        progress: &HandshakeReporter<K>,
    ) -> Result<Connection, ConnectionError> {
        let limit = Limit::of(target, &self.settings).and_each_command(target, &self.settings);
        let messages = Messages::new(Stream::Foreign(Box::new(stream)));
        handshake::establish(self, messages, limit, progress).await
    }
}
