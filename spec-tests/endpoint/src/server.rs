//! The server as a machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bson::RawDocument;

use super::connection::{Connection, Hub};
use super::data::Documents;
use super::fault::{Ending, FaultId, Script};
use super::observer::Observer;
use super::output::{ConnectionId, Output, Peer};
use super::refusal::Refusal;
use super::session::Session;
use super::settings::{Settings, SettingsError};
use super::statistics::Statistics;
use super::topology::{Role, Topology};
use super::user::AccessToken;
use super::world::World;

/// The whole server: users, collections, fail points, topology, and all connections.
///
/// Times are since the server's start. One that is before an earlier one counts as that. Nothing
/// blocks. Inputs for a connection that has ended do nothing, so they may cross its end.
///
/// After each input, [`poll_output`](Self::poll_output) until there is nothing more, and feed
/// [`timer`](Self::timer) at [`next_deadline`](Self::next_deadline).
#[derive(Debug)]
pub struct Server {
    world: World,
    connections: BTreeMap<ConnectionId, Connection>,
    /// When each connection goes on by itself.
    deadlines: BTreeSet<(Duration, ConnectionId)>,
    outputs: VecDeque<Output>,
    now: Duration,
    listens: bool,
    shut_down: bool,
    /// The count of changes of the topology that waiting clients were told of.
    told: i64,
}

impl Server {
    /// A server without connections; it listens, unless a script refuses.
    ///
    /// # Errors
    ///
    /// Settings that make no sense, or have no seed.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let world = World::new(settings)?;
        let mut server = Self {
            told: world.topology.counter(),
            world,
            connections: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            outputs: VecDeque::new(),
            now: Duration::ZERO,
            listens: true,
            shut_down: false,
        };
        server.listen();
        Ok(server)
    }

    /// A socket was accepted, and TLS, where there is any, is done. Gives the connection's name.
    ///
    /// A server that was shut down resets it at once.
    pub fn accepted(&mut self, now: Duration, peer: Peer) -> ConnectionId {
        self.clock(now);
        self.world.statistics.accepted += 1;
        let id = ConnectionId(self.world.statistics.accepted);
        if self.shut_down {
            self.outputs.push_back(Output::Reset { id });
            return id;
        }
        let service = self.world.topology.next_service();
        let connection = Connection::new(Session::new(id, peer, service), &self.world);
        self.connections.insert(id, connection);
        self.world.statistics.open += 1;
        self.with(id, Connection::accept);
        id
    }

    /// Bytes came from the peer, in any cut.
    pub fn received(&mut self, now: Duration, id: ConnectionId, bytes: &[u8]) {
        self.clock(now);
        self.with(id, |connection, hub| connection.receive(hub, bytes));
        self.settle();
    }

    /// The peer closed the connection or reset it, or an error of the socket ended it.
    pub fn closed(&mut self, now: Duration, id: ConnectionId) {
        self.clock(now);
        let Some(connection) = self.connections.remove(&id) else { return };
        self.world.forget(id);
        if let Some(deadline) = connection.deadline() {
            self.deadlines.remove(&(deadline, id));
        }
    }

    /// Time went on. May come early, late, and more often than needed.
    pub fn timer(&mut self, now: Duration) {
        self.clock(now);
        let late = self.deadlines.range(..=(self.now, ConnectionId(u64::MAX)));
        let due: Vec<_> = late.map(|(_, id)| *id).collect();
        for id in due {
            self.with(id, Connection::wake);
        }
        self.settle();
    }

    /// When to feed [`timer`](Self::timer); `None` when nothing waits for a time.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// What to do next, in order; `None` when all is done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

/// What tests and `--chaos` order.
impl Server {
    /// From now on this goes wrong. Where two scripts fit, the one that was set first happens.
    pub fn set_fault(&mut self, now: Duration, script: Script) -> FaultId {
        self.clock(now);
        let id = self.world.faults.set(script);
        self.listen();
        id
    }

    /// This goes wrong no more. What has gone wrong stays so: a stalled connection says nothing
    /// ever after.
    pub fn clear_fault(&mut self, now: Duration, id: FaultId) {
        self.clock(now);
        self.world.faults.clear(id);
        self.send_crossed();
        self.listen();
    }

    /// Nothing goes wrong any more.
    pub fn clear_faults(&mut self, now: Duration) {
        self.clock(now);
        self.world.faults.clear_all();
        self.send_crossed();
        self.listen();
    }

    /// Does what the command `configureFailPoint` says, whether or not clients may send it.
    ///
    /// # Errors
    ///
    /// What a client would be told.
    pub fn set_fail_point(&mut self, command: &RawDocument) -> Result<(), Refusal> {
        self.world.fail_point.configure(command).map(|_| ())
    }

    /// From now on these access tokens are valid, and no others. A connection that has authenticated by another one
    /// gets `ReauthenticationRequired` (391) for every command that needs a login, until it authenticates again.
    pub fn set_access_tokens(&mut self, tokens: Vec<AccessToken>) {
        self.world.users.set_tokens(tokens);
    }

    /// Everything that is stored now, for [`set_documents`](Self::set_documents) of another member.
    #[must_use]
    pub fn documents(&self) -> Documents {
        Documents(self.world.store.clone())
    }

    /// Stores this and nothing else: a member of a replica set has caught up with another one, which servers do not do by
    /// themselves here. Open cursors go on in it.
    pub fn set_documents(&mut self, documents: Documents) {
        self.world.store = documents.0;
    }

