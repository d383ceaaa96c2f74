//! After all faults have ended: the client sees the servers as they are, serves every caller, and is closed.

use std::time::Duration;

use cenote_core::client::machine::Input;
use cenote_core::connect::ServerKind;
use cenote_core::pool::Status;
use cenote_core::topology::TopologyKind;

use super::cluster::NodeKind;
use super::plan::SET;
use super::world::{Due, FAST, World};
use crate::simulate::accounting::SocketState;
use crate::simulate::coverage::Situation;

/// Between two checks of a server; and for what takes hardly any time, such as callers that come again after 10 ms.
const SLACK: Duration = Duration::from_millis(500);

impl World<'_> {
    /// No more faults.
    pub(super) fn recover(&mut self) -> Result<(), String> {
        self.begin_recovery()?;
        let is_lost = self.is_lost();
        let (since, bound) = (self.now, self.bound());
        if is_lost {
            self.coverage.count(Situation::LostByText);
        }
        while is_lost || !self.has_recovered() {
            let waited = self.now.saturating_since(since);
            if waited > bound {
                return if is_lost { Ok(()) } else { Err(self.complain(waited)) };
            }
            if !self.step()? {
                return if is_lost { Ok(()) } else { Err(self.complain(waited)) };
            }
        }
        Ok(())
    }

    fn begin_recovery(&mut self) -> Result<(), String> {
        self.is_recovering = true;
        self.cluster.nodes.iter_mut().for_each(|node| node.wrong = None);
        self.cluster.settle(&mut self.random);
        self.cluster.list_strangers(&[]);
        self.after_change();
        for server in self.client.servers.values_mut() {
            let least = self.now.max(server.subject.pool().now());
            self.now = server.pool_clock.set(least);
            server.pool_clock.forget_timer();
        }
        self.now = self.client.clock.set(self.now);
        self.client.clock.forget_timer();
        self.perform_all()?;
        self.finish_everything();
        (0..self.plan.callers).for_each(|caller| self.plan_in(FAST, Due::Ask { caller }));
        Ok(())
    }

    /// What is in use is checked in, and what is being opened succeeds or fails.
    fn finish_everything(&mut self) {
        let mut planned = Vec::new();
        for (&server, its) in &self.client.servers {
            planned.extend(its.accounting.sockets().filter_map(|socket| {
                let (connection, use_number) = (socket.id.number(), socket.use_number);
                match socket.state {
                    SocketState::Opening { .. } | SocketState::Aborted => {
                        Some(Due::Opened { server, connection })
                    }
                    SocketState::Used { .. } => {
                        Some(Due::Finish { server, connection, use_number })
                    }
                    SocketState::Idle
                    | SocketState::Draining
                    | SocketState::DrainAborted
                    | SocketState::Inherited { .. } => None,
                }
            }));
        }
        planned.into_iter().for_each(|due| self.plan_in(FAST, due));
    }

    /// A check that is in progress ends, and the next one comes within a heartbeat.
    fn bound(&self) -> Duration {
        self.plan.connect_timeout + self.plan.heartbeat + SLACK
    }

    /// Whether the client has lost the deployment, as SDAM wants it to: it has believed wrong answers, by which every
    /// server was removed that could lead it back.
    fn is_lost(&self) -> bool {
        let description = self.client.state.description();
        let is_polled = self.client.is_polled();
        let mut servers = description.servers();
        let has_any = servers.any(|(it, _)| self.cluster.leads_back(it)) || is_polled;
        let kind = self.cluster.nodes.first().map(|node| node.kind);
        let fits = match description.kind {
            TopologyKind::Sharded => kind == Some(NodeKind::Router),
            TopologyKind::ReplicaSetNoPrimary | TopologyKind::ReplicaSetWithPrimary => {
                let set_name = description.set_name.as_deref();
                kind == Some(NodeKind::Member) && set_name.is_none_or(|name| name == SET)
            }
            TopologyKind::Single | TopologyKind::LoadBalanced | TopologyKind::Unknown | _ => true,
        };
        !fits || !has_any
    }

    /// Whether the description is the truth.
    fn agrees(&self) -> bool {
        let description = self.client.state.description();
        let (servers, truth) = (|| description.servers(), self.cluster.visible());
        match description.kind {
            TopologyKind::Single | TopologyKind::LoadBalanced => {
                servers().all(|(_, server)| server.is_known())
            }
            TopologyKind::Sharded if !self.client.is_polled() => {
                let is_there = |address| self.cluster.node_at(address).is_some();
                let mut routers = servers().filter(|(address, _)| is_there(address));
                routers.all(|(_, server)| server.kind() == Some(ServerKind::Mongos))
                    && servers().any(|(address, _)| is_there(address))
            }
            TopologyKind::Sharded | TopologyKind::ReplicaSetWithPrimary => {
                let seen = servers().map(|(address, server)| (&**address, server.kind()));
                seen.eq(truth.iter().map(|(address, kind)| (address, Some(*kind))))
            }
            TopologyKind::ReplicaSetNoPrimary | TopologyKind::Unknown | _ => false,
        }
    }

    fn has_recovered(&self) -> bool {
        let is_at_rest = self.client.servers.values().all(|server| {
            let pool = server.subject.snapshot();
            server.accounting.waiting() == 0 && (pool.status == Status::Paused || pool.pending == 0)
        });
        is_at_rest && self.agrees() && self.callers.iter().all(|caller| caller.is_served)
    }

    fn complain(&self, waited: Duration) -> String {
        let description = self.client.state.description();
        let unserved = self.callers.iter().filter(|caller| !caller.is_served).count();
        format!(
            "{waited:?} after all faults ended {unserved} callers were not served, and the client sees \
             {description}; the truth is {:?}",
            self.cluster.visible()
        )
    }

    /// The client is closed, callers return their connections, and nothing is left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.is_recovering = true;
        self.is_closed = true;
        self.feed_client(Input::Close)?;
        self.perform_all()?;
        if !self.client.by_address.is_empty() {
            return Err(format!("a closed client has {:?}", self.client.by_address.keys()));
        }
        self.finish_everything();
        let deadline = self.now + self.plan.socket_timeout + self.plan.connect_timeout + SLACK;
        while self.now < deadline && !self.client.servers.is_empty() && self.step()? {}
        match self.client.servers.values().next() {
            None => Ok(()),
            Some(server) => Err(format!(
                "of {} is left: {:?}, {:?}",
                server.address, server.sockets, server.accounting
            )),
        }
    }
}
