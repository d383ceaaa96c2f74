use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::client::machine::Input;
use cenote_core::connect::Command;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::SocketId;
use cenote_core::topology::ServerId;
use cenote_core::wire::Flags;

use super::driver::ClientDriver;
use crate::connection::Greeting;
use crate::runtime::signal::{Signal, Wakers};
use crate::runtime::{Lock, Network, yield_once};

/// The monitoring sockets of a client, each a task. The machine has two at most for each server: for checks, and for
/// round-trip times.
// PS-06, EV-29, SD-50, ND-03.
pub(super) struct MonitorSockets<R: Network> {
    table: Mutex<SocketTable<R>>,
    ended: Signal<R::Mutex<Wakers>>,
}

/// Whose socket it is, and which one.
type Key = (ServerId, SocketId);

struct SocketTable<R: Network> {
    open: BTreeMap<Key, OpenSocket<R>>,
    /// Tasks that have not ended, those that were aborted included.
    tasks: usize,
}

/// A socket that the machine has not closed, and that has not failed.
struct OpenSocket<R: Network> {
    /// What to send next. The machine waits for all replies before it sends again.
    order: Option<Order>,
    /// Of the task, while it waits for an order.
    waker: Option<Waker>,
    /// Known once the task is spawned.
    task: Option<R::Task>,
}

struct Order {
    command: Command,
    flags: Flags,
}

impl<R: Network> MonitorSockets<R> {
    pub(super) fn open(&self, driver: &Arc<ClientDriver<R>>, key: Key, server: Arc<ServerAddress>) {
        {
            let mut table = self.table();
            table.tasks += 1;
            table.open.insert(key, OpenSocket { order: None, waker: None, task: None });
        }
        let task = SocketTask { driver: Arc::clone(driver), key, server };
        // Not under the lock: a runtime that has shut down drops the task at once.
        let task = driver.runtime.spawn(task.run());
        if let Some(open) = self.table().open.get_mut(&key) {
            open.task = Some(task);
        }
    }

