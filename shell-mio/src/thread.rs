//! The thread that turns an event loop for blocking callers.

use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use mio::{Events, Poll, Token, Waker};

use crate::event_loop::EventLoop;

/// The token of the waker; sockets have those after it.
const WAKER: Token = Token(0);

/// How many events are taken at once.
const EVENTS: usize = 256;

/// A loop for a thread to turn, and where its events come from.
pub(crate) fn event_loop() -> io::Result<(EventLoop, Poll)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    // Whoever is not woken looks again when the next thing happens.
    let wake = move || drop(waker.wake());
    let event_loop = EventLoop::new(poll.registry().try_clone()?, 1..usize::MAX, wake, true);
    Ok((event_loop, poll))
}

/// Who turns a loop, unless the application does. In a child process it is not there.
#[derive(Debug, Default)]
pub(crate) struct LoopThread(Mutex<Option<JoinHandle<()>>>);

impl LoopThread {
    /// Turns the loop until nothing goes on there any more. `ended` is called then, or when there is no
    /// thread to be had: nobody turns the loop.
    pub(crate) fn start(
        &self,
        event_loop: EventLoop,
        poll: Poll,
        ended: impl FnOnce(&EventLoop) + Send + 'static,
    ) -> io::Result<()> {
        let ending = Ending { event_loop, ended: Some(ended) };
        let builder = thread::Builder::new().name("cenote-loop".to_owned());
        let thread = builder.spawn(move || run(&ending.event_loop, poll))?;
        *self.lock() = Some(thread);
        Ok(())
    }

    /// Waits for the end of the thread, unless this is it.
    pub(crate) fn join(&self) {
        let is_another = |thread: &mut JoinHandle<()>| !is_this(thread);
        // Not under the lock: who asks on the thread itself must not wait either.
        let thread = self.lock().take_if(is_another);
        // If it panicked it has said so.
        let _ = thread.map(JoinHandle::join);
    }

    /// Whether this is the thread.
    pub(crate) fn is_here(&self) -> bool {
        self.lock().as_ref().is_some_and(is_this)
    }

    /// Forgets a thread that is not in this process: there is nothing to wait for, nor to detach.
    pub(crate) fn forget(&self) {
        std::mem::forget(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_this(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == thread::current().id()
}

/// Whatever becomes of the thread, nobody waits for its loop.
struct Ending<F: FnOnce(&EventLoop)> {
    event_loop: EventLoop,
    ended: Option<F>,
}

fn run(event_loop: &EventLoop, mut poll: Poll) {
    let mut events = Events::with_capacity(EVENTS);
    while !event_loop.is_idle() {
        match poll.poll(&mut events, event_loop.fall_asleep()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // The operating system has taken the loop away. Nothing can be opened any more.
            Err(_) => return,
        }
        for event in &events {
            event_loop.ready(event.token());
        }
        event_loop.turn();
    }
}

impl<F: FnOnce(&EventLoop)> Drop for Ending<F> {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended(&self.event_loop);
        }
    }
}
