//! The getters of a pool.

use core::fmt;

use super::id::{ConnId, ServiceId};
use super::input::Purpose;
use super::options::PoolOptions;
use super::snapshot::{ConnectionInfo, ConnectionState, Snapshot, WaiterInfo, WaitsFor};
use super::state::PoolState;
use super::state::connections::{ConnState, Connection};
use super::state::lists::List;
use super::state::request::Request;
use super::status::Status;
use super::time::Instant;
use super::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// The counts, the state and the generation. Takes constant time and does not allocate.
    pub fn snapshot(&self) -> Snapshot {
        let limit = self.options.max_pool_size.unwrap_or(self.settings.max_total);
        let by = |purpose| self.connections.in_use_for(purpose);
        Snapshot {
            status: self.status,
            generation: self.generation,
            total: self.connections.total(),
            available: self.connections.available(),
            pending_response: self.connections.pending_response(),
            in_use: self.connections.in_use(),
            pending: self.connections.len(List::Pending),
            waiting: self.queue.len() as u64,
            owners: self.owners.len() as u64,
            max_pool_size: (limit != 0).then_some(limit),
            min_pool_size: self.settings.min_total,
            max_connecting: self.settings.max_pending,
            load_balanced: self.settings.load_balanced,
            in_use_by_cursors: by(Purpose::Cursor),
            in_use_by_transactions: by(Purpose::Transaction),
            in_use_by_others: by(Purpose::Other),
            connections_created: self.connections.last_number(),
            clock_regressions: self.clock_regressions,
        }
    }

    /// Whether as many connections are established as the minimum of the [snapshot](Self::snapshot) wants: what
    /// a driver waits for that warms its pools up. Only an input changes it, so the shell asks after each, where it
    /// asks for the [next deadline](Self::next_deadline); nothing has to be polled. In a pool that is paused or
    /// closed no connection is coming. For a number of its own a shell compares the counts of the snapshot. Takes
    /// constant time.
    pub fn is_filled(&self) -> bool {
        self.connections.total() - self.connections.len(List::Pending) >= self.settings.min_total
    }

    /// Each connection: pending ones in the order of creation, available ones from the oldest,
    /// those in use from the one held longest; then those that are pending a response, and those
    /// that are draining, with an owner and without.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionInfo> {
        let in_use = [List::Overdue, List::InUse];
        let late = [List::PendingResponse, List::Draining, List::DrainingUnowned];
        [List::Pending, List::Available]
            .into_iter()
            .chain(in_use)
            .chain(late)
            .flat_map(|list| self.connections.iter(list))
            .map(|(id, connection)| self.describe(id, connection))
    }

    /// Each request without an outcome: first those that own a connection, pending or draining, then
    /// those in the wait queue; each kind oldest first.
    pub fn waiters(&self) -> impl Iterator<Item = WaiterInfo> {
        let waits_for = if !self.has_room() {
            WaitsFor::Connection
        } else if self.has_permit() {
            WaitsFor::Pacing
        } else {
            WaitsFor::Permit
        };
        let owners = self.owners.iter().map(|(request, connection)| {
            let request = request.without_waiter();
            match self.connections.known(*connection).state {
                ConnState::Draining { .. } => {
                    self.describe_request(&request, WaitsFor::PendingResponse(*connection))
                }
                ConnState::Pending { .. }
                | ConnState::Available { .. }
                | ConnState::InUse { .. } => {
                    let waits_for = WaitsFor::Establishment(*connection);
                    self.describe_request(&request.while_established(), waits_for)
                }
            }
        });
        let queued =
            self.queue.iter().map(move |request| self.describe_request(&request, waits_for));
        owners.chain(queued)
    }

    /// The connection that a check-out would get now, with its payload; `None` if it would get a new
    /// one or one that is pending a response, wait or fail. The shell looks at its socket, and feeds [`Input::IdleClosedByPeer`] before
    /// the check-out if the peer has closed it. Takes constant time.
    ///
    /// [`Input::IdleClosedByPeer`]: super::input::Input::IdleClosedByPeer
    #[inline]
    pub fn next_available(&mut self) -> Option<(ConnId, &mut S::Conn)> {
        let is_next = self.status == Status::Ready && self.queue.is_empty();
        let id = self.first_choice().filter(|_| is_next)?;
        Some((id, self.connections.available_mut(id)?))
    }

    /// The payload of an available connection, whose socket the shell wants to look at. Not that of
    /// one which is pending a response: bytes on its socket are no sign of trouble.
    pub fn available_mut(&mut self, id: ConnId) -> Option<&mut S::Conn> {
        if self.pending_responses.get(id).is_some() {
            return None;
        }
        self.connections.available_mut(id)
    }

    /// In load-balanced mode, each service with its generation and how many connections it has.
    pub fn services(&self) -> impl Iterator<Item = (ServiceId, u64, u32)> {
        self.services.iter()
    }

    /// The time of the last input.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The options as they were set last.
    pub const fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// The pool's generation, which rises with each clear of the whole pool and each fork. Services have
    /// their own in load-balanced mode.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The generation of a connection that the pool knows: in load-balanced mode that of its service
    /// from its hello on, and otherwise that of the pool, when it was created. Takes constant time.
    ///
    /// For drivers that compare generations later than [`is_stale`](Self::is_stale) could be asked.
    pub fn generation_of(&self, id: ConnId) -> Option<u64> {
        self.connections.get(id).map(|connection| connection.generation)
    }

    /// How often a service was cleared in load-balanced mode, services without connections included. A
    /// driver that feeds [`Input::Handshaken`] later than hello takes this number at hello, and passes it
    /// on with the input. Takes constant time.
    ///
    /// [`Input::Handshaken`]: super::input::Input::Handshaken
    pub const fn service_clears(&self) -> u64 {
        self.services.clears()
    }

    /// The generation of a service in load-balanced mode; `None` if no connection belongs to it. Once
    /// the last of its connections is closed, it begins at 0 again.
    pub fn service_generation(&self, id: ServiceId) -> Option<u64> {
        self.services.generation(id)
    }

    /// Whether a connection is of an older generation than the pool or its service; so is a
    /// connection that the pool does not know any more.
    ///
    /// SDAM asks this, under the same lock as the `Clear` that may follow: errors of a stale
    /// connection change nothing.
    // CO-18, CLB-07
    pub fn is_stale(&self, id: ConnId) -> bool {
        self.connections.get(id).is_none_or(|connection| self.has_old_generation(connection))
    }

    /// The service that a connection of a load-balanced pool belongs to, from its hello on.
    pub fn service_of(&self, id: ConnId) -> Option<ServiceId> {
        self.connections.get(id)?.service
    }

    /// Whether the next input needs a fresh `now` even if events are not used: some limit on time
    /// is set or running. If not, the shell may pass the last `now` again and spare the clock,
    /// unless the input brings a deadline or is `SetOptions`. An idle time that is set then counts
    /// from the last fresh `now` before the connection came back.
    #[inline]
    pub fn needs_now(&self) -> bool {
        self.settings.depends_on_time
            || self.populate_after.is_some()
            || !self.owners.is_empty()
            || self.connections.next_expiry().is_some()
            || self.queue.is_timed()
    }

    fn has_room(&self) -> bool {
        self.connections.total() < self.settings.max_total
    }

    fn describe_request(&self, request: &Request<()>, waits_for: WaitsFor) -> WaiterInfo {
        WaiterInfo {
            id: request.id,
            started: request.started,
            age: self.now.saturating_since(request.started),
            deadline: request.deadline,
            purpose: request.purpose,
            waits_for,
        }
    }

    /// Since when a connection has been in its state.
    fn since(&self, id: ConnId, connection: &Connection<S::Conn>) -> Instant {
        let drain = self.pending_responses.get(id).and_then(|response| response.drain);
        drain.map_or_else(|| connection.since(), |drain| drain.started)
    }

    fn describe(&self, id: ConnId, connection: &Connection<S::Conn>) -> ConnectionInfo {
        let state = match connection.state {
            ConnState::Pending { owner, handshaken } => {
                ConnectionState::Pending { owner, handshaken }
            }
            ConnState::Available { .. } => match self.pending_responses.get(id) {
                None => ConnectionState::Available,
                Some(response) => {
                    ConnectionState::PendingResponse { request_id: response.request_id }
                }
            },
            ConnState::Draining { owner } => {
                let request_id = self.pending_responses.known(id).request_id;
                ConnectionState::Draining { request_id, owner: owner.map(|(owner, _)| owner) }
            }
            ConnState::InUse { purpose, interrupted, .. } => {
                ConnectionState::InUse { purpose, interrupted }
            }
        };
        ConnectionInfo {
            id,
            state,
            stale: self.has_old_generation(connection),
            service: connection.service,
            created: connection.created,
            since: self.since(id, connection),
            age: self.now.saturating_since(connection.created),
        }
    }
}

/// One line: the snapshot. Payloads are never shown.
impl<S: PoolTypes> fmt::Debug for PoolState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolState({})", self.snapshot())
    }
}
