//! What a shell knows: every request and every socket, each of them in one place. What the pool says
//! and does has to fit, or something was lost or doubled.

use std::collections::BTreeMap;

use cenote_core::pool::{ConnId, Snapshot, WaiterId};

/// See the module. Every method that takes the pool's word says what does not fit.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Who asked and has no answer yet.
    requests: BTreeMap<WaiterId, u32>,
    sockets: BTreeMap<u64, Socket>,
    last_request: u64,
    last_connection: u64,
    last_tag: u64,
    opening: u32,
    idle: u32,
    used: u32,
}

/// One connection, wherever it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Socket {
    pub(super) id: ConnId,
    pub(super) place: Place,
    /// Tells its payload from all others; 0 until it is open.
    pub(super) tag: u64,
    /// The peer is gone, whether anybody has noticed or not.
    pub(super) is_dead: bool,
    /// Which one answered, behind a load balancer.
    pub(super) service: Option<u8>,
    /// How often it was handed out: what was planned for an earlier use does not concern this one.
    pub(super) use_number: u64,
}

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On its way to the server.
    Opening { is_greeted: bool },
    /// The pool has given it up, and its answer may still come.
    Aborted,
    /// With the pool.
    Idle,
    /// With a caller.
    Used { caller: u32 },
    /// With a caller, and of the process that this one was forked from.
    Inherited { caller: u32 },
}

impl Books {
    /// A request with the next number.
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

    /// Who asked before somebody and has no answer yet, in that order.
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

    /// The pool has a connection opened.
    pub(super) fn start(&mut self, id: ConnId) -> Result<(), String> {
        if id.number() != self.last_connection + 1 {
            return Err(format!("{id} is opened after c{}", self.last_connection));
        }
        self.last_connection += 1;
        self.opening += 1;
        let place = Place::Opening { is_greeted: false };
        let socket = Socket { id, place, tag: 0, is_dead: false, service: None, use_number: 0 };
        self.sockets.insert(id.number(), socket);
        Ok(())
    }

    /// The pool does not want a connection any more that is being opened.
    pub(super) fn abort(&mut self, id: ConnId) -> Result<(), String> {
        match self.sockets.get_mut(&id.number()) {
            Some(socket) if matches!(socket.place, Place::Opening { .. }) => {
                socket.place = Place::Aborted;
                self.opening -= 1;
                Ok(())
            }
            other => Err(format!("{id} is given up, which is {other:?}")),
        }
    }

    /// A connection is open; its payload goes to the pool.
    pub(super) fn open(&mut self, number: u64) -> Option<u64> {
        let socket = self.sockets.get_mut(&number)?;
        match socket.place {
            Place::Opening { .. } => self.opening -= 1,
            // The pool gives its payload back at once.
            Place::Aborted => {}
            Place::Idle | Place::Used { .. } | Place::Inherited { .. } => return None,
        }
        self.last_tag += 1;
        socket.tag = self.last_tag;
        socket.place = Place::Idle;
        self.idle += 1;
        Some(socket.tag)
    }

    /// A connection could not be opened, or its end was ordered before.
    pub(super) fn drop_unopened(&mut self, number: u64) {
        if let Some(socket) = self.sockets.remove(&number) {
            if matches!(socket.place, Place::Opening { .. }) {
                self.opening -= 1;
            }
        }
    }

    /// A caller brings a connection back; its payload goes to the pool.
    pub(super) fn give_back(&mut self, number: u64) -> Option<(ConnId, u64)> {
        let socket = self.sockets.get_mut(&number)?;
        match socket.place {
            Place::Used { .. } => self.used -= 1,
            Place::Inherited { .. } => {}
            Place::Opening { .. } | Place::Aborted | Place::Idle => return None,
        }
        socket.place = Place::Idle;
        self.idle += 1;
        Some((socket.id, socket.tag))
    }

    /// The pool answers a request with a connection. Gives who asked.
    pub(super) fn deliver(&mut self, to: WaiterId, id: ConnId, tag: u64) -> Result<u32, String> {
        let caller = self.answer(to)?;
        match self.sockets.get_mut(&id.number()) {
            Some(socket) if socket.place == Place::Idle && socket.tag == tag => {
                socket.place = Place::Used { caller };
                socket.use_number += 1;
                self.idle -= 1;
                self.used += 1;
                Ok(caller)
            }
            other => Err(format!("{id} is handed out with payload {tag}, which is {other:?}")),
        }
    }

    /// The pool answers a request. Gives who asked.
    pub(super) fn answer(&mut self, request: WaiterId) -> Result<u32, String> {
        let caller = self.requests.remove(&request);
        caller.ok_or_else(|| format!("{request} is answered, which does not wait"))
    }

    /// The pool gives a payload back to be closed.
    pub(super) fn close(&mut self, id: ConnId, tag: u64) -> Result<(), String> {
        match self.sockets.remove(&id.number()) {
            Some(socket) if socket.place == Place::Idle && socket.tag == tag => {
                self.idle -= 1;
                Ok(())
            }
            other => Err(format!("{id} is closed with payload {tag}, which is {other:?}")),
        }
    }

    /// Something is said of a connection that must be in use.
    pub(super) fn expect_used(&self, id: ConnId) -> Result<(), String> {
        match self.sockets.get(&id.number()) {
            Some(Socket { place: Place::Used { .. }, .. }) => Ok(()),
            other => Err(format!("{id} is said to be in use, which is {other:?}")),
        }
    }

    /// This is a child process now: what is in use is the parent's.
    pub(super) fn fork(&mut self) {
        for socket in self.sockets.values_mut() {
            if let Place::Used { caller } = socket.place {
                socket.place = Place::Inherited { caller };
            }
        }
        self.used = 0;
    }

    /// The sum of everything is what the pool says of itself.
    pub(super) fn compare(&self, snapshot: &Snapshot) -> Result<(), String> {
        let mine = (self.opening, self.idle, self.used);
        let theirs = (snapshot.pending, snapshot.available, snapshot.in_use);
        if mine == theirs && snapshot.connections_created == self.last_connection {
            return Ok(());
        }
        Err(format!("{mine:?} are opening, idle and in use, and the pool says: {snapshot}"))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.sockets.is_empty()
    }

    /// After the end: nothing is anywhere.
    pub(super) fn expect_nothing(&self) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        Err(format!("left behind: {:?}, {:?}", self.requests, self.sockets))
    }
}
