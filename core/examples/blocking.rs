//! A shell on plain threads and TCP in little more than a hundred lines, with a demonstration:
//! `cargo run -p cenote-core --example blocking`.
//!
//! It has everything that a shell owes the machine: a clock read under the lock, an outbox that
//! keeps the order of actions, a timer, sockets and waiters. The peer is an echo server in the same
//! process; a driver would say hello and authenticate where this one connects. A subscriber that panics
//! does not stop the pool: the outbox goes on with the actions behind the event.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "shells have these")]

use std::collections::BTreeMap;
use std::io::{Read, Result as IoResult, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use cenote_core::outbox::{Outbox, release};
use cenote_core::pool::{
    Action, CheckOutError, ConnId, Event, Health, Input, Instant, InvalidOptions, PoolOptions,
    PoolState, PoolTypes, Purpose, Snapshot, WaiterId,
};

/// What this shell brings: TCP streams, channels, and errors as text.
enum Threads {}

impl PoolTypes for Threads {
    type Conn = TcpStream;
    type Waiter = Sender<Outcome>;
    type Cause = String;
}

type Outcome = Result<(ConnId, TcpStream), CheckOutError<String>>;
type Subscriber = fn(Instant, &Event<String>);

struct Pool {
    address: SocketAddr,
    subscriber: Subscriber,
    origin: std::time::Instant,
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    state: PoolState<Threads>,
    outbox: Outbox<Action<Threads>>,
    last_waiter: u64,
    /// A second handle to each socket, to break it while a caller uses it.
    sockets: BTreeMap<ConnId, TcpStream>,
}

impl AsMut<Outbox<Action<Threads>>> for Inner {
    fn as_mut(&mut self) -> &mut Outbox<Action<Threads>> {
        &mut self.outbox
    }
}

impl Pool {
    fn new(
        address: SocketAddr,
        options: PoolOptions,
        subscriber: Subscriber,
    ) -> Result<Arc<Self>, InvalidOptions> {
        let mut outbox = Outbox::default();
        let state = PoolState::new(Instant::ORIGIN, options, &mut outbox)?;
        let sockets = BTreeMap::new();
        let inner = Inner { state, outbox, last_waiter: 0, sockets };
        let origin = std::time::Instant::now();
        let changed = Condvar::new();
        let inner = Mutex::new(inner);
        let pool = Arc::new(Self { address, subscriber, origin, inner, changed });
        let timer = Arc::clone(&pool);
        thread::spawn(move || timer.run_timer());
        Ok(pool)
    }

    fn check_out(self: &Arc<Self>) -> Outcome {
        let (waiter, outcome) = channel();
        self.feed(|inner| {
            inner.last_waiter += 1;
            let id = WaiterId(inner.last_waiter);
            Input::CheckOutRequested { id, waiter, deadline: None, purpose: Purpose::Other }
        });
        outcome.recv().expect("every request has exactly one outcome")
    }

    /// Feeds one input. Unless another thread is performing actions, this one performs them, one
    /// after the other and without the lock, until the outbox is empty: so their order is the
    /// machine's.
    fn feed(self: &Arc<Self>, input: impl FnOnce(&mut Inner) -> Input<Threads>) {
        let mut inner = self.lock();
        let input = input(&mut inner);
        let now = self.now();
        let Inner { state, outbox, .. } = &mut *inner;
        state.handle(now, input, outbox).expect("this shell keeps to the contract");
        self.changed.notify_one();
        release(|| self.lock(), inner, |action| self.perform(action));
    }

    fn perform(self: &Arc<Self>, action: Action<Threads>) {
        match action {
            Action::StartEstablish { id, .. } => {
                let pool = Arc::clone(self);
                thread::spawn(move || pool.establish(id));
            }
            Action::Deliver { waiter, outcome } => {
                if let Err(SendError(Ok((id, conn)))) = waiter.send(outcome) {
                    self.feed(|_| Input::CheckedIn { id, conn, health: Health::Healthy });
                }
            }
            Action::CloseSocket { id, conn: _ } => drop(self.lock().sockets.remove(&id)),
            Action::Interrupt { id } => {
                if let Some(socket) = self.lock().sockets.get(&id) {
                    let _already_broken = socket.shutdown(Shutdown::Both);
                }
            }
            Action::EmitEvent(event) => {
                (self.subscriber)(self.now(), &event);
            }
            Action::ReportLeak { id, held } => {
                println!("{id} is held for {held:?}: a leak?");
            }
            Action::ReportUnanswered { id, pending } => {
                println!("{id} is pending for {pending:?}: a lost answer?");
            }
            // This shell checks no connection in before a reply, so there is none to read.
            Action::StartDrain { id, conn: _ } => {
                drop(self.lock().sockets.remove(&id));
                let cause = "late replies are not read".to_owned();
                self.feed(|_| Input::DrainFailed { id, cause });
            }
            Action::AbortDrain { id } => drop(self.lock().sockets.remove(&id)),
            // The thread that connects finds out when it answers: its socket comes back to be
            // closed.
            Action::AbortEstablish { id: _ } => {}
        }
    }

    fn establish(self: &Arc<Self>, id: ConnId) {
        let connected = TcpStream::connect_timeout(&self.address, Duration::from_secs(10))
            .and_then(|conn| Ok((conn.try_clone()?, conn)));
        self.feed(|inner| match connected {
            Ok((handle, conn)) => {
                inner.sockets.insert(id, handle);
                Input::EstablishSucceeded { id, conn }
            }
            // The server may be overloaded: the error has the label SystemOverloadedError.
            Err(error) => Input::EstablishFailed { id, cause: error.to_string(), overloaded: true },
        });
    }

    fn run_timer(self: &Arc<Self>) {
        loop {
            let inner = self.lock();
            let deadline = inner.state.next_deadline().map(|deadline| deadline.at);
            let now = self.now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                drop(inner);
                self.feed(|_| Input::Timer);
                continue;
            }
            let forever = Duration::from_secs(3600);
            let wait = deadline.map_or(forever, |deadline| deadline.saturating_since(now));
            drop(self.changed.wait_timeout(inner, wait).expect("no panic under the lock"));
        }
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under the lock")
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let used = demonstrate(|now, event| println!("{:>12} {}", now.to_string(), event.name()))?;
    println!("{used}");
    Ok(())
}

/// Eight threads share two connections; returns the pool as it was before it was closed.
fn demonstrate(subscriber: Subscriber) -> Result<Snapshot, Box<dyn std::error::Error>> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let options = PoolOptions::default().with_max_pool_size(2).with_min_pool_size(1);
    let pool = Pool::new(server.local_addr()?, options, subscriber)?;
    thread::spawn(move || server.incoming().for_each(|conn| drop(thread::spawn(|| echo(conn)))));

    pool.feed(|_| Input::Ready);
    let workers: Vec<_> = (0..8).map(|_| thread::spawn(user(&pool))).collect();
    for worker in workers {
        worker.join().expect("a worker that did not panic");
    }
    let used = pool.lock().state.snapshot();
    pool.feed(|_| Input::Close);
    assert_eq!(pool.lock().state.snapshot().total, 0, "every connection was closed");
    Ok(used)
}

