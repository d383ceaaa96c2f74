//! A pool on sockets: what it tells, and what of it is held.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote_core::error::PoolError;
use cenote_tokio::{Builder, Mongo, Pool, PoolEvent, PooledConnection};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::conform::cmap::ledger::{Caller, Ledger};
use crate::conform::cmap::played::{Failure, cleared_by_file, nothing_held};
use crate::conform::cmap::sockets::Server;
use crate::event_json;

/// A pool, and everything that a file does with it.
pub(super) struct World {
    pool: Pool,
    events: watch::Sender<Vec<Value>>,
    is_over: watch::Sender<bool>,
    ledger: Arc<Mutex<Ledger>>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    labelled: BTreeMap<String, PooledConnection<Mongo>>,
    others: Vec<PooledConnection<Mongo>>,
}

impl World {
    /// How long anything may take once the file is over: more than any machine needs.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Makes the pool, which has told by then that it was made.
    pub(super) fn new(builder: Builder<Mongo>) -> Result<Self, String> {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let events = watch::Sender::new(Vec::new());
        let (heard, told) = (events.clone(), Arc::clone(&ledger));
        let builder = builder.on_event(move |PoolEvent { address, event }| {
            lock(&told).told_now(event, address);
            let json = serde_json::to_value(event_json::official(event, address));
            heard.send_modify(|events| events.push(json.expect("an event is plain data")));
        });
        let pool = builder.build().map_err(|error| error.to_string())?;
        let (is_over, held) = (watch::Sender::new(false), Mutex::default());
        Ok(Self { pool, events, is_over, ledger, held })
    }

    /// Everything that the pool has told so far.
    pub(super) fn events(&self) -> Vec<Value> {
        self.events.borrow().clone()
    }

    /// How often the pool has told this.
    pub(super) fn seen(&self, event: &str) -> usize {
        count(&self.events.borrow(), event)
    }

    /// Until the pool has told this so many times, or the file is over.
    pub(super) async fn sees(&self, event: &str, times: usize) {
        let mut events = self.events.subscribe();
        tokio::select! {
            _ = events.wait_for(|events| count(events, event) >= times) => {}
            () = self.ends() => {}
        }
    }

    /// Lets time pass, until the file is over at most.
    pub(super) async fn wait(&self, time: Duration) {
        let _ = timeout(time, self.ends()).await;
    }

    /// Checks a connection out, and keeps it under its name or for good.
    pub(super) async fn check_out(
        &self,
        caller: Caller,
        label: Option<String>,
    ) -> Result<(), Failure> {
        lock(&self.ledger).requested(caller);
        let outcome: Result<_, PoolError> = self.pool.check_out().await;
        lock(&self.ledger).answered(caller);
        let connection = outcome.map_err(Failure::Pool)?;
        let mut held = lock(&self.held);
        let displaced = match label {
            Some(label) => held.labelled.insert(label, connection),
            None => Some(connection),
        };
        held.others.extend(displaced);
        Ok(())
    }

    /// Checks in what is held under this name.
    pub(super) fn check_in(&self, label: &str) -> Result<(), Failure> {
        let held = lock(&self.held).labelled.remove(label);
        held.map(drop).ok_or_else(|| nothing_held(label))
    }

    /// Marks the pool as ready.
    pub(super) fn ready(&self) {
        self.pool.ready();
    }

    /// Clears the pool.
    pub(super) fn clear(&self, interrupt: bool) {
        self.pool.clear(cleared_by_file(), interrupt);
    }

    /// Closes the pool, and does not wait for what is held.
    pub(super) async fn close(&self) {
        let _ = timeout(Duration::ZERO, self.pool.close()).await;
    }

    /// The file is over: whoever waits need not wait any more.
    pub(super) fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// Whether the file is over.
    pub(super) fn has_ended(&self) -> bool {
        *self.is_over.borrow()
    }

    async fn ends(&self) {
        // The sender is here, so it is not gone.
        let _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// The end: everything that is held comes back to the closed pool. Says what was lost on the
    /// way, on this side or at the endpoint.
    pub(super) async fn settle(&self, server: &Server) -> Vec<String> {
        drop(std::mem::take(&mut *lock(&self.held)));
        let mut complaints = Vec::new();
        if timeout(Self::PATIENCE, self.pool.close()).await.is_err() {
            let left = self.pool.snapshot();
            complaints.push(format!("connections are left in a closed pool: {left}"));
        }
        if timeout(Self::PATIENCE, all_closed(server)).await.is_err() {
            let open = server.open().unwrap_or_default();
            complaints.push(format!("the endpoint still has {open} connections of a closed pool"));
        }
        complaints.extend(std::mem::take(&mut *lock(&self.ledger)).close().err());
        complaints
    }
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["type"] == name).count()
}

/// It takes the endpoint a moment to notice that a socket was closed.
async fn all_closed(server: &Server) {
    while server.open().is_some_and(|open| open > 0) {
        sleep(Duration::from_millis(1)).await;
    }
}

/// What is locked here is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
