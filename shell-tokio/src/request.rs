//! A check-out that has to wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cenote_core::pool::WaiterId;

use crate::connector::Connector;
use crate::desk::{Delivery, Parked};
use crate::shared::Shared;

/// Waits at its place for the answer. Dropped before, it gives the place up, and an answer that
/// was there already goes back to the pool.
pub(crate) struct Request<'a, K: Connector> {
    pub(crate) shared: &'a Arc<Shared<K>>,
    pub(crate) place: usize,
    pub(crate) id: WaiterId,
    pub(crate) is_answered: bool,
}

impl<K: Connector> Future for Request<'_, K> {
    type Output = Delivery<K>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut desk = self.shared.lock();
        match &mut desk.parked[self.place] {
            Parked::Waiting(waker) => {
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Parked::Answered(_) => {
                let parked = desk.parked.remove(self.place);
                drop(desk);
                self.is_answered = true;
                match parked {
                    Parked::Answered(delivery) => Poll::Ready(delivery),
                    Parked::Waiting(_) => unreachable!("it was answered a moment ago"),
                }
            }
        }
    }
}

impl<K: Connector> Drop for Request<'_, K> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.abandon(self.place, self.id);
        }
    }
}