    /// The topology as it is now.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.world.topology.topology()
    }

    /// Changes the topology, and tells every client that waits for that. Connections to a router that
    /// is not there any more are reset.
    pub fn set_topology(&mut self, now: Duration, topology: Topology) {
        self.clock(now);
        let wall_clock = self.world.wall_clock(self.now);
        self.world.topology.change(topology, wall_clock, &mut self.world.entropy);
        let topology = &self.world.topology;
        let lost = self.connections.values().filter(|it| !topology.has(it.service()));
        for id in lost.map(Connection::id).collect::<Vec<_>>() {
            self.with(id, |connection, hub| connection.break_off(hub, Ending::Reset));
        }
        self.settle();
    }

    /// A primary becomes a secondary; nothing happens to others.
    pub fn step_down(&mut self, now: Duration) {
        self.change_role(now, Role::Secondary);
    }

    /// A member of a replica set becomes its primary; nothing happens to others.
    pub fn step_up(&mut self, now: Duration) {
        self.change_role(now, Role::Primary);
    }

    /// Ends every open connection of an application, or every one at all. `Stall` keeps them open
    /// and silent.
    pub fn break_connections(&mut self, now: Duration, ending: Ending, app_name: Option<&str>) {
        self.clock(now);
        let concerned = self
            .connections
            .values()
            .filter(|connection| app_name.is_none_or(|name| connection.app_name() == name));
        for id in concerned.map(Connection::id).collect::<Vec<_>>() {
            self.with(id, |connection, hub| connection.break_off(hub, ending));
        }
    }

    /// Ends every connection on which no command is under way, and returns how many there were. A monitor
    /// that waits for a change of the topology has a command under way.
    pub fn break_idle(&mut self, now: Duration, ending: Ending) -> usize {
        self.clock(now);
        let idle = self.idle();
        for id in &idle {
            self.with(*id, |connection, hub| connection.break_off(hub, ending));
        }
        idle.len()
    }

    /// Sends bytes that no command asked for on every connection on which none is under way, and returns how
    /// many there were.
    pub fn send_unasked(&mut self, now: Duration, bytes: &[u8]) -> usize {
        self.clock(now);
        let idle = self.idle();
        let sent = idle.iter().map(|id| Output::Send { id: *id, bytes: bytes.to_vec() });
        self.outputs.extend(sent);
        idle.len()
    }

    /// As if the process had died and been started again: connections are reset, cursors are gone,
    /// the topology is another process's; documents, users, fail point and faults stay.
    pub fn restart(&mut self, now: Duration) {
        self.break_connections(now, Ending::Reset, None);
        self.world.cursors.clear();
        let wall_clock = self.world.wall_clock(self.now);
        self.world.topology.restart(wall_clock, &mut self.world.entropy);
        self.told = self.world.topology.counter();
        self.shut_down = false;
        self.listen();
    }

    /// Listens no more and closes every connection in good order, until
    /// [`restart`](Self::restart).
    pub fn shut_down(&mut self, now: Duration) {
        self.shut_down = true;
        self.listen();
        self.break_connections(now, Ending::Close, None);
    }

    /// Calls `observer` with each command that comes from now on, before the server runs it: the document with
    /// `$db`, without the documents that came beside it. The observer must not call the server.
    pub fn observe_commands(&mut self, observer: impl FnMut(&RawDocument) + Send + Sync + 'static) {
        self.world.observer = Observer::new(observer);
    }

    /// What the server has seen so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.world.statistics.clone();
        statistics.faults = self.world.faults.happened();
        for connection in self.connections.values() {
            let name = connection.app_name().to_owned();
            *statistics.open_by_app_name.entry(name).or_default() += 1;
        }
        statistics
    }
}

impl Server {
    fn idle(&self) -> Vec<ConnectionId> {
        let idle = self.connections.values().filter(|connection| connection.is_idle());
        idle.map(Connection::id).collect()
    }

    /// Time does not run backwards.
    fn clock(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Lets a connection do something, and keeps its deadline and whether it is still there.
    fn with(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection, &mut Hub<'_>)) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let before = connection.deadline();
        let Self { world, outputs, now, .. } = self;
        act(connection, &mut Hub { now: *now, world, outputs });
        let after = connection.deadline();
        if connection.has_ended() {
            self.connections.remove(&id);
            self.world.forget(id);
        }
        if before != after {
            self.deadlines.extend(after.map(|after| (after, id)));
            if let Some(before) = before {
                self.deadlines.remove(&(before, id));
            }
        }
    }

    /// Sends the reply that waits for another connection, unless one may still come.
    fn send_crossed(&mut self) {
        if !self.world.faults.cross() {
            let waiting = self.world.crossed.take();
            self.outputs.extend(waiting.map(|(id, bytes)| Output::Send { id, bytes }));
        }
    }

    fn change_role(&mut self, now: Duration, role: Role) {
        self.clock(now);
        let wall_clock = self.world.wall_clock(self.now);
        self.world.topology.change_role(role, wall_clock, &mut self.world.entropy);
        self.settle();
    }

    /// Answers pending hellos after a change of the topology.
    fn settle(&mut self) {
        // An answered client may have sent the next command already, which changes the topology again.
        while self.told != self.world.topology.counter() {
            self.told = self.world.topology.counter();
            for id in self.connections.keys().copied().collect::<Vec<_>>() {
                self.with(id, Connection::wake);
            }
        }
    }

    fn listen(&mut self) {
        let listens = !self.shut_down && !self.world.faults.refuses();
        if listens != self.listens {
            self.listens = listens;
            self.outputs.push_back(Output::Listen(listens));
        }
    }
}
