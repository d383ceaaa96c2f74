//! A check-out.

use std::future::Future;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use tokio::task::coop;
use tokio::time::Instant;

use crate::connector::Connector;
use crate::desk::{Delivery, Parked, Place};
use crate::guard::PooledConnection;
use crate::shared::Shared;

pub(crate) type CheckedOut<K> = Result<PooledConnection<K>, PoolError>;

/// Asks when it is polled first, and waits at its place for the answer if there is none at once.
/// Dropped before, it gives the place up, and an answer that was there already goes back to the
/// pool.
pub(crate) struct Request<'a, K: Connector> {
    shared: &'a Arc<Shared<K>>,
    deadline: Option<Instant>,
    purpose: Purpose,
    /// Where somebody asked.
    caller: &'static Location<'static>,
    stage: Stage,
}

enum Stage {
    New,
    Waiting(Place),
    Answered,
}

impl<'a, K: Connector> Request<'a, K> {
    pub(crate) const fn new(
        shared: &'a Arc<Shared<K>>,
        purpose: Purpose,
        deadline: Option<Instant>,
        caller: &'static Location<'static>,
    ) -> Self {
        Self { shared, deadline, purpose, caller, stage: Stage::New }
    }

    fn answered(&mut self, delivery: Delivery<K>) -> Poll<<Self as Future>::Output> {
        self.stage = Stage::Answered;
        Poll::Ready(take_over(self.shared, delivery, self.caller))
    }
}

impl<K: Connector> Future for Request<'_, K> {
    type Output = CheckedOut<K>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let place = match self.stage {
            Stage::New => {
                // Who is served at once, again and again, lets other tasks run now and then, as with
                // all that is tokio's: a timeout around it would never be looked at otherwise.
                let budget = ready!(coop::poll_proceed(cx));
                match self.shared.request(self.deadline, self.purpose, cx.waker()) {
                    Ok(delivery) => {
                        budget.made_progress();
                        return self.answered(delivery);
                    }
                    Err(place) => {
                        self.stage = Stage::Waiting(place);
                        return Poll::Pending;
                    }
                }
            }
            Stage::Waiting(place) => place,
            Stage::Answered => panic!("a check-out is polled after it was answered"),
        };
        let mut desk = self.shared.lock();
        match &mut desk.parked[place.index] {
            Parked::Waiting(waker) if waker.will_wake(cx.waker()) => Poll::Pending,
            Parked::Waiting(waker) => {
                let old = mem::replace(waker, cx.waker().clone());
                // It may be the last that holds a task, and what that drops may be of this pool.
                drop(desk);
                drop(old);
                Poll::Pending
            }
            Parked::Answered(_) => {
                let parked = desk.parked.remove(place.index);
                drop(desk);
                match parked {
                    Parked::Answered(delivery) => self.answered(delivery),
                    Parked::Waiting(_) => unreachable!("it was answered a moment ago"),
                }
            }
        }
    }
}

/// A connection gets its guard, an error its address.
pub(crate) fn take_over<K: Connector>(
    shared: &Arc<Shared<K>>,
    delivery: Delivery<K>,
    caller: &'static Location<'static>,
) -> CheckedOut<K> {
    match delivery {
        Ok((id, held)) => Ok(PooledConnection::new(Arc::clone(shared), id, held, caller)),
        Err(error) => Err(PoolError::new(Arc::clone(&shared.address), error)),
    }
}

impl<K: Connector> Drop for Request<'_, K> {
    fn drop(&mut self) {
        if let Stage::Waiting(place) = self.stage {
            self.shared.abandon(place);
        }
    }
}
