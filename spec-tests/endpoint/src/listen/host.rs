//! The server under its lock, and the way from its outputs to the sockets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, watch};

use super::TlsFault;
use crate::{ConnectionId, Output, Peer, Server};

/// The server under its lock. Its outputs leave in their order, while the lock is held; nothing
/// waits under it.
#[derive(Debug)]
pub(super) struct Host {
    started: Instant,
    desk: Mutex<Desk>,
    rescheduled: Notify,
    listening: Listening,
    tls_fault: Mutex<Option<TlsFault>>,
    resumed: AtomicU64,
}

#[derive(Debug)]
struct Desk {
    server: Server,
    orders: Orders,
    deadline: Option<Duration>,
}

/// Whether to listen, as the server wants it, and as the acceptor does it.
#[derive(Debug)]
struct Listening {
    wanted: watch::Sender<bool>,
    actual: Mutex<bool>,
    obeyed: Condvar,
}

impl Host {
    pub(super) fn new(server: Server, started: Instant) -> Self {
        Self {
            started,
            desk: Mutex::new(Desk { server, orders: BTreeMap::new(), deadline: None }),
            rescheduled: Notify::new(),
            listening: Listening {
                wanted: watch::Sender::new(true),
                actual: Mutex::new(true),
                obeyed: Condvar::new(),
            },
            tls_fault: Mutex::new(None),
            resumed: AtomicU64::new(0),
        }
    }

    /// For calls from outside of connections. Returns when the acceptor has done what this changed.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Server, Duration) -> R) -> R {
        let result = self.run(|server, now, _| act(server, now));
        self.listening.wait_until_obeyed();
        result
    }

    pub(super) fn accepted(&self, peer: Peer) -> (ConnectionId, mpsc::UnboundedReceiver<Output>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let id = self.run(|server, now, orders| {
            let id = server.accepted(now, peer);
            orders.insert(id, sender);
            id
        });
        (id, receiver)
    }

    pub(super) fn received(&self, id: ConnectionId, bytes: &[u8]) {
        self.run(|server, now, _| server.received(now, id, bytes));
    }

    pub(super) fn closed(&self, id: ConnectionId) {
        self.run(|server, now, orders| {
            orders.remove(&id);
            server.closed(now, id);
        });
    }

    /// Feeds the server its timers, for ever.
    pub(super) async fn keep_time(&self) {
        loop {
            let rescheduled = self.rescheduled.notified();
            let deadline = self.desk().deadline;
            match deadline {
                None => rescheduled.await,
                Some(deadline) => tokio::select! {
                    () = rescheduled => {}
                    () = tokio::time::sleep_until((self.started + deadline).into()) => {
                        self.run(|server, now, _| server.timer(now));
                    }
                },
            }
        }
    }

    /// Tells the acceptor whether to listen.
    pub(super) fn listens(&self) -> watch::Receiver<bool> {
        self.listening.wanted.subscribe()
    }

    /// The acceptor listens now, or does not.
    pub(super) fn obeyed(&self, listens: bool) {
        *lock(&self.listening.actual) = listens;
        self.listening.obeyed.notify_all();
    }

    pub(super) fn tls_fault(&self) -> Option<TlsFault> {
        *lock(&self.tls_fault)
    }

    pub(super) fn set_tls_fault(&self, fault: Option<TlsFault>) {
        *lock(&self.tls_fault) = fault;
    }

    pub(super) fn resumed(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }

    pub(super) fn count_resumed(&self) {
        self.resumed.fetch_add(1, Ordering::Relaxed);
    }
}

type Orders = BTreeMap<ConnectionId, mpsc::UnboundedSender<Output>>;

impl Host {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }

    fn run<R>(&self, act: impl FnOnce(&mut Server, Duration, &mut Orders) -> R) -> R {
        let mut desk = self.desk();
        let now = self.started.elapsed();
        let Desk { server, orders, .. } = &mut *desk;
        let result = act(server, now, orders);
        while let Some(output) = desk.server.poll_output() {
            self.carry_out(&mut desk.orders, output);
        }
        let deadline = desk.server.next_deadline();
        if deadline != desk.deadline {
            desk.deadline = deadline;
            self.rescheduled.notify_one();
        }
        result
    }

    fn carry_out(&self, orders: &mut Orders, output: Output) {
        if let Output::Listen(wanted) = output {
            self.listening.wanted.send_replace(wanted);
        }
        let Some(id) = output.connection() else { return };
        let is_end = output.is_end();
        if let Some(connection) = orders.get(&id) {
            // One whose socket has failed takes no more orders, and needs none.
            let _ = connection.send(output);
        }
        if is_end {
            orders.remove(&id);
        }
    }
}

impl Listening {
    fn wait_until_obeyed(&self) {
        let mut actual = lock(&self.actual);
        while *actual != *self.wanted.borrow() {
            actual = self.obeyed.wait(actual).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What is locked here is whole after every statement, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
