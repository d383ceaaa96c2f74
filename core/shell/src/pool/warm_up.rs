use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;

use super::check_out::{CheckOut, Until};
use super::guard::PooledConnection;
use super::handle::Pool;
use crate::connection::Connector;
use crate::pool::warm_up_plan::{is_in_vain, to_ask};
use crate::runtime::Runtime;

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> Pool<R, K> {
    /// Makes connections until so many are idle at once or the pool is full (`maxPoolSize`). Returns how
    /// many it had together in the end: those that were idle already count, those that others use do not.
    ///
    /// For a service that wants its connections before its first request, and an error when there is no
    /// server. `minPoolSize` is the other way: it is kept up for as long as the pool lives, in the
    /// background, without reporting failures. The two go together; connections beyond the minimum may idle
    /// out again.
    ///
    /// It checks connections out, `maxConnecting` at a time, and checks them all in at the end. Until then
    /// they are not available to others, which wait in the same queue: call it before the traffic begins. The
    /// pool has to be [`ready`](Self::ready). Each of its check-outs waits as long as [`check_out`](Self::check_out) does; a
    /// limit for all of it is a timeout around the future. Cancel-safe: dropping it checks in what it holds
    /// and cancels the rest.
    ///
    /// # Errors
    ///
    /// The first failure of a [`check_out`](Self::check_out). Connections that were made before that stay in
    /// the pool.
    ///
    /// ```no_run
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.ready();
    /// let idle = pool.warm_up(10).await?; // Fails if there is no server.
    /// println!("{idle} connections are open before the first request");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn warm_up(&self, connections: u32) -> impl Future<Output = Result<u32, PoolError>> + Send {
        WarmUp {
            pool: self,
            caller: Location::caller(),
            wanted: connections,
            held: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

struct WarmUp<'p, R: Runtime<Waiter = Waker>, K: Connector<R>> {
    pool: &'p Pool<R, K>,
    caller: &'static Location<'static>,
    wanted: u32,
    held: Vec<PooledConnection<R, K>>,
    waiting: Vec<CheckOut<'p, R, K>>,
}

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> Future for WarmUp<'_, R, K> {
    type Output = Result<u32, PoolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (mut polled, mut in_vain) = (0, false);
        loop {
            while let Some(check_out) = this.waiting.get_mut(polled) {
                match Pin::new(check_out).poll(cx) {
                    Poll::Ready(outcome) => {
                        drop(this.waiting.swap_remove(polled));
                        this.held.push(outcome?);
                    }
                    Poll::Pending => polled += 1,
                }
            }
            if this.may_ask() {
                let (pool, caller) = (this.pool, this.caller);
                this.waiting.push(pool.check_out_at(caller, Purpose::Other, Until::Timeout));
                in_vain = false;
            } else if in_vain || this.waiting.is_empty() {
                this.waiting.clear();
                return Poll::Ready(Ok(this.count()));
            } else if is_in_vain(&this.pool.snapshot()) {
                // Polled once more: a connection may have been delivered since.
                (polled, in_vain) = (0, true);
            } else {
                return Poll::Pending;
            }
        }
    }
}

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> WarmUp<'_, R, K> {
    fn may_ask(&self) -> bool {
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let wanted = self.wanted.saturating_sub(self.count()).saturating_sub(waiting);
        to_ask(&self.pool.snapshot(), wanted, waiting) > 0
    }

    fn count(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }
}
