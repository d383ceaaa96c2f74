use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use cenote_shell::runtime::AsyncStream;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connected stream of the application's, for
/// [`MongoConnector::establish`](cenote_shell::connection::MongoConnector::establish): made from any tokio
/// stream, such as one through a tunnel or in a simulated network.
pub struct OpenStream(Box<dyn TokioIo>);

impl OpenStream {
    pub(crate) fn into_inner(self) -> Box<dyn TokioIo> {
        self.0
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> From<S> for OpenStream {
    fn from(stream: S) -> Self {
        Self(Box::new(TokioStream { stream, is_readable: |_| None }))
    }
}

impl fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStream").finish_non_exhaustive()
    }
}

/// A stream of a connection.
pub trait TokioIo: AsyncStream {
    /// [`Network::is_readable`](cenote_shell::runtime::Network::is_readable).
    fn is_readable(&self) -> Option<bool>;
}

/// A tokio stream with the traits of futures-io. Unlike tokio-util's `Compat` it forwards vectored writes,
/// with which several TLS records leave in one system call.
struct TokioStream<S> {
    stream: S,
    is_readable: fn(&S) -> Option<bool>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TokioIo for TokioStream<S> {
    fn is_readable(&self) -> Option<bool> {
        (self.is_readable)(&self.stream)
    }
}

/// A TCP connection.
pub(crate) fn tcp(stream: TcpStream) -> Box<dyn TokioIo> {
    let is_readable = |it: &TcpStream| {
        let mut is_readable = false;
        // Called only if the socket has become readable since a read would have blocked.
        let _ = it.try_io(Interest::READABLE, || peek(&SockRef::from(it), &mut is_readable));
        Some(is_readable)
    };
    Box::new(TokioStream { stream, is_readable })
}

/// A connection to a Unix domain socket.
#[cfg(unix)]
pub(crate) fn unix(stream: UnixStream) -> Box<dyn TokioIo> {
    let is_readable = |it: &UnixStream| {
        let mut is_readable = false;
        let _ = it.try_io(Interest::READABLE, || peek(&SockRef::from(it), &mut is_readable));
        Some(is_readable)
    };
    Box::new(TokioStream { stream, is_readable })
}

/// Finds out whether a read would not block. Returns what tokio has to know of it.
#[cold]
fn peek(socket: &SockRef<'_>, is_readable: &mut bool) -> io::Result<usize> {
    let peeked = socket.peek(&mut [MaybeUninit::uninit()]);
    *is_readable = !matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
    peeked
}

impl<S: AsyncRead + Unpin> futures_io::AsyncRead for TokioStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<S: AsyncWrite + Unpin> futures_io::AsyncWrite for TokioStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
