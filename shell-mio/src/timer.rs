//! One timer for each pool, and for each server that is watched: a task on the event loop.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use crate::event_loop::{EventLoop, Sleeper};

/// The task's number on the loop; those of connections are greater.
pub(crate) const TIMER: u64 = 0;

/// Who wants to know when a time has come.
pub(crate) trait Timed: Send + Sync + 'static {
    /// What is due. Whoever answers has the timer [called](EventLoop::call) when that changes.
    fn due(&self) -> Due;

    /// Something is due now.
    fn time_is_up(self: &Arc<Self>);
}

pub(crate) enum Due {
    Now,
    /// `None` is for what is out of the clock's reach, or not known yet.
    At(Option<Instant>),
    /// And nothing will ever be.
    Never,
}

/// Rings whenever something is due, until nothing ever will be.
pub(crate) fn start(timed: &Arc<impl Timed>, event_loop: &EventLoop) {
    let timer = Timer { timed: Arc::clone(timed), sleeper: Sleeper::new(event_loop.clone()) };
    event_loop.start(TIMER, Box::pin(timer.run()));
}

struct Timer<T> {
    timed: Arc<T>,
    sleeper: Sleeper,
}

/// What there is to be done.
enum Call {
    Ring,
    End,
}

impl<T: Timed> Timer<T> {
    async fn run(mut self) {
        while let Call::Ring = poll_fn(|cx| self.poll(cx)).await {
            self.timed.time_is_up();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Call> {
        loop {
            match self.timed.due() {
                Due::Now => return Poll::Ready(Call::Ring),
                Due::At(until) => ready!(self.sleeper.poll(cx, until)),
                Due::Never => return Poll::Ready(Call::End),
            }
        }
    }
}
