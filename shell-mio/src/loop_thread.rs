//! The thread that turns the event loop of a pool or of a client.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use mio::{Events, Poll, Token, Waker};

use crate::event_loop::{EventLoop, Owner};
use cenote_shell::runtime::process::Process;

/// The token of the waker; sockets have those after it.
const WAKER: Token = Token(0);

/// How many events are taken at once.
const EVENTS: usize = 256;

/// An event loop for a thread to turn, and the source of its events.
pub(crate) fn new_event_loop(owner: Owner) -> io::Result<(EventLoop, Poll)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    // If that fails, the loop looks at its queues after the next event.
    let wake = move || drop(waker.wake());
    let event_loop = EventLoop::new(poll.registry().try_clone()?, 1..usize::MAX, wake, owner);
    Ok((event_loop, poll))
}

/// The thread `cenote-loop`, if there is one: the pools of a client use the client's, and the pool of a
/// [`PoolSource`](crate::PoolSource) has none.
#[derive(Debug, Default)]
pub(crate) struct LoopThread(Mutex<Option<Running>>);

/// A thread that can be waited for.
#[derive(Debug)]
pub(crate) struct Running {
    handle: JoinHandle<()>,
    /// Disconnected when the thread is about to end.
    end: Receiver<Infallible>,
    /// Threads do not exist in a child process.
    process: Process,
}

impl LoopThread {
    /// Turns the loop until it has no tasks any more, and [ends](EventLoop::end) it then. Ends it at once
    /// if the operating system has no thread.
    pub(crate) fn start(&self, event_loop: EventLoop, poll: Poll) -> io::Result<()> {
        let ended = EndOnDrop(event_loop);
        let started = Running::start("cenote-loop", move || {
            run(&ended.0, poll);
            drop(ended);
        })?;
        // The thread of the parent process can be neither joined nor detached.
        std::mem::forget(self.running().replace(started));
        Ok(())
    }

    /// Waits for the end of the thread, until `deadline` at most. Does nothing on the thread itself, and in a
    /// child process.
    pub(crate) fn join(&self, deadline: Option<Instant>) {
        let can_wait = |running: &mut Running| !running.is_current() && running.is_here();
        // Not under the lock: another thread that joins must not block the loop's own thread.
        let Some(running) = self.running().take_if(can_wait) else { return };
        if let Some(running) = running.join(deadline) {
            *self.running() = Some(running);
        }
    }

    /// Whether the calling thread is this one.
    pub(crate) fn is_current(&self) -> bool {
        self.running().as_ref().is_some_and(Running::is_current)
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (ends, end) = channel();
        let handle = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ends: Sender<Infallible> = ends; // Dropped last.
            work();
        })?;
        Ok(Self { handle, end, process: Process::current() })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for its end, until `deadline` at most; returns it if it has not ended.
    pub(crate) fn join(self, deadline: Option<Instant>) -> Option<Self> {
        let is_late = deadline.is_some_and(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            self.end.recv_timeout(left) == Err(RecvTimeoutError::Timeout)
        });
        if is_late {
            return Some(self);
        }
        // The panic hook has reported a panic.
        let _ = self.handle.join();
        None
    }

    pub(crate) fn is_current(&self) -> bool {
        self.handle.thread().id() == thread::current().id()
    }

    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }
}

impl Drop for LoopThread {
    /// The thread of the parent process must not be detached here: it does not exist.
    fn drop(&mut self) {
        std::mem::forget(self.running().take_if(|running| !running.is_here()));
    }
}

/// Ends the loop however the thread ends, so that no caller waits for it.
struct EndOnDrop(EventLoop);

fn run(event_loop: &EventLoop, mut poll: Poll) {
    let mut events = Events::with_capacity(EVENTS);
    while !event_loop.is_idle() {
        match poll.poll(&mut events, event_loop.fall_asleep()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // Without events no connection can be opened.
            Err(_) => return,
        }
        for event in &events {
            event_loop.socket_event(event.token());
        }
        event_loop.turn();
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_is_waited_for_until_the_deadline() {
        let has_ended = Arc::new(AtomicBool::new(false));
        let (end, ended) = channel::<()>();
        let running = Running::start("slow", {
            let has_ended = Arc::clone(&has_ended);
            move || {
                let _ = ended.recv();
                thread::sleep(Duration::from_millis(20));
                has_ended.store(true, Ordering::SeqCst);
            }
        });
        let thread = LoopThread(Mutex::new(Some(running.expect("a thread"))));
        thread.join(Some(Instant::now()));
        assert!(thread.running().is_some(), "it is still there");
        drop(end);
        thread.join(None);
        assert!(has_ended.load(Ordering::SeqCst));
    }
}
