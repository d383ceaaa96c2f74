//! The thread that turns the event loop of a pool for blocking callers.

use std::io::{self, ErrorKind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use cenote_core::pool::Status;
use mio::{Events, Poll, Token, Waker};

use crate::connector::Connector;
use crate::event_loop::EventLoop;
use crate::shared::Shared;
use crate::timer;

/// The token of the waker; sockets have those after it.
const WAKER: Token = Token(0);

/// How many events are taken at once.
const EVENTS: usize = 256;

pub(crate) type LoopThread = JoinHandle<()>;

/// A loop for a thread to turn, and where its events come from.
pub(crate) fn event_loop() -> io::Result<(EventLoop, Poll)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    // Whoever is not woken looks again when the next thing happens.
    let wake = move || drop(waker.wake());
    let event_loop = EventLoop::new(poll.registry().try_clone()?, 1..usize::MAX, wake, true);
    Ok((event_loop, poll))
}

/// Turns the loop until the pool is closed and nothing is being opened any more.
pub(crate) fn start<K: Connector>(
    shared: &Arc<Shared<K>>,
    event_loop: EventLoop,
    poll: Poll,
) -> io::Result<()> {
    let own = Arc::clone(shared);
    let builder = thread::Builder::new().name("cenote-loop".to_owned());
    let ending = Ending { shared: own, event_loop };
    let thread = builder.spawn(move || run(&ending, poll))?;
    *place(shared) = Some(thread);
    Ok(())
}

/// Waits for the end of the thread, unless this is it.
pub(crate) fn join<K: Connector>(shared: &Arc<Shared<K>>) {
    let is_another = |thread: &mut LoopThread| thread.thread().id() != thread::current().id();
    // Not under the lock: who asks on the thread itself must not wait either.
    let thread = place(shared).take_if(is_another);
    // If it panicked it has said so.
    let _ = thread.map(JoinHandle::join);
}

/// Forgets a thread that is not in this process: there is nothing to wait for, nor to detach.
pub(crate) fn forget<K: Connector>(shared: &Arc<Shared<K>>) {
    std::mem::forget(place(shared).take());
}

fn place<K: Connector>(shared: &Arc<Shared<K>>) -> MutexGuard<'_, Option<LoopThread>> {
    shared.thread.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whatever becomes of the thread, nobody waits for its loop.
struct Ending<K: Connector> {
    shared: Arc<Shared<K>>,
    event_loop: EventLoop,
}

fn run<K: Connector>(Ending { shared, event_loop }: &Ending<K>, mut poll: Poll) {
    let mut events = Events::with_capacity(EVENTS);
    while !is_over(shared, event_loop) {
        let timeout = timer::next(shared, event_loop);
        match poll.poll(&mut events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // The operating system has taken the loop away. Nothing can be opened any more.
            Err(_) => return,
        }
        for event in &events {
            event_loop.ready(event.token());
        }
        event_loop.turn();
        timer::fire(shared, event_loop);
    }
}

fn is_over<K: Connector>(shared: &Arc<Shared<K>>, event_loop: &EventLoop) -> bool {
    shared.snapshot().status == Status::Closed && event_loop.is_idle()
}

impl<K: Connector> Drop for Ending<K> {
    fn drop(&mut self) {
        self.shared.end_loop(&self.event_loop);
    }
}
