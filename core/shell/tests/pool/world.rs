//! A pool whose connections are numbers, opened when the test says so.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::thread;

use cenote_check::EventGuard;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{CloseReason, Event, PoolOptions};
use cenote_shell::builder::{Builder, BuiltPool};
use cenote_shell::connection::{Connector, DrainReporter, HandshakeReporter, Target};
use cenote_shell::event::PoolEvent;
use cenote_shell::runtime::Runtime;

use crate::pool::blocking::{TestPool, TestRuntime};

/// Opens a connection for each permit. Connections whose numbers are in `refuse` fail.
#[derive(Clone)]
pub(crate) struct Gate {
    door: Arc<Mutex<Door>>,
    refuse: Arc<Mutex<Vec<u64>>>,
    alive: Arc<Mutex<Vec<u64>>>,
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
    /// Whether a reply is due on it, which never comes.
    pub(crate) is_pending: bool,
    /// Whether its drop panics.
    pub(crate) panics: bool,
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

    /// Lets `count` more connections be opened.
    pub(crate) fn admit(&self, count: usize) {
        let waiting = {
            let mut door = self.door();
            door.permits = door.permits.saturating_add(count);
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

    /// The numbers of connections that exist, in ascending order.
    pub(crate) fn alive(&self) -> Vec<u64> {
        let mut alive = self.alive.lock().expect("no panic").clone();
        alive.sort_unstable();
        alive
    }
}

impl<R: Runtime> Connector<R> for Gate {
    type Connection = Numbered;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target<R>,
        _reporter: HandshakeReporter,
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
        let alive = Arc::clone(&self.alive);
        Ok(Numbered { number, broken: false, is_pending: false, panics: false, alive })
    }

    fn fault(&self, connection: &Numbered) -> Option<ConnectionError> {
        connection.broken.then(failure)
    }

    fn pending_response(&self, connection: &Numbered) -> Option<i32> {
        connection.is_pending.then_some(1)
    }

    async fn drain(
        &self,
        _runtime: R,
        connection: Numbered,
        _reporter: DrainReporter,
    ) -> Result<Numbered, ConnectionError> {
        pending::<()>().await;
        Ok(connection)
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.alive.lock().expect("no panic").retain(|number| *number != self.number);
        if self.panics {
            // With a payload and no message, so that nothing is printed.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
}

pub(crate) fn failure() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "reset by the test")
}

/// Events, in the order in which they are reported.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<PoolEvent>>>);

impl Log {
    /// The names of the events so far, which are removed.
    pub(crate) fn take(&self) -> Vec<&'static str> {
        let events = std::mem::take(&mut *self.0.lock().expect("no panic"));
        events.iter().map(|event| event.event.name()).collect()
    }

    /// As [`take`](Self::take), once there are `count` events.
    pub(crate) fn take_all(&self, count: usize) -> Vec<&'static str> {
        until(|| self.0.lock().expect("no panic").len() >= count);
        self.take()
    }

    /// Why connections were closed.
    pub(crate) fn closed_for(&self) -> Vec<CloseReason> {
        let events = self.0.lock().expect("no panic");
        let reason = |event: &PoolEvent| {
            let Event::ConnectionClosed { reason, .. } = &event.event else { return None };
            Some(*reason)
        };
        events.iter().filter_map(reason).collect()
    }

    pub(crate) fn push(&self, event: &PoolEvent) {
        self.0.lock().expect("no panic").push(event.clone());
    }
}

/// A builder without subscribers.
pub(crate) fn unobserved<P: BuiltPool<Connector = Gate>>(
    gate: &Gate,
    options: PoolOptions,
) -> Builder<P> {
    let address = "db.example.com".parse().expect("an address");
    Builder::new(address, gate.clone()).replace_options(options)
}

/// Checks in every test that the pool's events follow the rules.
pub(crate) fn checked<P: BuiltPool>(builder: Builder<P>) -> Builder<P> {
    checked_by(&Arc::new(EventGuard::without_clock()), builder)
}

/// As [`checked`], with a guard to which the test reports what is in no event.
pub(crate) fn checked_by<P: BuiltPool>(guard: &Arc<EventGuard>, builder: Builder<P>) -> Builder<P> {
    let guard = Arc::clone(guard);
    builder.on_event(move |told| guard.hear(&told.event, &told.address))
}

pub(crate) fn builder<R: TestRuntime>(gate: &Gate, options: PoolOptions) -> Builder<R::Pool<Gate>> {
    checked(unobserved(gate, options))
}

/// A ready pool, and its events.
pub(crate) fn ready<R: TestRuntime>(gate: &Gate, options: PoolOptions) -> (R::Pool<Gate>, Log) {
    let log = Log::default();
    let heard = log.clone();
    let pool = builder::<R>(gate, options).on_event(move |event| heard.push(event)).build();
    let pool = pool.expect("good options");
    pool.ready();
    (pool, log)
}

pub(crate) fn at_most(connections: u32) -> PoolOptions {
    PoolOptions::default().with_max_pool_size(connections)
}

/// Waits for a condition. A caller may go on before the events that led there are reported.
pub(crate) fn until(mut is_true: impl FnMut() -> bool) {
    while !is_true() {
        thread::yield_now();
    }
}
