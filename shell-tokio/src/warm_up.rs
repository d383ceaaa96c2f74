use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use cenote_shell::warm_up::{is_in_vain, to_ask};

use crate::connector::Connector;
use crate::guard::PooledConnection;
use crate::pool::Pool;
use crate::request::Request;

impl<K: Connector> Pool<K> {
    /// Makes connections now, until so many are idle at once or the pool is full (`maxPoolSize`),
    /// and says how many it had together in the end. Those that are idle already count, those that
    /// others use do not.
    ///
    /// For a service that wants its connections before its first request, and wants to hear when
    /// there is no server. `minPoolSize` is the other way: it is kept up for as long as the pool
    /// lives, in the background, and tells nobody about failures. The two go together; what was
    /// warmed up beyond the minimum may idle out again.
    ///
    /// It checks connections out, `maxConnecting` at a time, and checks them all in at the end. Until
    /// then they are not there for others, so that its place is before the traffic and not in it:
    /// others are in the same queue. The pool has to be [`ready`](Self::ready). The limit for each of
    /// its requests is `waitQueueTimeoutMS`, as for everybody's; for all of it put a timeout around
    /// it. Dropping the future gives back what is there and gives up what is not.
    ///
    /// # Errors
    ///
    /// The first failure, as [`check_out`](Self::check_out) has it. Connections that were made before
    /// that stay in the pool.
    #[track_caller]
    pub fn warm_up(&self, connections: u32) -> impl Future<Output = Result<u32, PoolError>> + Send {
        WarmUp {
            pool: self,
            place: Location::caller(),
            wanted: connections,
            held: Vec::new(),
            asking: Vec::new(),
        }
    }
}

struct WarmUp<'p, K: Connector> {
    pool: &'p Pool<K>,
    place: &'static Location<'static>,
    wanted: u32,
    held: Vec<PooledConnection<K>>,
    asking: Vec<Request<'p, K>>,
}

impl<K: Connector> Future for WarmUp<'_, K> {
    type Output = Result<u32, PoolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut looked_at = 0;
        loop {
            while let Some(request) = this.asking.get_mut(looked_at) {
                match Pin::new(request).poll(cx) {
                    Poll::Ready(outcome) => {
                        drop(this.asking.swap_remove(looked_at));
                        this.held.push(outcome?);
                    }
                    Poll::Pending => looked_at += 1,
                }
            }
            if !this.may_ask() {
                break;
            }
            let (pool, place) = (this.pool, this.place);
            this.asking.push(pool.check_out_at(place, Purpose::Other, None));
        }
        if is_in_vain(&this.pool.snapshot()) {
            this.asking.clear();
        }
        if this.asking.is_empty() { Poll::Ready(Ok(this.count())) } else { Poll::Pending }
    }
}

impl<K: Connector> WarmUp<'_, K> {
    fn may_ask(&self) -> bool {
        let asking = u32::try_from(self.asking.len()).unwrap_or(u32::MAX);
        let wanted = self.wanted.saturating_sub(self.count()).saturating_sub(asking);
        to_ask(&self.pool.snapshot(), wanted, asking) > 0
    }

    fn count(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }
}
