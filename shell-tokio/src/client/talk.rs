//! The monitoring sockets of one server, each in a task of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use cenote_core::connect::Command;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Input, SocketId};
use cenote_core::wire::Flags;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use super::watch::Watch;
use crate::connection::{Greeting, Monitoring};

/// Two at most, as the machine promises (SD-50).
#[derive(Default)]
pub(super) struct Talks {
    table: Mutex<Table>,
    ended: Notify,
}

#[derive(Default)]
struct Table {
    open: BTreeMap<SocketId, Entry>,
    /// Tasks that have a socket, or may have: also those that were told to stop and have not yet.
    alive: usize,
}

struct Entry {
    orders: UnboundedSender<Order>,
    /// Known once the task is spawned.
    task: Option<AbortHandle>,
}

struct Order {
    command: Command,
    flags: Flags,
}

impl Talks {
    /// The task may be over before it is known how to stop it.
    pub(super) fn open(&self, watch: &Arc<Watch>, socket: SocketId) {
        let (orders, received) = unbounded_channel();
        {
            let mut table = self.table();
            table.alive += 1;
            table.open.insert(socket, Entry { orders, task: None });
        }
        let talk = Talk { watch: Arc::clone(watch), socket };
        // Not under the lock: a runtime that has ended drops it at once.
        let task = watch.runtime().runtime.spawn(talk.run(received)).abort_handle();
        if let Some(entry) = self.table().open.get_mut(&socket) {
            entry.task = Some(task);
        }
    }

    pub(super) fn send(&self, socket: SocketId, command: Command, flags: Flags) {
        if let Some(entry) = self.table().open.get(&socket) {
            // One that is over says so by itself.
            drop(entry.orders.send(Order { command, flags }));
        }
    }

    pub(super) fn close(&self, socket: SocketId) {
        let entry = self.table().open.remove(&socket);
        let task = entry.and_then(|entry| entry.task);
        task.into_iter().for_each(|task| task.abort());
    }

    /// Until no task is left.
    pub(super) async fn ended(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Before the count is looked at, so that the last one is not missed.
            ended.as_mut().enable();
            if self.table().alive == 0 {
                return;
            }
            ended.await;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Talks on one socket, until it fails or is stopped.
struct Talk {
    watch: Arc<Watch>,
    socket: SocketId,
}

impl Talk {
    async fn run(self, mut orders: UnboundedReceiver<Order>) {
        let Err(error) = self.talk(&mut orders).await else { return };
        self.watch.feed(Input::Failed { socket: self.socket, error });
    }

    /// Ends without an error when there will be no more orders.
    async fn talk(&self, orders: &mut UnboundedReceiver<Order>) -> Result<(), ConnectionError> {
        let Self { watch, socket } = self;
        let opening = watch.runtime().connector.open_monitoring(watch.address());
        let Greeting { mut connection, hello, round_trip } = opening.await?;
        watch.feed(Input::Opened { socket: *socket, hello, round_trip });
        while let Some(Order { command, flags }) = orders.recv().await {
            connection.send(&command, flags).await?;
            self.pass_on_replies(&mut connection).await?;
        }
        Ok(())
    }

    async fn pass_on_replies(&self, connection: &mut Monitoring) -> Result<(), ConnectionError> {
        loop {
            let (reply, more_to_come) = connection.receive().await?;
            self.watch.feed(Input::Replied { socket: self.socket, reply, more_to_come });
            if !more_to_come {
                return Ok(());
            }
        }
    }
}

impl Drop for Talk {
    /// Stopped, over, or panicked: then the machine would wait for ever.
    fn drop(&mut self) {
        if thread::panicking() {
            let reason = "given up: the task that watches the server has panicked";
            let error = ConnectionError::network(Stage::Hello, reason);
            self.watch.feed(Input::Failed { socket: self.socket, error });
        }
        let talks = &self.watch.runtime().talks;
        let is_last = {
            let mut table = talks.table();
            table.alive = table.alive.saturating_sub(1);
            table.alive == 0
        };
        if is_last {
            talks.ended.notify_waiters();
        }
    }
}
