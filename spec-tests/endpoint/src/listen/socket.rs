//! Accepted sockets, TCP or UNIX domain, below TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::tls_fault::Faulty;

/// A stream that can be reset, and not only closed.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    /// Makes the end of the stream a reset.
    ///
    /// # Errors
    ///
    /// When the operating system refuses it.
    fn reset_when_dropped(&self) -> io::Result<()>;
}

/// An accepted socket.
pub(super) type Socket = Either<TcpStream, UnixStream>;

impl Transport for Socket {
    /// A UNIX domain socket has no reset: it ends as any does.
    fn reset_when_dropped(&self) -> io::Result<()> {
        match self {
            Self::Left(stream) => socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)),
            Self::Right(_) => Ok(()),
        }
    }
}

impl Transport for TlsStream<Faulty> {
    fn reset_when_dropped(&self) -> io::Result<()> {
        self.get_ref().0.socket().reset_when_dropped()
    }
}
