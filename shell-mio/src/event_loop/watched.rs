use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};
use mio::event::Source;
use mio::{Interest, Token};

use super::EventLoop;

/// A socket that is registered with the event loop. Dropped, it is closed; [`end`](Self::end) gives it
/// back.
pub struct Watched<S> {
    source: S,
    registration: Registration,
}

/// A token in use. Dropping it frees the token but does not deregister the socket: the operating system
/// does that when the socket is closed, and in a child process it would deregister the parent's.
struct Registration {
    token: Token,
    event_loop: EventLoop,
}

impl EventLoop {
    /// Registers a socket, for reading and writing.
    ///
    /// # Errors
    ///
    /// An error of the operating system; no token is left, in an [embedded](crate::PoolSource) pool with a
    /// short range of them; the event loop has ended.
    pub fn watch<S: Source>(&self, mut source: S) -> io::Result<Watched<S>> {
        let (token, poll) = self.inner.take_token()?;
        let registration = Registration { token, event_loop: self.clone() };
        let both = Interest::READABLE | Interest::WRITABLE;
        poll.registry.register(&mut source, token, both)?;
        Ok(Watched { source, registration })
    }
}

impl<S> Watched<S> {
    /// Repeats `attempt` after each event of the socket, until it returns something else than
    /// [`WouldBlock`](ErrorKind::WouldBlock). Repeats it at once after
    /// [`Interrupted`](ErrorKind::Interrupted). May repeat it more often than needed.
    ///
    /// # Errors
    ///
    /// That of `attempt`.
    pub async fn ready<R>(
        &mut self,
        mut attempt: impl FnMut(&mut S) -> io::Result<R>,
    ) -> io::Result<R> {
        poll_fn(|cx| self.poll_ready(cx, &mut attempt)).await
    }

    /// One poll of [`ready`](Self::ready).
    pub fn poll_ready<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut S) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            match attempt(&mut self.source) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.registration.wait(cx);
                    return Poll::Pending;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    /// The same socket as another type, such as with TLS around it.
    #[must_use]
    pub fn map<T>(self, into: impl FnOnce(S) -> T) -> Watched<T> {
        Watched { source: into(self.source), registration: self.registration }
    }
}

impl<S: Source> Watched<S> {
    /// Deregisters the socket and returns it. It stays non-blocking.
    ///
    /// # Errors
    ///
    /// An error of the operating system, or the event loop has ended. The socket is closed then.
    pub fn end(self) -> io::Result<S> {
        let Self { mut source, registration: Registration { token: _, ref event_loop } } = self;
        let poll = event_loop.inner.state().poll()?;
        poll.registry.deregister(&mut source)?;
        Ok(source)
    }
}

impl Registration {
    /// Nothing is missed between an attempt and this: tasks run on the thread that polls for events, which
    /// are kept until it does so again.
    fn wait(&self, cx: &mut Context<'_>) {
        let Self { token, event_loop: EventLoop { inner } } = self;
        let mut state = inner.state();
        let Some(waker) = state.sockets.get_mut(token.0 - inner.tokens.start) else { return };
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.event_loop.inner.free_token(self.token);
    }
}

impl<S: Read + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_ready(cx, |source| source.read(buffer))
    }
}

impl<S: Write + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_ready(cx, |source| source.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_ready(cx, Write::flush)
    }

    /// The socket is closed when it is dropped.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl<S> Deref for Watched<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}

impl<S> DerefMut for Watched<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.source
    }
}

impl<S: fmt::Debug> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("source", &self.source)
            .field("token", &self.registration.token)
            .finish_non_exhaustive()
    }
}
