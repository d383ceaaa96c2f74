//! Connections on sockets that somebody else opened.

use std::io;

use cenote_core::error::{ConnectionError, Stage};

use super::limit::Limit;
use super::messages::Messages;
use super::stream::{Socket, Stream};
use super::{Connection, MongoConnector, handshake};
use crate::connector::{Connector, HandshakeReporter, Target};

/// A socket that is connected, for [`MongoConnector::establish`]. Whether it blocks does not matter.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenSocket {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// A UNIX domain socket.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl From<std::net::TcpStream> for OpenSocket {
    fn from(socket: std::net::TcpStream) -> Self {
        Self::Tcp(socket)
    }
}

#[cfg(unix)]
impl From<std::os::unix::net::UnixStream> for OpenSocket {
    fn from(socket: std::os::unix::net::UnixStream) -> Self {
        Self::Unix(socket)
    }
}

impl MongoConnector {
    /// Says hello and authenticates on a socket that is connected already, such as one to the near end
    /// of a tunnel: for a [`Connector`] of one's own, which connects, calls this, and leaves
    /// [`Connector::fault`] and [`Connector::interrupter`] to this one's.
    ///
    /// Takes until `target`'s deadline at most, and `connectTimeoutMS` from now, and for each command
    /// as long as [`MongoConnector`] says: whoever wants that to cover connecting, too, puts the deadline forward
    /// before. Of the connection string it does not use what is about opening: hosts, TLS and the proxy.
    /// Tells `progress` when hello is done, where that matters.
    ///
    /// What is no socket of the operating system cannot be waited for by an event loop, nor broken off
    /// from another thread: it needs a `Connection` type of one's own.
    ///
    /// # Errors
    ///
    /// The socket failed or was too slow, the server said no, or is none.
    pub async fn establish<K: Connector>(
        &self,
        stream: impl Into<OpenSocket> + Send,
        target: &Target,
        progress: &HandshakeReporter<K>,
    ) -> Result<Connection, ConnectionError> {
        let limit = Limit::of(target, &self.settings).and_each_command(target, &self.settings);
        let socket = non_blocking(stream.into());
        let socket = socket.map_err(|error| ConnectionError::network(Stage::Tcp, error))?;
        let stream = target.event_loop.watch(Stream::new(socket));
        let stream = stream.map_err(|error| ConnectionError::network(Stage::Tcp, error))?;
        handshake::establish(self, stream.map(Messages::new), &limit, progress).await
    }
}

fn non_blocking(socket: OpenSocket) -> io::Result<Socket> {
    match socket {
        OpenSocket::Tcp(socket) => {
            socket.set_nonblocking(true)?;
            Ok(Socket::Tcp(mio::net::TcpStream::from_std(socket)))
        }
        #[cfg(unix)]
        OpenSocket::Unix(socket) => {
            socket.set_nonblocking(true)?;
            Ok(Socket::Unix(mio::net::UnixStream::from_std(socket)))
        }
    }
}
