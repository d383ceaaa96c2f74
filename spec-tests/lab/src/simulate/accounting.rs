//! What a shell knows of a pool: every request and every socket, each of them in one state. The pool's
//! actions and snapshots have to agree, or something was lost or duplicated.

use std::collections::BTreeMap;

use cenote_core::pool::{ConnId, Snapshot, WaiterId};

/// All requests and sockets. Methods return an error if an action of the pool contradicts them.
#[derive(Debug, Default)]
pub(super) struct Accounting {
    /// The callers of requests without an answer.
    requests: BTreeMap<WaiterId, u32>,
    sockets: BTreeMap<u64, Socket>,
    last_request: u64,
    last_connection: u64,
    last_tag: u64,
    opening: u32,
    idle: u32,
    used: u32,
    draining: u32,
}

/// A connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Socket {
    pub(super) id: ConnId,
    pub(super) state: SocketState,
    /// Its payload, which no other connection has; 0 until it is established.
    pub(super) tag: u64,
    /// The peer is gone, whether the shell has noticed or not.
    pub(super) is_dead: bool,
    /// The service that replied to hello, behind a load balancer.
    pub(super) service: Option<u8>,
    /// How often it was checked out: events that were scheduled for an earlier use are ignored.
    pub(super) use_number: u64,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketState {
    /// Being established; `is_greeted` once the server replied to hello.
    Opening { is_greeted: bool },
    /// The pool aborted it, but its answer may still come.
    Aborted,
    /// In the pool.
    Idle,
    /// Checked out.
    Used { caller: u32 },
    /// The shell reads a late reply.
    Draining,
    /// The pool does not want that any more, but its answer may still come.
    DrainAborted,
    /// Checked out in the parent process, before the fork.
    Inherited { caller: u32 },
}

impl Socket {
    pub(super) fn is_used(&self, use_number: u64) -> bool {
        matches!(self.state, SocketState::Used { .. }) && self.use_number == use_number
    }

    /// Whether the pool still wants it to be established; `None` if it is not being established any more.
    pub(super) const fn is_wanted_open(&self) -> Option<bool> {
        match self.state {
            SocketState::Opening { .. } => Some(true),
            SocketState::Aborted => Some(false),
            SocketState::Idle
            | SocketState::Used { .. }
            | SocketState::Draining
            | SocketState::DrainAborted
            | SocketState::Inherited { .. } => None,
        }
    }
}

impl Accounting {
    /// Adds a request with the next number.
    pub(super) fn ask(&mut self, caller: u32) -> WaiterId {
        self.last_request += 1;
        let id = WaiterId(self.last_request);
        self.requests.insert(id, caller);
        id
    }

    pub(super) fn last_request(&self) -> WaiterId {
        WaiterId(self.last_request)
    }

    pub(super) fn last_connection(&self) -> u64 {
        self.last_connection
    }

    pub(super) fn is_waiting(&self, request: WaiterId) -> bool {
        self.requests.contains_key(&request)
    }

    /// The requests that came before this one and have no answer, in order.
    pub(super) fn waiting_before(&self, request: WaiterId) -> impl Iterator<Item = WaiterId> {
        self.requests.range(..request).map(|(&id, _)| id)
    }

