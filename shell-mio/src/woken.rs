//! Those who are to be woken when the lock is given back.

use std::sync::Arc;

use crate::event_loop::EventLoop;
use crate::parker::Parker;

/// Who is told that the answer is there.
#[derive(Clone)]
pub(crate) enum Waiter {
    Thread(Arc<Parker>),
    /// Whoever turns the loop and looks at [`Desk::answered`](crate::desk::Desk::answered).
    Loop(EventLoop),
}

pub(crate) type Woken = cenote_shell::wake_list::WakeList<Waiter>;

pub(crate) fn wake(waiter: Waiter) {
    match waiter {
        Waiter::Thread(parker) => parker.wake(),
        Waiter::Loop(event_loop) => event_loop.nudge(),
    }
}
