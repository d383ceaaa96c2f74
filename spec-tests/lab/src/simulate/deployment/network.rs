//! The network between the client and the servers, and what happens to both.

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::SocketId;
use cenote_core::topology::ServerId;

use super::cluster::{Condition, NodeKind};
use super::server::MonitorSocket;
use super::world::{Due, World};
use crate::simulate::accounting::SocketState;
use crate::simulate::coverage::Situation;

/// What an address leads to.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Node(usize),
    /// No server is there: connecting fails so, or is never answered.
    Nowhere {
        error: Option<ConnectionError>,
    },
}

/// How many hosts without a server appear at once.
const STRANGERS: u64 = 20;

impl World<'_> {
    /// Where the connections of a server of the client lead to.
    pub(super) fn place(&mut self, server: ServerId) -> Place {
        let Some(its) = self.client.server(server) else { return Place::Nowhere { error: None } };
        let address = std::sync::Arc::clone(&its.address);
        match self.cluster.node_at(&address) {
            Some(node) => Place::Node(node),
            None => Place::Nowhere { error: nowhere(&address) },
        }
    }

    /// Whether requests to this server are answered at all.
    pub(super) fn is_silent(&self, node: usize) -> bool {
        let is_stalled =
            self.cluster.node(node).is_some_and(|it| it.condition == Condition::Stalled);
        is_stalled || self.cluster.is_cut(node)
    }

    /// Something happens once the network and the server are well again.
    pub(super) fn hold(&mut self, node: usize, due: Due) {
        self.held.push((node, due));
    }

    /// The sockets of monitors that lead to a server.
    pub(super) fn sockets_to(
        &self,
        node: usize,
        wanted: impl Fn(&MonitorSocket) -> bool,
    ) -> Vec<(ServerId, SocketId)> {
        let servers = self.client.servers.iter();
        let servers = servers.filter(|(_, it)| self.cluster.node_at(&it.address) == Some(node));
        let sockets = servers.flat_map(|(number, server)| {
            server.sockets.iter().map(move |(id, socket)| (*number, *id, socket))
        });
        sockets
            .filter(|(_, _, socket)| wanted(socket))
            .map(|(number, id, _)| (number, id))
            .collect()
    }

    /// After servers or the network changed: what was held up arrives, connections of processes that have ended are
    /// reset, and clients that await a change are answered.
    pub(super) fn after_change(&mut self) {
        let held = std::mem::take(&mut self.held);
        for (node, due) in held {
            match self.is_silent(node) {
                true => self.held.push((node, due)),
                false => {
                    let after = self.time(self.plan.latency);
                    self.plan_in(after, due);
                }
            }
        }
        for node in 0..self.cluster.nodes.len() {
            self.reset_old_connections(node);
        }
        for node in self.cluster.take_changed() {
            self.answer_awaiting(node);
        }
        if self.cluster.primaries() > 1 {
            self.coverage.count(Situation::TwoPrimaries);
        }
        for (node, term) in self.cluster.outdated_primaries() {
            let after = self.time(self.plan.election_time);
            self.plan_once(after, Due::StepDown { node, term });
        }
        if self.cluster.needs_election() {
            let after = self.time(self.plan.election_time);
            self.plan_once(after, Due::Election);
        }
    }

    fn reset_old_connections(&mut self, node: usize) {
        let Some(there) = self.cluster.node(node) else { return };
        let (process, resets) = (there.process, there.condition == Condition::Resets);
        let is_old =
            |open: &MonitorSocket| open.served_by.is_some_and(|its| its != process || resets);
        for (server, socket) in self.sockets_to(node, is_old) {
            let Some(its) = self.client.server(server) else { continue };
            if let Some(open) = its.sockets.get_mut(&socket) {
                // Once.
                open.served_by = None;
                open.is_awaiting = false;
                open.exchange += 1;
            }
            self.reset(server, socket);
        }
        if self.processes.get(&node) != Some(&process) || resets {
            self.processes.insert(node, process);
            self.reset_pooled(node);
        }
    }

    fn reset_pooled(&mut self, node: usize) {
        let servers: Vec<_> = self.client.servers.keys().copied().collect();
        for server in servers {
            let Some(its) = self.client.server(server) else { continue };
            let address = std::sync::Arc::clone(&its.address);
            if self.cluster.node_at(&address) != Some(node) {
                continue;
            }
            let Some(its) = self.client.server(server) else { continue };
            let mut planned = Vec::new();
            for socket in its.accounting.sockets_mut() {
                socket.is_dead = true;
                let (connection, use_number) = (socket.id.number(), socket.use_number);
                planned.extend(match socket.state {
                    SocketState::Idle => Some(Due::PeerCloses { server, connection }),
                    SocketState::Used { .. } => {
                        Some(Due::Finish { server, connection, use_number })
                    }
                    SocketState::Opening { .. } => Some(Due::Opened { server, connection }),
                    SocketState::Aborted
                    | SocketState::Draining
                    | SocketState::DrainAborted
                    | SocketState::Inherited { .. } => None,
                });
            }
            for due in planned {
                let after = self.time(self.plan.latency);
                self.plan_in(after, due);
            }
        }
    }

    /// Something happens to the servers, or a fault ends.
    pub(super) fn next_change(&mut self) {
        if self.is_recovering {
            return;
        }
        let after = self.plan.change_time.draw(&mut self.random);
        self.plan_in(after, Due::Change);
        if self.random.flip() {
            self.cluster.repair(&mut self.random);
            self.story.note(self.now, || "a fault is repaired".to_owned());
        } else if let Some(change) = self.random.pick(&self.plan.changes)
            && self.cluster.change(change, &mut self.random)
        {
            self.coverage.count(change.situation());
            self.story.note(self.now, || format!("{change:?}"));
        }
        self.after_change();
    }

    /// A server begins to answer wrongly, or ends that.
    pub(super) fn next_wrong_answer(&mut self) {
        if self.is_recovering {
            return;
        }
        let after = self.plan.change_time.draw(&mut self.random);
        self.plan_in(after, Due::WrongAnswer);
        let count = self.cluster.nodes.len() as u64;
        let node = usize::try_from(self.random.below(count)).unwrap_or_default();
        self.toggle_wrong_answer(node);
        // Clients that wait for a change are told of it, as of any other.
        if self.random.flip() {
            self.cluster.touch(node);
        }
        self.after_change();
    }

    pub(super) fn toggle_wrong_answer(&mut self, node: usize) {
        let wrong = self.random.pick(&self.plan.wrong_answers);
        let Some(there) = self.cluster.nodes.get_mut(node) else { return };
        if there.kind == NodeKind::LoadBalancer {
            return;
        }
        there.wrong = if there.wrong.is_some() { None } else { wrong };
        let wrong = there.wrong;
        if let Some(wrong) = wrong {
            self.coverage.count(wrong.situation());
        }
        self.story.note(self.now, || format!("n{node} answers wrongly: {wrong:?}"));
    }

    /// Hosts where no server is appear and disappear.
    pub(super) fn churn(&mut self) {
        let Some(every) = self.plan.churn_every.filter(|_| !self.is_recovering) else { return };
        self.plan_in(every, Due::Churn);
        let count = if self.random.flip() { self.random.below(STRANGERS) } else { 0 };
        let first = self.random.below(4);
        let hosts: Vec<_> =
            (first..first + count).map(|at| format!("x{at}.example.com:27017")).collect();
        if self.cluster.list_strangers(&hosts) || self.client.is_polled() {
            self.coverage.count(Situation::Churn);
        }
        self.after_change();
    }
}

/// Why no connection is made to an address where no server is; `None`: packets are dropped.
fn nowhere(address: &ServerAddress) -> Option<ConnectionError> {
    match address.host().len() % 3 {
        0 => Some(ConnectionError::network(Stage::Dns, "the name does not exist")),
        1 => Some(ConnectionError::network(Stage::Tcp, "connection refused")),
        _ => None,
    }
}
