//! The server, the network, and their troubles.

use std::time::Duration;

use cenote_core::pool::Instant;

use super::network::{Far, LinkId, Packet, Side};
use super::plan::PROXY_USER;
use super::proxy::{CONNECTED, Proxy, REFUSED, Reaction};
use super::transport::{Due, World};
use super::trouble::Trouble;
use cenote_endpoint::{Output, Peer};

impl World<'_> {
    /// Sends a packet with the network's latency.
    pub(super) fn send(&mut self, link: LinkId, to: Side, packet: Packet) {
        let mut after = self.time(self.plan.transport.latency);
        if self.transport.trouble == Some(Trouble::IsSlow) {
            after *= 10;
        }
        if self.transport.network.send(link, to, packet) {
            self.plan_in(after, Due::Arrive { link, at: to });
        }
    }

    /// Sends bytes, cut into packets as the plan says.
    pub(super) fn send_bytes(&mut self, link: LinkId, to: Side, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = match self.plan.transport.pieces {
                0 => rest.len(),
                most => usize::try_from(self.random.between(1, most)).unwrap_or(1),
            };
            let (piece, later) = rest.split_at(length.min(rest.len()));
            self.send(link, to, Packet::Bytes(piece.to_vec()));
            rest = later;
        }
    }

    pub(super) fn arrive(&mut self, link: LinkId, at: Side) -> Result<(), String> {
        match (self.transport.network.arrive(link, at), at) {
            (Some(packet), Side::Near) => self.arrive_near(link, packet),
            (Some(packet), Side::Far) => {
                self.arrive_far(link, packet);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn arrive_far(&mut self, link: LinkId, packet: Packet) {
        let now = self.time_of_server();
        let Some(way) = self.transport.network.link_mut(link) else { return };
        match (&mut way.far, packet) {
            (Far::Unconnected, Packet::Open) if self.plan.transport.has_proxy => {
                way.far = Far::Proxy(Proxy::default());
                self.send(link, Side::Near, Packet::Open);
            }
            (Far::Unconnected, Packet::Open) => self.accept(link, Packet::Open, Packet::Refusal),
            (Far::Proxy(proxy), Packet::Bytes(bytes)) => {
                let password = self.plan.passwords().proxy;
                let reaction = proxy.receive(&bytes, Some((PROXY_USER, &password)));
                self.react(link, reaction);
            }
            (Far::Server(id), Packet::Bytes(bytes)) => {
                let id = *id;
                self.transport.server.received(now, id, &bytes);
                self.drain_server();
            }
            (Far::Server(id), Packet::End | Packet::Reset | Packet::Refusal) => {
                let id = *id;
                self.transport.server.closed(now, id);
                self.transport.network.far_ended(link);
                self.drain_server();
            }
            (Far::Gone, Packet::Bytes(_)) => self.send(link, Side::Near, Packet::Reset),
            (Far::Unconnected | Far::Proxy(_), Packet::End | Packet::Reset | Packet::Refusal) => {
                self.transport.network.far_ended(link);
            }
            (Far::Unconnected, Packet::Bytes(_))
            | (Far::Proxy(_) | Far::Server(_), Packet::Open)
            | (Far::Gone, Packet::Open | Packet::End | Packet::Reset | Packet::Refusal) => {}
        }
    }

    fn react(&mut self, link: LinkId, reaction: Reaction) {
        match reaction {
            Reaction::Wait => {}
            Reaction::Reply(bytes) => self.send_bytes(link, Side::Near, bytes),
            Reaction::Connect => {
                let [yes, no] = [CONNECTED, REFUSED].map(|reply| Packet::Bytes(reply.to_vec()));
                self.accept(link, yes, no);
            }
            Reaction::Refuse(bytes) => {
                self.send_bytes(link, Side::Near, bytes);
                self.send(link, Side::Near, Packet::End);
                self.transport.network.far_ended(link);
            }
        }
    }

    /// The server accepts the connection or refuses it, and the client is told which.
    fn accept(&mut self, link: LinkId, yes: Packet, no: Packet) {
        if !self.transport.listens {
            self.send(link, Side::Near, no);
            return self.transport.network.far_ended(link);
        }
        self.send(link, Side::Near, yes);
        let peer = Peer { address: format!("client:{link}"), certificate_subject: None };
        let id = self.transport.server.accepted(self.time_of_server(), peer);
        self.transport.network.serve(link, id);
        self.drain_server();
    }

    /// Executes the server's outputs.
    pub(super) fn drain_server(&mut self) {
        while let Some(output) = self.transport.server.poll_output() {
            match output {
                Output::Send { id, bytes } => {
                    if let Some(link) = self.transport.network.link_of(id) {
                        self.send_bytes(link, Side::Near, &bytes);
                    }
                }
                Output::Close { id } | Output::Fin { id } | Output::Reset { id } => {
                    let is_reset = matches!(output, Output::Reset { .. });
                    let end = if is_reset { Packet::Reset } else { Packet::End };
                    if let Some(link) = self.transport.network.link_of(id) {
                        self.send(link, Side::Near, end);
                        self.transport.network.far_ended(link);
                    }
                }
                Output::HalfClose { id } => {
                    if let Some(link) = self.transport.network.link_of(id) {
                        self.send(link, Side::Near, Packet::End);
                    }
                }
                // There is always room for what these few callers send.
                Output::StopReading { .. } | Output::ResumeReading { .. } => {}
                Output::Listen(listens) => self.transport.listens = listens,
            }
        }
    }

    pub(super) fn begin_trouble(&mut self, trouble: Trouble) {
        self.transport.trouble = Some(trouble);
        self.coverage.count(trouble.situation());
        let now = self.time_of_server();
        trouble.begin(&mut self.transport.server, now, &mut self.random);
        self.drain_server();
        self.begin_on_network(trouble);
    }

    fn begin_on_network(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::IsCutOff => self.transport.network.is_cut = true,
            Trouble::GoesHalfOpen => {
                let held: Vec<_> = self.transport.network.held().collect();
                for link in held {
                    match self.random.below(4) {
                        0 => self.transport.network.lose(link, Side::Near),
                        1 => self.transport.network.lose(link, Side::Far),
                        2 => {
                            self.transport.network.lose(link, Side::Near);
                            self.transport.network.lose(link, Side::Far);
                        }
                        _ => {}
                    }
                }
            }
            Trouble::Refuses
            | Trouble::Stalls
            | Trouble::IsSlow
            | Trouble::Resets
            | Trouble::Closes
            | Trouble::Drips
            | Trouble::Restarts
            | Trouble::ShutsDown
            | Trouble::HalfCloses
            | Trouble::Cuts
            | Trouble::TalksNonsense
            | Trouble::RefusesLogins
            | Trouble::IsOverloaded
            | Trouble::StepsDown
            | Trouble::FailsCommands => {}
        }
    }

    /// Repairs the server and the network. Broken connections stay broken.
    pub(super) fn end_trouble(&mut self) {
        if let Some(trouble) = self.transport.trouble.take() {
            let now = self.time_of_server();
            trouble.end(&mut self.transport.server, now);
            self.drain_server();
        }
        for (link, at) in self.transport.network.reconnect() {
            let after = self.time(self.plan.transport.latency);
            self.plan_in(after, Due::Arrive { link, at });
        }
    }

    /// The server's time starts at 0 with the world.
    pub(super) fn time_of_server(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }
}
