//! Faults during the TLS handshake, which is below what the server sees.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::socket::Socket;

/// What goes wrong in the TLS handshakes of connections that are accepted from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFault {
    /// The server never says a word.
    Stall,
    /// The server closes the connection after so many bytes of its part of the handshake.
    CloseAfter {
        /// 0 is before the first byte, but after the client has spoken.
        bytes: usize,
    },
    /// The server's part of the handshake comes byte by byte.
    Drip {
        /// Time between two bytes; rounded up to a millisecond.
        every: Duration,
    },
    /// Instead of its part of the handshake the server sends text, and closes the connection.
    Garbage,
    /// Instead of its part of the handshake the server sends a fatal alert, and closes the
    /// connection.
    Alert {
        /// The number in the registry of TLS alerts, such as 80 for `internal_error`.
        description: u8,
    },
}

/// A socket whose writing side may be slow, or end early, until the handshake is over.
#[derive(Debug)]
pub(super) struct Faulty {
    socket: Socket,
    pace: Pace,
}

#[derive(Debug)]
enum Pace {
    Full,
    Drip { every: Duration, pause: Option<Pin<Box<Sleep>>> },
    CloseAfter { left: usize },
}

impl Faulty {
    pub(super) fn new(socket: Socket, fault: Option<TlsFault>) -> Self {
        let pace = match fault {
            None | Some(TlsFault::Stall | TlsFault::Garbage | TlsFault::Alert { .. }) => Pace::Full,
            Some(TlsFault::Drip { every }) => Pace::Drip { every, pause: None },
            Some(TlsFault::CloseAfter { bytes }) => Pace::CloseAfter { left: bytes },
        };
        Self { socket, pace }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The handshake is over: nothing goes wrong any more.
    pub(super) fn recover(&mut self) {
        self.pace = Pace::Full;
    }
}

impl AsyncRead for Faulty {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Faulty {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { socket, pace } = self.get_mut();
        let socket = Pin::new(socket);
        match pace {
            Pace::Full => socket.poll_write(cx, bytes),
            Pace::Drip { every, pause } => {
                if let Some(running) = pause {
                    ready!(running.as_mut().poll(cx));
                }
                let written = ready!(socket.poll_write(cx, bytes.get(..1).unwrap_or(bytes)))?;
                *pause = Some(Box::pin(sleep(*every)));
                Poll::Ready(Ok(written))
            }
            Pace::CloseAfter { left: 0 } => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Pace::CloseAfter { left } => {
                let few = bytes.get(..*left).unwrap_or(bytes);
                let written = ready!(socket.poll_write(cx, few))?;
                *left -= written;
                Poll::Ready(Ok(written))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
