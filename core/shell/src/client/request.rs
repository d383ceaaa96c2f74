//! A caller that waits for a server.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cenote_core::client::machine::{Chosen, Input, Request, SelectionId};
use cenote_core::client::{SelectionError, Selector};

use super::{ClientInner, Server};
use crate::runtime::signal::{Listener, Signal};
use crate::runtime::{Lock, Network};

/// Where its answer comes.
#[derive(Default)]
pub(super) struct Waiter {
    outcome: Mutex<Option<Result<Chosen, SelectionError>>>,
    answered: Signal,
}

impl Waiter {
    /// Under the lock of the client, after whose release the caller is [woken](Self::wake).
    pub(super) fn answer(&self, outcome: Result<Chosen, SelectionError>) {
        *Lock::lock(&self.outcome) = Some(outcome);
    }

    pub(super) fn wake(&self) {
        self.answered.notify_all();
    }

    /// Hears of the answer, from now on.
    pub(super) fn listen(&self) -> Listener<'_> {
        self.answered.listen()
    }
}

/// Its request. Dropped without an answer, it is cancelled.
pub(super) struct ServerRequest<'a, R: Network> {
    client: &'a ClientInner<R>,
    selector: &'a Selector,
    deadline: Option<Instant>,
    waiter: Arc<Waiter>,
    /// While there is no answer.
    id: Option<SelectionId>,
}

impl<'a, R: Network> ServerRequest<'a, R> {
    /// Waits for `serverSelectionTimeoutMS` at most, and within the limit of the operation. The answer may be there at
    /// once.
    pub(super) fn new(
        client: &'a ClientInner<R>,
        selector: &'a Selector,
        operation: Option<Instant>,
    ) -> Self {
        let deadline = client.selection_deadline(R::now(), operation);
        let mut request = Self { client, selector, deadline, waiter: Arc::default(), id: None };
        request.ask();
        request
    }

    fn ask(&mut self) {
        // A thread of the parent may hold the lock for ever.
        if self.client.is_inherited() {
            return self.waiter.answer(Err(SelectionError::Inherited));
        }
        let driver = &self.client.driver;
        let (waiter, selector) = (Arc::clone(&self.waiter), self.selector.clone());
        let deadline = self.deadline.map(|at| driver.instant(at));
        let mut asked = None;
        driver.feed_with(|locked| {
            let (id, draw) = (locked.next_selection(), locked.draw());
            asked = Some(id);
            Input::SelectServer(Request { id, waiter, selector, deadline, draw })
        });
        self.id = asked;
    }

    /// The answer, once it is there.
    pub(super) fn outcome(&mut self) -> Option<Result<Arc<Server<R>>, SelectionError>> {
        loop {
            let outcome = Lock::lock(&self.waiter.outcome).take()?;
            self.id = None;
            let chosen = match outcome {
                Ok(chosen) => chosen,
                Err(error) => return Some(Err(error)),
            };
            let candidates = self.client.driver.lock().candidates(chosen);
            match candidates {
                Some(candidates) => return Some(Ok(candidates.best())),
                // They were removed meanwhile.
                None => self.ask(),
            }
        }
    }

    /// Its deadline has come.
    pub(super) fn time_out(&self) {
        if let Some(id) = self.id {
            self.client.driver.feed(Input::SelectionTimedOut { id });
        }
    }

    pub(super) fn waiter(&self) -> Arc<Waiter> {
        Arc::clone(&self.waiter)
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// How long it waits still, if not for ever.
    pub(super) fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(R::now()))
    }
}

impl<R: Network> Drop for ServerRequest<'_, R> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.client.driver.cancel(id);
        }
    }
}

/// Servers that fit.
pub(super) struct Candidates<R: Network> {
    pub(super) first: Arc<Server<R>>,
    pub(super) second: Option<Arc<Server<R>>>,
}

impl<R: Network> Candidates<R> {
    /// The one whose pool has less to do. To be called without a lock: it takes those of the pools.
    // SD-53, SS-08
    pub(super) fn best(self) -> Arc<Server<R>> {
        let Self { first, second } = self;
        match second {
            Some(second) if second.operations() < first.operations() => second,
            Some(_) | None => first,
        }
    }
}