    pub(super) fn waiting(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn socket(&self, number: u64) -> Option<Socket> {
        self.sockets.get(&number).copied()
    }

    pub(super) fn socket_mut(&mut self, number: u64) -> Option<&mut Socket> {
        self.sockets.get_mut(&number)
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.values()
    }

    pub(super) fn sockets_mut(&mut self) -> impl Iterator<Item = &mut Socket> {
        self.sockets.values_mut()
    }

    /// The pool starts to establish a connection.
    pub(super) fn start(&mut self, id: ConnId) -> Result<(), String> {
        if id.number() != self.last_connection + 1 {
            return Err(format!("{id} is established after c{}", self.last_connection));
        }
        self.last_connection += 1;
        self.opening += 1;
        let state = SocketState::Opening { is_greeted: false };
        let socket = Socket { id, state, tag: 0, is_dead: false, service: None, use_number: 0 };
        self.sockets.insert(id.number(), socket);
        Ok(())
    }

    /// The pool aborts a connection that is being established.
    pub(super) fn abort(&mut self, id: ConnId) -> Result<(), String> {
        match self.sockets.get_mut(&id.number()) {
            Some(socket) if matches!(socket.state, SocketState::Opening { .. }) => {
                socket.state = SocketState::Aborted;
                self.opening -= 1;
                Ok(())
            }
            other => Err(format!("{id} is aborted, but it is {other:?}")),
        }
    }

    /// A connection is established. Returns the payload for the pool.
    pub(super) fn open(&mut self, number: u64) -> Option<u64> {
        let socket = self.sockets.get_mut(&number)?;
        match socket.state {
            SocketState::Opening { .. } => self.opening -= 1,
            // The pool returns the payload at once.
            SocketState::Aborted => {}
            SocketState::Idle
            | SocketState::Used { .. }
            | SocketState::Draining
            | SocketState::DrainAborted
            | SocketState::Inherited { .. } => return None,
        }
        self.last_tag += 1;
        socket.tag = self.last_tag;
        socket.state = SocketState::Idle;
        self.idle += 1;
        Some(socket.tag)
    }

    /// A connection could not be established, or was aborted.
    pub(super) fn drop_unopened(&mut self, number: u64) {
        if let Some(socket) = self.sockets.remove(&number)
            && matches!(socket.state, SocketState::Opening { .. })
        {
            self.opening -= 1;
        }
    }

    /// A caller checks in a connection. Returns its payload for the pool.
    pub(super) fn give_back(&mut self, number: u64) -> Option<(ConnId, u64)> {
        let socket = self.sockets.get_mut(&number)?;
        match socket.state {
            SocketState::Used { .. } => self.used -= 1,
            SocketState::Inherited { .. } => {}
            SocketState::Opening { .. }
            | SocketState::Aborted
            | SocketState::Draining
            | SocketState::DrainAborted
            | SocketState::Idle => return None,
        }
        socket.state = SocketState::Idle;
        self.idle += 1;
        Some((socket.id, socket.tag))
    }

    /// The pool has a late reply read.
    pub(super) fn start_drain(&mut self, id: ConnId, tag: u64) -> Result<(), String> {
        match self.sockets.get_mut(&id.number()) {
            Some(socket) if socket.state == SocketState::Idle && socket.tag == tag => {
                socket.state = SocketState::Draining;
                self.idle -= 1;
                self.draining += 1;
                Ok(())
            }
            other => Err(format!("{id} is drained with payload {tag}, but it is {other:?}")),
        }
    }

    /// The pool does not want a late reply to be read any more.
    pub(super) fn abort_drain(&mut self, id: ConnId) -> Result<(), String> {
        match self.sockets.get_mut(&id.number()) {
            Some(socket) if socket.state == SocketState::Draining => {
                socket.state = SocketState::DrainAborted;
                self.draining -= 1;
                Ok(())
            }
            other => Err(format!("{id} is not to be drained any more, but it is {other:?}")),
        }
    }

    /// A late reply was read. Returns the payload for the pool.
    pub(super) fn drained(&mut self, number: u64) -> Option<u64> {
        let socket = self.sockets.get_mut(&number)?;
        match socket.state {
            SocketState::Draining => self.draining -= 1,
            // The pool returns the payload at once.
            SocketState::DrainAborted => {}
            SocketState::Opening { .. }
            | SocketState::Aborted
            | SocketState::Idle
            | SocketState::Used { .. }
            | SocketState::Inherited { .. } => return None,
        }
        socket.state = SocketState::Idle;
        self.idle += 1;
        Some(socket.tag)
    }

    /// A late reply could not be read, or nothing waits for it any more.
    pub(super) fn drop_drain(&mut self, number: u64) {
        if let Some(socket) = self.sockets.remove(&number) {
            self.draining -= u32::from(socket.state == SocketState::Draining);
        }
    }

    /// The pool answers a request with a connection. Returns the caller.
    pub(super) fn deliver(&mut self, to: WaiterId, id: ConnId, tag: u64) -> Result<u32, String> {
        let caller = self.answer(to)?;
        match self.sockets.get_mut(&id.number()) {
            Some(socket) if socket.state == SocketState::Idle && socket.tag == tag => {
                socket.state = SocketState::Used { caller };
                socket.use_number += 1;
                self.idle -= 1;
                self.used += 1;
                Ok(caller)
            }
            other => Err(format!("{id} is delivered with payload {tag}, but it is {other:?}")),
        }
    }

    /// The pool answers a request. Returns the caller.
    pub(super) fn answer(&mut self, request: WaiterId) -> Result<u32, String> {
        let caller = self.requests.remove(&request);
        caller.ok_or_else(|| format!("{request} is answered, but does not wait"))
    }

    /// The pool returns a payload to be closed.
    pub(super) fn close(&mut self, id: ConnId, tag: u64) -> Result<(), String> {
        match self.sockets.remove(&id.number()) {
            Some(socket) if socket.state == SocketState::Idle && socket.tag == tag => {
                self.idle -= 1;
                Ok(())
            }
            other => Err(format!("{id} is closed with payload {tag}, but it is {other:?}")),
        }
    }

    /// An action is about a connection that must be in use.
    pub(super) fn expect_used(&self, id: ConnId) -> Result<(), String> {
        match self.sockets.get(&id.number()) {
            Some(Socket { state: SocketState::Used { .. }, .. }) => Ok(()),
            other => Err(format!("{id} should be in use, but it is {other:?}")),
        }
    }

    pub(super) fn expect_pending(&self, id: ConnId) -> Result<(), String> {
        match self.sockets.get(&id.number()) {
            Some(Socket { state: SocketState::Opening { .. }, .. }) => Ok(()),
            other => Err(format!("{id} should be pending, but it is {other:?}")),
        }
    }

    /// From now on this is a child process: connections in use belong to the parent.
    pub(super) fn fork(&mut self) {
        for socket in self.sockets.values_mut() {
            if let SocketState::Used { caller } = socket.state {
                socket.state = SocketState::Inherited { caller };
            }
        }
        self.used = 0;
    }

    /// Compares the sums with the pool's snapshot.
    pub(super) fn compare(&self, snapshot: &Snapshot) -> Result<(), String> {
        // Those that drain are in use if a request waits for them, and available if not.
        let for_requests = snapshot.in_use.saturating_sub(self.used).min(self.draining);
        let for_none = self.draining - for_requests;
        let mine = (self.opening, self.idle + for_none, self.used + for_requests);
        let theirs = (snapshot.pending, snapshot.available, snapshot.in_use);
        if mine == theirs && snapshot.connections_created == self.last_connection {
            return Ok(());
        }
        Err(format!(
            "{mine:?} are pending, available and in use, but the pool's snapshot is: {snapshot}"
        ))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.sockets.is_empty()
    }

    /// Checks that no request and no socket is left.
    pub(super) fn expect_nothing(&self) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        Err(format!("left behind: {:?}, {:?}", self.requests, self.sockets))
    }
}
