//! What bytes travel on: TCP or a UNIX domain socket, below TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use super::tls_fault::Faulty;

/// A stream that can be reset, and not only closed.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    /// Makes the end of the stream a reset.
    ///
    /// # Errors
    ///
    /// When the operating system does not want to.
    fn reset_when_dropped(&self) -> io::Result<()>;
}

/// A socket that was accepted.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Transport for Socket {
    /// A UNIX domain socket has no reset: it ends as any does.
    fn reset_when_dropped(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)),
            Self::Unix(_) => Ok(()),
        }
    }
}

impl Transport for TlsStream<Faulty> {
    fn reset_when_dropped(&self) -> io::Result<()> {
        self.get_ref().0.socket().reset_when_dropped()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
