//! A pool on sockets: what it tells, and what of it is held.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_core::pool::Snapshot;
use cenote_tokio::{Builder, MongoConnector, Pool, PoolEvent, PooledConnection};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::conform::cmap::extension::CheckOut;
use crate::conform::cmap::format::Options;
use crate::conform::cmap::ledger::{Caller, Ledger};
use crate::conform::cmap::played::{Failure, cleared_by_file, no_service, nothing_held};
use crate::conform::cmap::sockets::Server;
use crate::event_json;
use cenote_check::Line;

/// A pool, and everything that a file does with it.
pub(super) struct World {
    pool: Pool,
    /// What makes another pool of the same server, of which nothing is told.
    other: Mutex<Option<Builder<MongoConnector>>>,
    events: watch::Sender<Vec<Value>>,
    is_over: watch::Sender<bool>,
    ledger: Arc<Mutex<Ledger>>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    labelled: BTreeMap<String, PooledConnection<MongoConnector>>,
    others: Vec<PooledConnection<MongoConnector>>,
}

impl World {
    /// How long anything may take once the file is over: more than any machine needs.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Makes the pool, which has told by then that it was made.
    pub(super) fn new(
        builder: Builder<MongoConnector>,
        other: Builder<MongoConnector>,
    ) -> Result<Self, String> {
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
        let other = Mutex::new(Some(other));
        Ok(Self { pool, other, events, is_over, ledger, held })
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
    pub(super) async fn check_out(&self, caller: Caller, how: &CheckOut) -> Result<(), Failure> {
        lock(&self.ledger).requested(caller);
        let deadline = how.deadline(std::time::Instant::now());
        let deadline = deadline.map(Instant::from_std);
        let outcome = self.pool.check_out_for(how.purpose(), deadline).await;
        lock(&self.ledger).answered(caller);
        let connection = outcome.map_err(Failure::Pool)?;
        let mut held = lock(&self.held);
        let displaced = match how.label.clone() {
            Some(label) => held.labelled.insert(label, connection),
            None => Some(connection),
        };
        held.others.extend(displaced);
        Ok(())
    }

    /// A caller does not want a connection any more.
    pub(super) fn abandoned(&self, caller: Caller) {
        lock(&self.ledger).answered(caller);
    }

    /// Checks in what is held under this name, broken or not.
    pub(super) fn check_in(
        &self,
        label: &str,
        error: Option<ConnectionError>,
    ) -> Result<(), Failure> {
        let held = lock(&self.held).labelled.remove(label);
        let mut connection = held.ok_or_else(|| nothing_held(label))?;
        if let Some(error) = error {
            connection.mark_errored(error);
        }
        Ok(())
    }

    /// Clears the service of what is held under this name.
    pub(super) fn clear_service_of(&self, label: &str) -> Result<(), Failure> {
        let service = match lock(&self.held).labelled.get(label) {
            Some(connection) => connection.service_id().ok_or_else(no_service)?,
            None => return Err(nothing_held(label)),
        };
        self.pool.clear_service(cleared_by_file(), service);
        Ok(())
    }

    /// What the pool counts.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// The pool has these options from now on.
    pub(super) fn set_options(&self, options: &Options) -> Result<(), Failure> {
        let options = options.to_pool_options().map_err(Failure::Script)?;
        let mut ledger = lock(&self.ledger);
        let note = Line::options_changed(&options, self.pool.address(), ledger.time());
        ledger.note(&note);
        drop(ledger);
        self.pool.set_options(options).map_err(|error| Failure::Script(error.to_string()))
    }

    /// Checks in a connection of another pool, which goes where it belongs.
    pub(super) async fn check_in_foreign(&self) -> Result<(), Failure> {
        let before = self.pool.snapshot();
        let other = lock(&self.other).take().map(Builder::build);
        let other = other.ok_or_else(|| Failure::Script("one other pool is enough".to_owned()))?;
        let other = other.map_err(|error| Failure::Script(error.to_string()))?;
        other.ready();
        let connection = other.check_out().await.map_err(Failure::Pool)?;
        drop(connection);
        let (after, its) = (self.pool.snapshot(), other.snapshot());
        other.close().await;
        if after == before && (its.available, its.in_use) == (1, 0) {
            return Ok(());
        }
        let what = format!("a connection of another pool was checked in here: {after}, {its}");
        Err(Failure::Script(what))
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
