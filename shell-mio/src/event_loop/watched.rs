use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut};
use std::task::{Context, Poll};

use mio::event::Source;
use mio::{Interest, Token};

use super::EventLoop;

/// A socket on the event loop. Dropped, it is closed; [`end`](Self::end) gives it back.
pub struct Watched<S> {
    source: S,
    place: Place,
}

/// A token that is taken. It is free again when the socket is closed, of which the operating system
/// is not told: a socket that is closed is watched no more, and in a child process that would
/// concern the parent.
struct Place {
    token: Token,
    event_loop: EventLoop,
}

impl EventLoop {
    /// Watches a socket, for reading and writing.
    ///
    /// # Errors
    ///
    /// What the operating system says; or no token is left, in an
    /// [embedded](crate::PoolSource) pool with a short range of them.
    pub fn watch<S: Source>(&self, mut source: S) -> io::Result<Watched<S>> {
        let place = Place { token: self.inner.enlist()?, event_loop: self.clone() };
        let both = Interest::READABLE | Interest::WRITABLE;
        self.inner.registry()?.register(&mut source, place.token, both)?;
        Ok(Watched { source, place })
    }
}

impl<S> Watched<S> {
    /// Tries again each time that something happened to the socket, until it is not
    /// [`WouldBlock`](ErrorKind::WouldBlock). `attempt` is repeated at once after
    /// [`Interrupted`](ErrorKind::Interrupted), and may be tried more often than needed.
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

    /// As [`ready`](Self::ready), once.
    pub fn poll_ready<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut S) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            match attempt(&mut self.source) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.place.wait(cx);
                    return Poll::Pending;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    /// The same socket as something else, such as with TLS around it.
    #[must_use]
    pub fn map<T>(self, into: impl FnOnce(S) -> T) -> Watched<T> {
        Watched { source: into(self.source), place: self.place }
    }
}

impl<S: Source> Watched<S> {
    /// Gives the socket back. It stays as it is: non-blocking.
    ///
    /// # Errors
    ///
    /// What the operating system says; the socket is closed then.
    pub fn end(self) -> io::Result<S> {
        let Self { mut source, place } = self;
        place.event_loop.inner.registry()?.deregister(&mut source)?;
        Ok(source)
    }
}

impl Place {
    /// Events come from the thread that polls, and are kept until it asks: so what happens between
    /// an attempt and this is not missed.
    fn wait(&self, cx: &mut Context<'_>) {
        let Self { token, event_loop: EventLoop { inner, .. } } = self;
        let mut state = inner.state();
        let Some(waker) = state.sources.get_mut(token.0 - inner.tokens.start) else { return };
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
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

impl Drop for Place {
    fn drop(&mut self) {
        self.event_loop.inner.delist(self.token);
    }
}

impl<S: fmt::Debug> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("source", &self.source)
            .field("token", &self.place.token)
            .finish_non_exhaustive()
    }
}