    /// A socket that has failed reports that by itself.
    pub(super) fn send(&self, key: Key, command: Command, flags: Flags) {
        let waker = self.table().open.get_mut(&key).and_then(|open| {
            open.order = Some(Order { command, flags });
            open.waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn close(&self, key: Key) {
        let open = self.table().open.remove(&key);
        let task = open.and_then(|open| open.task);
        task.into_iter().for_each(R::abort);
    }

    /// Whether no task is left.
    pub(super) fn have_ended(&self) -> bool {
        self.table().tasks == 0
    }

    /// Waits until no task is left.
    pub(super) async fn ended(&self) {
        loop {
            // Before the count is looked at, so that the end of the last task is not missed.
            let ended = self.ended.listen();
            if self.have_ended() {
                return;
            }
            ended.await;
        }
    }

    fn poll_order(&self, key: Key, cx: &Context<'_>) -> Poll<Order> {
        let mut table = self.table();
        // Closed: the task is aborted.
        let Some(open) = table.open.get_mut(&key) else { return Poll::Pending };
        if let Some(order) = open.order.take() {
            return Poll::Ready(order);
        }
        // The task polls with its own waker, so that dropping the old one never drops the task.
        open.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn table(&self) -> MutexGuard<'_, SocketTable<R>> {
        Lock::lock(&self.table)
    }
}

/// Opens one socket, and uses it until it fails or is closed.
///
/// The machine waits for an answer to each order. Therefore the end of the task is reported however it comes
/// about, also when it panics, or its runtime shuts down and drops it.
struct SocketTask<R: Network> {
    driver: Arc<ClientDriver<R>>,
    key: Key,
    server: Arc<ServerAddress>,
}

impl<R: Network> SocketTask<R> {
    async fn run(self) {
        let Err(error) = self.exchange().await;
        if self.take_pending_answer() {
            self.fail(error);
        }
    }

    async fn exchange(&self) -> Result<Infallible, ConnectionError> {
        let Self { driver, key, server } = self;
        let (server_id, socket) = *key;
        let opening = driver.connector.open_monitoring(&driver.runtime, server);
        let Greeting { mut connection, hello, round_trip } = opening.await?;
        driver.feed_apart(Input::SocketOpened { server: server_id, socket, hello, round_trip });
        let mut pace = Pace::new(R::now());
        loop {
            let order = poll_fn(|cx| driver.sockets.poll_order(*key, cx));
            let Order { command, flags } = order.await;
            connection.send(&command, flags).await?;
            loop {
                let (reply, more_to_come) = connection.receive().await?;
                driver.feed_apart(Input::SocketReplied {
                    server: server_id,
                    socket,
                    reply,
                    more_to_come,
                });
                if !more_to_come {
                    break;
                }
                // Other tasks have their turn even where the next one is there already.
                yield_once().await;
                let next = pace.next(1 + driver.turns_left(), R::now());
                driver.runtime.sleep_until(next).await;
            }
        }
    }

    fn fail(&self, error: ConnectionError) {
        let (server, socket) = self.key;
        self.driver.feed_apart(Input::SocketFailed { server, socket, error });
    }

    /// Whether the machine still waits for this socket. It gets its last answer now.
    fn take_pending_answer(&self) -> bool {
        // Taken out under the lock, dropped without it.
        let open = self.driver.sockets.table().open.remove(&self.key);
        // In a child process it means nothing that a task of the parent is dropped.
        open.is_some() && !self.driver.is_inherited()
    }

    /// The task has panicked, or its runtime has shut down.
    fn answer_for_lost_task(&self) {
        if thread::panicking() {
            let reason = "given up: the monitor's task has panicked";
            self.fail(ConnectionError::network(Stage::Hello, reason));
        } else {
            self.driver.runtime_ended();
        }
    }
}

/// How fast the replies of a stream are read. A server that sends one after the other, changed or not, keeps its client
/// no busier than that; the rest waits in its socket.
struct Pace {
    /// When so many have been read that the next is for now.
    settled: Instant,
}

impl Pace {
    /// One reply in this time, on average: far more than a server has to say.
    const INTERVAL: Duration = Duration::from_millis(100);
    /// How many come without a pause: all that an election brings about.
    const AT_ONCE: u32 = 20;

    const fn new(now: Instant) -> Self {
        Self { settled: now }
    }

    /// When to read the next, after one that was read now. It counts for so many, as one does that names fifty new servers
    /// and leaves turns of work, and for as many as come without a pause at most.
    fn next(&mut self, count: u32, now: Instant) -> Instant {
        self.settled = self.settled.max(now) + Self::INTERVAL * count.min(Self::AT_ONCE);
        self.settled.checked_sub(Self::INTERVAL * Self::AT_ONCE).unwrap_or(now)
    }
}

impl<R: Network> Drop for SocketTask<R> {
    fn drop(&mut self) {
        if self.take_pending_answer() {
            self.answer_for_lost_task();
        }
        let sockets = &self.driver.sockets;
        let is_last = {
            let mut table = sockets.table();
            table.tasks = table.tasks.saturating_sub(1);
            table.tasks == 0
        };
        if is_last {
            sockets.ended.notify_all();
        }
    }
}

impl<R: Network> Default for MonitorSockets<R> {
    fn default() -> Self {
        let table = SocketTable { open: BTreeMap::new(), tasks: 0 };
        Self { table: Mutex::new(table), ended: Signal::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Pace;

    #[test]
    fn some_without_a_pause_and_then_one_in_each_interval() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        let mut pace = Pace::new(begin);
        assert!((0..4).all(|_| pace.next(5, begin) <= begin));
        assert_eq!([pace.next(1, begin), pace.next(5, begin)], [at(100), at(600)]);
        // What was not used is there later, and no more than that.
        assert_eq!(pace.next(20, at(9_000)), at(9_000));
        assert_eq!(pace.next(u32::MAX, at(9_000)), at(11_000));
    }
}
