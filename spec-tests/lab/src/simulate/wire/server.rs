//! The server's ends of connections, and its troubles.

use std::io::ErrorKind;
use std::time::Duration;

use cenote_core::pool::Instant;
use cenote_endpoint::{LoadBalanced, Output, Peer, Topology};

use super::network::{Packet, Side};
use super::trouble::begin;
use crate::simulate::trouble::Trouble;
use crate::simulate::world::{Due, World};

impl World<'_> {
    pub(super) fn arrive_at_server(&mut self, connection: u64, packet: Packet) {
        let now = self.time_of_server();
        let Some(wire) = &mut self.wire else { return };
        match (wire.network.server_end(connection), packet) {
            (None, Packet::Open) if wire.listens => {
                let peer = Peer { address: "client:1".to_owned(), certificate_subject: None };
                let id = wire.server.accepted(now, peer);
                wire.network.serve(connection, id);
                self.send(connection, Side::Near, Packet::Open);
            }
            (None, Packet::Open) => {
                let refusal = Packet::End(ErrorKind::ConnectionRefused);
                self.send(connection, Side::Near, refusal);
            }
            (Some(id), Packet::Bytes(bytes)) => wire.server.received(now, id, &bytes),
            (None, Packet::Bytes(_)) => {
                self.send(connection, Side::Near, Packet::End(ErrorKind::ConnectionReset));
            }
            (_, Packet::Open | Packet::End(_)) => {}
        }
        self.poll_server();
    }

    pub(in crate::simulate) fn server_timer(&mut self) {
        let now = self.time_of_server();
        if let Some(wire) = &mut self.wire {
            wire.timer = None;
            wire.server.timer(now);
        }
        self.poll_server();
    }

    /// Executes the server's outputs, and plans its timer.
    pub(super) fn poll_server(&mut self) {
        while let Some(output) = self.wire.as_mut().and_then(|wire| wire.server.poll_output()) {
            self.handle_server_output(output);
        }
        let now = self.time_of_server();
        let Some(wire) = &mut self.wire else { return };
        let deadline = wire.server.next_deadline();
        let is_planned = |at: &Duration| wire.timer.is_some_and(|timer| timer <= *at);
        if let Some(at) = deadline.filter(|at| !is_planned(at)) {
            wire.timer = Some(at);
            self.plan_in(at.saturating_sub(now), Due::ServerTimer);
        }
    }

    fn handle_server_output(&mut self, output: Output) {
        let Some(wire) = &mut self.wire else { return };
        let (id, end) = match &output {
            Output::Send { id, .. } => (*id, None),
            Output::Close { id } | Output::Fin { id } | Output::HalfClose { id } => {
                (*id, Some(ErrorKind::UnexpectedEof))
            }
            Output::Reset { id } => (*id, Some(ErrorKind::ConnectionReset)),
            Output::Listen(listens) => {
                wire.listens = *listens;
                return;
            }
            // There is always room for what these few callers send.
            Output::StopReading { .. } | Output::ResumeReading { .. } => return,
        };
        let Some(connection) = wire.network.connection_of(id) else { return };
        if end.is_some() && !matches!(output, Output::HalfClose { .. }) {
            wire.network.server_ended(connection);
        }
        match (output, end) {
            (Output::Send { bytes, .. }, _) => self.send_bytes(connection, Side::Near, &bytes),
            (_, Some(how)) => self.send(connection, Side::Near, Packet::End(how)),
            (_, None) => {}
        }
    }

    pub(in crate::simulate) fn begin_trouble_of_conversations(&mut self, trouble: Trouble) {
        let now = self.time_of_server();
        let Some(wire) = &mut self.wire else { return };
        if trouble == Trouble::Vanishes {
            wire.network.lose_all();
        }
        begin(trouble, &mut wire.server, now, &mut wire.random);
        self.poll_server();
    }

    pub(in crate::simulate) fn end_trouble_of_conversations(&mut self) {
        let now = self.time_of_server();
        if let Some(wire) = &mut self.wire {
            wire.server.clear_faults(now);
        }
        self.poll_server();
    }

    pub(in crate::simulate) fn move_services_of_conversations(&mut self) {
        let now = self.time_of_server();
        if let Some(wire) = &mut self.wire {
            let services = usize::try_from(wire.random.between(1, 4)).unwrap_or(1);
            let topology = Topology::LoadBalanced(LoadBalanced { services });
            wire.server.set_topology(now, topology);
        }
        self.poll_server();
    }

    /// The server's time starts at 0 with the world.
    pub(super) fn time_of_server(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }
}
