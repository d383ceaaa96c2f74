//! The monitoring sockets of one server, each a task of its own on the event loop.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use cenote_core::connect::Command;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Input, SocketId};
use cenote_core::wire::Flags;

use super::watch::Watch;
use crate::connection::{Greeting, Monitoring};
use crate::event_loop::EventLoop;

/// Two at most, as the machine promises (SD-50).
pub(super) struct Talks(Mutex<Table>);

struct Table {
    event_loop: EventLoop,
    /// What each has to send, which is one thing at a time.
    open: BTreeMap<SocketId, Option<Order>>,
}

struct Order {
    command: Command,
    flags: Flags,
}

impl Talks {
    pub(super) fn new(event_loop: EventLoop) -> Self {
        Self(Mutex::new(Table { event_loop, open: BTreeMap::new() }))
    }

    pub(super) fn open(&self, watch: &Arc<Watch>, socket: SocketId) {
        self.table().open.insert(socket, None);
        let event_loop = self.event_loop();
        let (watch, is_over) = (Arc::clone(watch), false);
        let talk = Talk { watch, event_loop: event_loop.clone(), socket, is_over };
        // Not under the lock: a loop that has ended drops it at once.
        event_loop.start(socket.0, Box::pin(talk.run()));
    }

    pub(super) fn send(&self, socket: SocketId, command: Command, flags: Flags) {
        let mut table = self.table();
        if let Some(order) = table.open.get_mut(&socket) {
            // One that is over says so by itself.
            *order = Some(Order { command, flags });
            table.event_loop.call(socket.0);
        }
    }

    pub(super) fn close(&self, socket: SocketId) {
        let mut table = self.table();
        table.open.remove(&socket);
        table.event_loop.stop(socket.0);
    }

    pub(super) fn event_loop(&self) -> EventLoop {
        self.table().event_loop.clone()
    }

    /// Nobody turns the loop any more, and nothing can be opened.
    pub(super) fn end_loop(&self) {
        let ended = std::mem::replace(&mut self.table().event_loop, EventLoop::over());
        drop(ended); // Not under the lock.
    }

    fn take_order(&self, socket: SocketId) -> Option<Order> {
        self.table().open.get_mut(&socket)?.take()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Talks on one socket, until it fails or is stopped.
struct Talk {
    watch: Arc<Watch>,
    event_loop: EventLoop,
    socket: SocketId,
    is_over: bool,
}

impl Talk {
    async fn run(mut self) {
        let error = self.talk().await;
        self.fail(error);
    }

    /// Until something fails.
    async fn talk(&self) -> ConnectionError {
        match self.greet().await {
            Ok(mut connection) => loop {
                if let Err(error) = self.carry_out(&mut connection).await {
                    return error;
                }
            },
            Err(error) => error,
        }
    }

    async fn greet(&self) -> Result<Monitoring, ConnectionError> {
        let Self { watch, event_loop, socket, .. } = self;
        let opening = watch.runtime().connector.open_monitoring(watch.address(), event_loop);
        let Greeting { connection, hello, round_trip } = opening.await?;
        watch.feed(Input::Opened { socket: *socket, hello, round_trip });
        Ok(connection)
    }

    /// The next order, and all replies to it.
    async fn carry_out(&self, connection: &mut Monitoring) -> Result<(), ConnectionError> {
        let Self { watch, socket, .. } = self;
        // Called when there is one.
        let order = poll_fn(|_| match watch.runtime().talks.take_order(*socket) {
            Some(order) => Poll::Ready(order),
            None => Poll::Pending,
        });
        let Order { command, flags } = order.await;
        connection.send(&command, flags).await?;
        loop {
            let (reply, more_to_come) = connection.receive().await?;
            watch.feed(Input::Replied { socket: *socket, reply, more_to_come });
            if !more_to_come {
                return Ok(());
            }
        }
    }

    fn fail(&mut self, error: ConnectionError) {
        self.is_over = true;
        self.watch.feed(Input::Failed { socket: self.socket, error });
    }
}

impl Drop for Talk {
    /// It was stopped, which the machine knows, or the loop ended, or it panicked.
    fn drop(&mut self) {
        if !self.is_over {
            let reason = "given up: the event loop does not go on with it";
            self.fail(ConnectionError::network(Stage::Tcp, reason));
        }
    }
}
