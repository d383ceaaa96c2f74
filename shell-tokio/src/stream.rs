use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

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
        Self(Box::new(TokioStream { stream, idle: None }))
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
    fn is_readable(&mut self) -> Option<bool>;
}

/// A tokio stream with the traits of futures-io. Unlike tokio-util's `Compat` it forwards vectored writes,
/// with which several TLS records leave in one system call.
struct TokioStream<S> {
    stream: S,
    idle: Option<IdleSocket<S>>,
}

/// How a socket is looked at while its connection is idle.
struct IdleSocket<S> {
    socket: fn(&S) -> SockRef<'_>,
    /// The stream's `try_io` for reads: the operation is called only if the socket has become readable since a read would
    /// have blocked, as far as the runtime knows.
    try_read: fn(&S, &mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize>,
    /// When to look again.
    due: Instant,
    /// There is something to read, of which the runtime may not know yet.
    is_readable: bool,
}

/// A connection in constant use is looked at this often.
const HOT: Duration = Duration::from_millis(1);

/// If a look has been due for longer, the runtime may have had no time to ask the operating system meanwhile: its threads may
/// have computed. The look does.
const BUSY: Duration = Duration::from_millis(100);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TokioIo for TokioStream<S> {
    #[inline]
    fn is_readable(&mut self) -> Option<bool> {
        let Self { stream, idle } = self;
        let idle = idle.as_mut()?;
        let now = Instant::now();
        if now >= idle.due {
            idle.look(stream, now);
        }
        Some(idle.is_readable)
    }
}

impl<S> IdleSocket<S> {
    #[cold]
    fn look(&mut self, stream: &S, now: Instant) {
        let is_fresh = now.saturating_duration_since(self.due) < BUSY;
        self.due = now + HOT;
        let mut is_readable = false;
        let mut peek = || peek(&(self.socket)(stream), &mut is_readable);
        let _ = if is_fresh { (self.try_read)(stream, &mut peek) } else { peek() };
        self.is_readable = is_readable;
    }
}

/// A TCP connection.
pub(crate) fn tcp(stream: TcpStream) -> Box<dyn TokioIo> {
    let try_read = |it: &TcpStream, read: &mut dyn FnMut() -> io::Result<usize>| {
        it.try_io(Interest::READABLE, read)
    };
    with_socket(stream, |it| SockRef::from(it), try_read)
}

/// A connection to a Unix domain socket.
#[cfg(unix)]
pub(crate) fn unix(stream: UnixStream) -> Box<dyn TokioIo> {
    let try_read = |it: &UnixStream, read: &mut dyn FnMut() -> io::Result<usize>| {
        it.try_io(Interest::READABLE, read)
    };
    with_socket(stream, |it| SockRef::from(it), try_read)
}

fn with_socket<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    socket: fn(&S) -> SockRef<'_>,
    try_read: fn(&S, &mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize>,
) -> Box<dyn TokioIo> {
    let idle = IdleSocket { socket, try_read, due: Instant::now(), is_readable: false };
    Box::new(TokioStream { stream, idle: Some(idle) })
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
        let Self { stream, idle } = &mut *self;
        if let Some(idle) = idle.as_mut().filter(|idle| idle.is_readable) {
            match (&*(idle.socket)(stream)).read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => idle.is_readable = false,
                read => return Poll::Ready(read),
            }
        }
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
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
