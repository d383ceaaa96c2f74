//! A pool whose connections are numbers, opened when the test says so.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::thread;

use cenote_check::EventGuard;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::PoolOptions;
use cenote_mio::{Builder, Connector, EventLoop, HandshakeReporter, Pool, PoolEvent, Target};

/// Opens a connection for each permit, and fails those whose number is told.
#[derive(Clone)]
pub(crate) struct Gate {
    door: Arc<Mutex<Door>>,
    refuse: Arc<Mutex<Vec<u64>>>,
    /// Connections that exist, wherever they are.
    pub(crate) alive: Arc<Mutex<Vec<u64>>>,
}

#[derive(Default)]
struct Door {
    permits: usize,
    waiting: Vec<Waker>,
}

/// Takes itself off the list when it is dropped.
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) broken: bool,
    alive: Arc<Mutex<Vec<u64>>>,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        Self { door: Arc::default(), refuse: Arc::default(), alive: Arc::default() }
    }

    pub(crate) fn open() -> Self {
        let gate = Self::closed();
        gate.door().permits = usize::MAX;
        gate
    }

    /// Lets so many more connections be opened.
    pub(crate) fn admit(&self, count: usize) {
        let waiting = {
            let mut door = self.door();
            door.permits += count;
            std::mem::take(&mut door.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().expect("no panic")
    }

    pub(crate) fn refuse(&self, number: u64) {
        self.refuse.lock().expect("no panic").push(number);
    }

    pub(crate) fn alive(&self) -> Vec<u64> {
        self.alive.lock().expect("no panic").clone()
    }
}

impl Connector<EventLoop> for Gate {
    type Connection = Numbered;

    async fn connect(
        &self,
        target: Target,
        _progress: HandshakeReporter,
    ) -> Result<Numbered, ConnectionError> {
        let number = target.connection_id;
        let admitted = poll_fn(|cx| {
            let mut door = self.door();
            if door.permits == 0 {
                door.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            door.permits -= 1;
            Poll::Ready(())
        });
        admitted.await;
        if self.refuse.lock().expect("no panic").contains(&number) {
            return Err(failure());
        }
        self.alive.lock().expect("no panic").push(number);
        Ok(Numbered { number, broken: false, alive: Arc::clone(&self.alive) })
    }

    fn fault(&self, connection: &Numbered) -> Option<ConnectionError> {
        connection.broken.then(failure)
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.alive.lock().expect("no panic").retain(|number| *number != self.number);
    }
}

pub(crate) fn failure() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "reset by the test")
}

/// The names of events, as they come.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<PoolEvent>>>);

impl Log {
    pub(crate) fn take(&self) -> Vec<&'static str> {
        let events = std::mem::take(&mut *self.0.lock().expect("no panic"));
        events.iter().map(|event| event.event.name()).collect()
    }

    /// What was told, once it is so much.
    pub(crate) fn take_all(&self, count: usize) -> Vec<&'static str> {
        until(|| self.0.lock().expect("no panic").len() >= count);
        self.take()
    }

    pub(crate) fn push(&self, event: &PoolEvent) {
        self.0.lock().expect("no panic").push(event.clone());
    }
}

pub(crate) fn builder(gate: &Gate, options: PoolOptions) -> Builder<Gate> {
    judged(unjudged(gate, options))
}

/// The same without anybody who hears what it tells.
pub(crate) fn unjudged(gate: &Gate, options: PoolOptions) -> Builder<Gate> {
    let address = "db.example.com".parse().expect("an address");
    Builder::new(address, gate.clone()).options(options)
}

/// A builder of a pool whose events have to keep the rules, whatever the test looks at.
pub(crate) fn judged<C: Connector<EventLoop>>(builder: Builder<C>) -> Builder<C> {
    judged_by(&Arc::new(EventGuard::without_clock()), builder)
}

/// The same, by one who is told of what is in no event.
pub(crate) fn judged_by<C: Connector<EventLoop>>(
    sentry: &Arc<EventGuard>,
    builder: Builder<C>,
) -> Builder<C> {
    let sentry = Arc::clone(sentry);
    builder.on_event(move |told| sentry.hear(&told.event, &told.address))
}

/// A ready pool, and what it tells.
pub(crate) fn ready(gate: &Gate, options: PoolOptions) -> (Pool<Gate>, Log) {
    let log = Log::default();
    let heard = log.clone();
    let pool = builder(gate, options).on_event(move |event| heard.push(event)).build();
    let pool = pool.expect("good options");
    pool.ready();
    (pool, log)
}

pub(crate) fn at_most(connections: u32) -> PoolOptions {
    PoolOptions::default().with_max_pool_size(connections)
}

/// Until it is so. Whoever is served goes on before all is done and told that led to it.
pub(crate) fn until(mut it_is_so: impl FnMut() -> bool) {
    while !it_is_so() {
        thread::yield_now();
    }
}
