use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use super::EventLoop;

impl EventLoop {
    /// Waits until that time, on any thread, or until the event loop has ended.
    pub fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + Unpin + use<> {
        Sleep { event_loop: self.clone(), at, timer: None }
    }
}

struct Sleep {
    event_loop: EventLoop,
    at: Instant,
    /// The number of the timer, once there is one.
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        let this = &mut *self;
        let waker = cx.waker().clone();
        let mut state = this.event_loop.inner.state();
        if state.has_ended() {
            return Poll::Ready(()); // The lock is released before the waker is dropped.
        }
        let number = *this.timer.get_or_insert_with(|| {
            state.last_timer += 1;
            state.last_timer
        });
        let key = (this.at, number);
        let old = state.timers.insert(key, waker);
        // Another thread than the loop's has to wake it for an earlier time.
        if state.timers.first_key_value().is_some_and(|(first, _)| *first == key) {
            this.event_loop.inner.wake(state);
        } else {
            drop(state);
        }
        drop(old);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.timer {
            let waker = self.event_loop.inner.state().timers.remove(&(self.at, number));
            drop(waker);
        }
    }
}
