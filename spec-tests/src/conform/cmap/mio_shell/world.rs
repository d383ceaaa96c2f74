//! A pool on sockets: what it tells, and what of it is held.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::ConnectionError;
use cenote_core::pool::Snapshot;
use cenote_mio::{Builder, MongoConnector, Pool, PoolEvent, PooledConnection};
use serde_json::Value;

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
    story: Arc<Story>,
    ledger: Arc<Mutex<Ledger>>,
    held: Mutex<Held>,
}

/// What was told, and whether somebody still has to listen.
#[derive(Default)]
struct Story {
    told: Mutex<Told>,
    goes_on: Condvar,
}

#[derive(Default)]
struct Told {
    events: Vec<Value>,
    is_over: bool,
    took_too_long: bool,
}

#[derive(Default)]
struct Held {
    labelled: BTreeMap<String, PooledConnection<MongoConnector>>,
    others: Vec<PooledConnection<MongoConnector>>,
}

impl World {
    /// How long anything may take once the file is over: more than any machine needs.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// After which silence nothing more is told, unless it is a matter of the file's own times.
    const SILENCE: Duration = Duration::from_millis(50);

    /// How much later than it happens something may be told, by a thread that tells for another one.
    const GRACE: Duration = Duration::from_secs(2);

    /// Makes the pool, which has told by then that it was made.
    pub(super) fn new(
        builder: Builder<MongoConnector>,
        other: Builder<MongoConnector>,
    ) -> Result<Self, String> {
        let (story, ledger) = (Arc::<Story>::default(), Arc::<Mutex<Ledger>>::default());
        let (heard, told) = (Arc::clone(&story), Arc::clone(&ledger));
        let builder = builder.on_event(move |PoolEvent { address, event }| {
            lock(&told).told_now(event, address);
            let json = serde_json::to_value(event_json::official(event, address));
            lock(&heard.told).events.push(json.expect("an event is plain data"));
            heard.goes_on.notify_all();
        });
        let pool = builder.build().map_err(|error| error.to_string())?;
        let other = Mutex::new(Some(other));
        Ok(Self { pool, other, story, ledger, held: Mutex::default() })
    }

    /// Everything that the pool has told so far.
    pub(super) fn events(&self) -> Vec<Value> {
        lock(&self.story.told).events.clone()
    }

    /// How often the pool has told this.
    pub(super) fn seen(&self, event: &str) -> usize {
        count(&lock(&self.story.told).events, event)
    }

    /// Waits until the pool has told this so many times, or the file is over; for so long at most,
    /// and then for what has happened, but was not told yet.
    pub(super) fn sees(&self, event: &str, times: usize, limit: Duration) -> bool {
        self.wait_until(limit + Self::GRACE, |told| {
            told.is_over || count(&told.events, event) >= times
        })
    }

    /// Lets time pass, until the file is over at most.
    pub(super) fn wait(&self, time: Duration) {
        self.wait_until(time, |told| told.is_over);
    }

    /// What the pool's thread had to tell by now has been told when this returns.
    pub(super) fn catch_up(&self) {
        self.pool.while_quiet(|| ());
    }

    /// Waits until nothing more is told.
    pub(super) fn settle(&self) {
        let mut before = usize::MAX;
        let mut now = self.events().len();
        while now != before {
            before = now;
            thread::sleep(Self::SILENCE);
            self.catch_up();
            now = self.events().len();
        }
    }

    /// Checks a connection out, and keeps it under its name or for good.
    pub(super) fn check_out(&self, caller: Caller, how: &CheckOut) -> Result<(), Failure> {
        lock(&self.ledger).requested(caller);
        let outcome = self.pool.check_out_for(how.purpose(), how.deadline(Instant::now()));
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
    pub(super) fn check_in_foreign(&self) -> Result<(), Failure> {
        let before = self.pool.snapshot();
        let other = lock(&self.other).take().map(Builder::build);
        let other = other.ok_or_else(|| Failure::Script("one other pool is enough".to_owned()))?;
        let other = other.map_err(|error| Failure::Script(error.to_string()))?;
        other.ready();
        let connection = other.check_out().map_err(Failure::Pool)?;
        drop(connection);
        let (after, its) = (self.pool.snapshot(), other.snapshot());
        other.close();
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
    pub(super) fn close(&self) {
        // Whatever is still out comes home when the file is over.
        let _ = self.pool.close_before(Instant::now());
    }

    /// The file is over: whoever waits need not wait any more.
    pub(super) fn end(&self) {
        lock(&self.story.told).is_over = true;
        self.story.goes_on.notify_all();
    }

    /// Waits until the file is over. If it is not after so long, the pool is closed under whoever
    /// waits there: a thread of the operating system cannot be told otherwise.
    pub(super) fn watch(&self, patience: Duration) {
        if !self.wait_until(patience, |told| told.is_over) {
            lock(&self.story.told).took_too_long = true;
            self.close();
        }
    }

    /// Whether it was.
    pub(super) fn took_too_long(&self) -> bool {
        lock(&self.story.told).took_too_long
    }

    /// Whether the file is over.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.story.told).is_over
    }

    /// The end: everything that is held comes back to the closed pool. Says what was lost on the
    /// way, on this side or at the endpoint.
    pub(super) fn come_home(&self, server: &Server) -> Vec<String> {
        drop(std::mem::take(&mut *lock(&self.held)));
        let mut complaints = Vec::new();
        if let Err(left) = self.pool.close_before(Instant::now() + Self::PATIENCE) {
            complaints.push(left.to_string());
        }
        let patience = Instant::now() + Self::PATIENCE;
        let open = || server.open().unwrap_or_default();
        // It takes the endpoint a moment to notice that a socket was closed.
        while open() > 0 && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        if open() > 0 {
            let open = open();
            complaints.push(format!("the endpoint still has {open} connections of a closed pool"));
        }
        complaints.extend(std::mem::take(&mut *lock(&self.ledger)).close().err());
        complaints
    }

    fn wait_until(&self, limit: Duration, mut it_is_so: impl FnMut(&Told) -> bool) -> bool {
        let told = lock(&self.story.told);
        let waited = self.story.goes_on.wait_timeout_while(told, limit, |told| !it_is_so(told));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["type"] == name).count()
}

/// What is locked here is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
