//! Before and after `fork`: a child process has its parent's memory and sockets, but of its threads
//! only the one that forked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{Action, Input};
use thiserror::Error;

use crate::connector::Connector;
use crate::desk::{Desk, Mio, broken};
use crate::event_loop::EventLoop;
use crate::shared::Shared;
use crate::woken::Woken;
use crate::{thread, timer};

/// Why a pool could not be [reset](crate::Pool::reset_after_fork) in a child process.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The thread that used the pool at the moment of the fork is not there to give its lock back.
    #[error(
        "another thread used the pool at the moment of the fork, and its lock is held for ever: \
         fork within `while_quiet`, or make a new pool in the child"
    )]
    InUseAtFork,
    /// The operating system has no event loop or no thread for it.
    #[error("no event loop for the pool: {0}")]
    EventLoop(Arc<io::Error>),
}

impl From<io::Error> for ForkError {
    fn from(error: io::Error) -> Self {
        Self::EventLoop(Arc::new(error))
    }
}

/// How often, and at what intervals, a lock is tried that should be free.
const ATTEMPTS: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(1);

pub(crate) fn while_quiet<K: Connector, R>(shared: &Arc<Shared<K>>, work: impl FnOnce() -> R) -> R {
    let event_loop = shared.lock().event_loop.clone();
    event_loop.hold(|| {
        let _desk = shared.lock();
        work()
    })
}

pub(crate) fn reset<K: Connector>(shared: &Arc<Shared<K>>) -> Result<(), ForkError> {
    if !shared.is_foreign() {
        return Ok(());
    }
    let (event_loop, poll) = thread::event_loop()?;
    begin_anew(shared, &event_loop)?;
    shared.thread.forget();
    shared.start_thread(event_loop, poll)?;
    Ok(())
}

/// The pool without anything that is the parent's, on another event loop.
pub(crate) fn begin_anew<K: Connector>(
    shared: &Arc<Shared<K>>,
    event_loop: &EventLoop,
) -> Result<(), ForkError> {
    let mut desk = (0..ATTEMPTS)
        .find_map(|attempt| {
            if attempt > 0 {
                std::thread::sleep(INTERVAL);
            }
            shared.try_lock()
        })
        .ok_or(ForkError::InUseAtFork)?;
    shared.adopt();
    let old_loop = std::mem::replace(&mut desk.event_loop, event_loop.clone());
    let inherited = desk.forget_parent(shared);
    shared.settle(desk, true, Woken::default());
    // Closes sockets, which says nothing to anybody as long as the parent has them.
    drop(inherited);
    old_loop.abandon();
    timer::start(shared, event_loop);
    Ok(())
}

impl<K: Connector> Desk<K> {
    /// Gives what is to be dropped.
    fn forget_parent(&mut self, shared: &Arc<Shared<K>>) -> impl Sized + use<K> {
        self.state.stop_writing();
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        let mut sink = |action: Action<Mio<K>>| match action {
            // Some connections may be made anew already, for the minimum.
            Action::StartEstablish { .. } | Action::EmitEvent(_) => kept.push(action),
            Action::AbortEstablish { .. }
            | Action::Deliver { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. } => dropped.push(action),
        };
        if let Err(misuse) = self.state.handle(shared.now(), Input::ResetAfterFork, &mut sink) {
            broken(&misuse);
        }
        self.armed = None;
        for interrupt in std::mem::take(&mut self.interrupts).values() {
            interrupt.renounce();
        }
        let parked = std::mem::take(&mut self.parked);
        let outbox = self.outbox.forget();
        let news = self.news.forget();
        kept.into_iter().for_each(|action| self.post(action));
        (dropped, parked, outbox, news, std::mem::take(&mut self.answered))
    }
}