/// A caller that needs a connection three times.
fn user(pool: &Arc<Pool>) -> impl FnOnce() + Send + use<> {
    let pool = Arc::clone(pool);
    move || {
        for _ in 0..3 {
            let (id, mut conn) = pool.check_out().expect("a connection");
            let health = match ping(&mut conn) {
                Ok(()) => Health::Healthy,
                Err(error) => Health::Errored(error.to_string()),
            };
            pool.feed(|_| Input::CheckedIn { id, conn, health });
        }
    }
}

fn ping(conn: &mut TcpStream) -> IoResult<()> {
    conn.write_all(b"ping")?;
    conn.read_exact(&mut [0; 4])
}

fn echo(conn: IoResult<TcpStream>) -> IoResult<()> {
    let mut conn = conn?;
    let mut message = [0; 4];
    while conn.read_exact(&mut message).is_ok() {
        conn.write_all(&message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pool goes on: every caller gets its connections, and the pool closes.
    #[test]
    fn it_survives_a_subscriber_that_panics() {
        let (done, outcome) = channel();
        thread::spawn(move || {
            let used = demonstrate(|_, event| panic!("at {}", event.name()));
            done.send(used.map_err(|error| error.to_string()))
        });
        let used = outcome.recv_timeout(Duration::from_secs(60)).expect("it does not hang");
        let used = used.expect("a server on this machine");
        assert!((1..=2).contains(&used.available) && used.waiting == 0, "{used}");
    }
}
