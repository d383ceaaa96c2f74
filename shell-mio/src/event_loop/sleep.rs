use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Instant;

use super::EventLoop;

impl EventLoop {
    /// Until that time.
    pub fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + Unpin + use<> {
        Sleep { event_loop: self.clone(), at, number: None }
    }
}

/// Dropped, it does not ring.
struct Sleep {
    event_loop: EventLoop,
    at: Instant,
    number: Option<u64>,
}

/// Sleeps until a time that may change.
pub(crate) struct Sleeper {
    event_loop: EventLoop,
    sleep: Option<Sleep>,
}

impl Sleeper {
    pub(crate) fn new(event_loop: EventLoop) -> Self {
        Self { event_loop, sleep: None }
    }

    /// Until that time, whatever it was before; `None` is for ever.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        let Some(at) = until else {
            self.sleep = None;
            return Poll::Pending;
        };
        // The one for another time is dropped, and does not ring.
        let sleep = self.sleep.take().filter(|sleep| sleep.at == at);
        let sleep =
            sleep.unwrap_or(Sleep { event_loop: self.event_loop.clone(), at, number: None });
        Pin::new(self.sleep.insert(sleep)).poll(cx)
    }
}

/// What becomes of `work` by then; `None` if nothing does.
pub(crate) async fn timeout_at<R>(
    event_loop: &EventLoop,
    at: Instant,
    work: impl Future<Output = R>,
) -> Option<R> {
    let mut work = pin!(work);
    let mut sleep = event_loop.sleep_until(at);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| None),
    })
    .await
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        let this = &mut *self;
        let mut state = this.event_loop.inner.state();
        let number = *this.number.get_or_insert_with(|| {
            state.timers_made += 1;
            state.timers_made
        });
        state.timers.insert((this.at, number), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let timer = self.event_loop.inner.state().timers.remove(&(self.at, number));
            drop(timer);
        }
    }
}
