//! The server, the way to it, and what goes wrong there.

use std::time::Duration;

use cenote_core::pool::Instant;
use cenote_endpoint::{Output, Peer};

use super::World;
use super::due::Due;
use crate::simulate::wire::network::{Far, LinkId, Packet, Side};
use crate::simulate::wire::plan::PROXY_USER;
use crate::simulate::wire::proxy::{CONNECTED, Proxy, REFUSED, Reaction};
use crate::simulate::wire::trouble::Trouble;

impl World<'_> {
    /// Sends a packet, which takes its time.
    pub(super) fn send(&mut self, link: LinkId, to: Side, packet: Packet) {
        let mut after = self.time(self.plan.latency);
        if self.trouble == Some(Trouble::IsSlow) {
            after *= 10;
        }
        if self.network.send(link, to, packet) {
            self.plan_in(after, Due::Arrive { link, at: to });
        }
    }

    /// Sends bytes, in whatever cut.
    pub(super) fn send_bytes(&mut self, link: LinkId, to: Side, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = match self.plan.pieces {
                0 => rest.len(),
                most => usize::try_from(self.chance.between(1, most)).unwrap_or(1),
            };
            let (piece, later) = rest.split_at(length.min(rest.len()));
            self.send(link, to, Packet::Bytes(piece.to_vec()));
            rest = later;
        }
    }

    pub(super) fn arrive(&mut self, link: LinkId, at: Side) -> Result<(), String> {
        match (self.network.arrive(link, at), at) {
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
        let Some(way) = self.network.link_mut(link) else { return };
        match (&mut way.far, packet) {
            (Far::Nobody, Packet::Open) if self.plan.has_proxy => {
                way.far = Far::Proxy(Proxy::default());
                self.send(link, Side::Near, Packet::Open);
            }
            (Far::Nobody, Packet::Open) => self.accept(link, Packet::Open, Packet::Refusal),
            (Far::Proxy(proxy), Packet::Bytes(bytes)) => {
                let password = self.plan.passwords().proxy;
                let reaction = proxy.hear(&bytes, Some((PROXY_USER, &password)));
                self.react(link, reaction);
            }
            (Far::Server(id), Packet::Bytes(bytes)) => {
                let id = *id;
                self.server.received(now, id, &bytes);
                self.settle_server();
            }
            (Far::Server(id), Packet::End | Packet::Reset | Packet::Refusal) => {
                let id = *id;
                self.server.closed(now, id);
                self.network.far_ended(link);
                self.settle_server();
            }
            (Far::Gone, Packet::Bytes(_)) => self.send(link, Side::Near, Packet::Reset),
            (Far::Nobody | Far::Proxy(_), Packet::End | Packet::Reset | Packet::Refusal) => {
                self.network.far_ended(link);
            }
            (Far::Nobody, Packet::Bytes(_))
            | (Far::Proxy(_) | Far::Server(_), Packet::Open)
            | (Far::Gone, Packet::Open | Packet::End | Packet::Reset | Packet::Refusal) => {}
        }
    }

    fn react(&mut self, link: LinkId, reaction: Reaction) {
        match reaction {
            Reaction::Wait => {}
            Reaction::Say(bytes) => self.send_bytes(link, Side::Near, bytes),
            Reaction::Connect => {
                let [yes, no] = [CONNECTED, REFUSED].map(|said| Packet::Bytes(said.to_vec()));
                self.accept(link, yes, no);
            }
            Reaction::Refuse(bytes) => {
                self.send_bytes(link, Side::Near, bytes);
                self.send(link, Side::Near, Packet::End);
                self.network.far_ended(link);
            }
        }
    }

    /// The server takes the link, and the other end is told so; or it does not, and that is told.
    fn accept(&mut self, link: LinkId, yes: Packet, no: Packet) {
        if !self.listens {
            self.send(link, Side::Near, no);
            return self.network.far_ended(link);
        }
        self.send(link, Side::Near, yes);
        let peer = Peer { address: format!("client:{link}"), certificate_subject: None };
        let id = self.server.accepted(self.time_of_server(), peer);
        self.network.serve(link, id);
        self.settle_server();
    }

    /// Does what the server wants done.
    pub(super) fn settle_server(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Send { id, bytes } => {
                    if let Some(link) = self.network.link_of(id) {
                        self.send_bytes(link, Side::Near, &bytes);
                    }
                }
                Output::Close { id } | Output::Reset { id } => {
                    let is_reset = matches!(output, Output::Reset { .. });
                    let end = if is_reset { Packet::Reset } else { Packet::End };
                    if let Some(link) = self.network.link_of(id) {
                        self.send(link, Side::Near, end);
                        self.network.far_ended(link);
                    }
                }
                Output::HalfClose { id } => {
                    if let Some(link) = self.network.link_of(id) {
                        self.send(link, Side::Near, Packet::End);
                    }
                }
                // There is room for what these few callers send.
                Output::StopReading { .. } | Output::ResumeReading { .. } => {}
                Output::Listen(listens) => self.listens = listens,
            }
        }
    }

    /// One trouble after the other, with quiet times between.
    pub(super) fn next_trouble(&mut self) -> Result<(), String> {
        if self.is_calm() {
            return Ok(());
        }
        let after = self.chance.time(self.plan.trouble_time);
        self.plan_in(after, Due::Trouble);
        if self.trouble.is_some() {
            self.end_trouble();
        } else if let Some(trouble) = self.chance.pick(&self.plan.troubles) {
            self.trouble = Some(trouble);
            self.met.count(trouble.encounter());
            let now = self.time_of_server();
            trouble.begin(&mut self.server, now, &mut self.chance);
            self.settle_server();
            self.begin_on_network(trouble);
        }
        self.show_all();
        Ok(())
    }

    fn begin_on_network(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::IsCutOff => self.network.is_cut = true,
            Trouble::GoesHalfOpen => {
                let held: Vec<_> = self.network.held().collect();
                for link in held {
                    match self.chance.below(4) {
                        0 => self.network.lose(link, Side::Near),
                        1 => self.network.lose(link, Side::Far),
                        2 => {
                            self.network.lose(link, Side::Near);
                            self.network.lose(link, Side::Far);
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

    /// The server and the network are as they should be. What happened to connections stays so.
    pub(super) fn end_trouble(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            let now = self.time_of_server();
            trouble.end(&mut self.server, now);
            self.settle_server();
        }
        for (link, at) in self.network.mend() {
            let after = self.time(self.plan.latency);
            self.plan_in(after, Due::Arrive { link, at });
        }
    }

    /// The server counts its time from the world's beginning.
    pub(super) fn time_of_server(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }
}
