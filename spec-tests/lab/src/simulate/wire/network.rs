//! The network between the client and the server: packets are delayed, held up, lost or reset.

use std::collections::{BTreeMap, VecDeque};

use cenote_endpoint::ConnectionId;

use super::proxy::Proxy;

/// The number of a connection in the network: 1, 2, 3, …
pub(super) type LinkId = u64;

/// An end of a link, at which packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulate) enum Side {
    /// The client's end.
    Near,
    /// The server's or the proxy's end.
    Far,
}

/// A packet in either direction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A request to connect, or its acceptance.
    Open,
    Bytes(Vec<u8>),
    /// The sender shut down its direction.
    End,
    /// The server does not listen.
    Refusal,
    /// The connection was reset.
    Reset,
}

/// What is at the far end.
#[derive(Debug)]
pub(super) enum Far {
    /// Not yet connected.
    Unconnected,
    Proxy(Proxy),
    Server(ConnectionId),
    /// Closed; further packets are answered with a reset.
    Gone,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) far: Far,
    /// The client has not closed its end.
    is_held: bool,
    ways: [Way; 2],
}

#[derive(Debug, Default)]
struct Way {
    packets: VecDeque<Packet>,
    /// The number of packets that were ever sent.
    sent: u64,
    /// Packets are lost without notice.
    is_lossy: bool,
}

/// All links. The world decides when a packet arrives; each direction keeps its order.
#[derive(Debug, Default)]
pub(super) struct Network {
    links: BTreeMap<LinkId, Link>,
    served: BTreeMap<ConnectionId, LinkId>,
    last: LinkId,
    /// Packets are held up, but not lost.
    pub(super) is_cut: bool,
    /// Packets that arrived at the cut.
    held_up: Vec<(LinkId, Side)>,
}

impl Network {
    /// Adds a link for a client that connects.
    pub(super) fn open(&mut self) -> LinkId {
        self.last += 1;
        let ways = [Way::default(), Way::default()];
        self.links.insert(self.last, Link { far: Far::Unconnected, is_held: true, ways });
        self.last
    }

    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(&id)
    }

    /// Sends a packet towards a side. Returns whether it will arrive.
    pub(super) fn send(&mut self, id: LinkId, to: Side, packet: Packet) -> bool {
        let Some(link) = self.links.get_mut(&id) else { return false };
        let way = link.way_mut(to);
        way.sent += 1;
        if way.is_lossy {
            return false;
        }
        way.packets.push_back(packet);
        true
    }

    /// The next packet at a side; `None` if it was lost or is held up.
    pub(super) fn arrive(&mut self, id: LinkId, at: Side) -> Option<Packet> {
        if self.is_cut {
            self.held_up.push((id, at));
            return None;
        }
        let way = self.links.get_mut(&id)?.way_mut(at);
        let packet = way.packets.pop_front()?;
        (!way.is_lossy).then_some(packet)
    }

    /// Ends the cut. Returns the packets that were held up, in order.
    pub(super) fn reconnect(&mut self) -> Vec<(LinkId, Side)> {
        self.is_cut = false;
        std::mem::take(&mut self.held_up)
    }

    /// From now on, packets to that side are lost without notice.
    pub(super) fn lose(&mut self, id: LinkId, to: Side) {
        if let Some(link) = self.links.get_mut(&id) {
            link.way_mut(to).is_lossy = true;
        }
    }

    /// The server accepts the link.
    pub(super) fn serve(&mut self, id: LinkId, connection: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.far = Far::Server(connection);
            self.served.insert(connection, id);
        }
    }

    /// The link of a connection of the server.
    pub(super) fn link_of(&self, connection: ConnectionId) -> Option<LinkId> {
        self.served.get(&connection).copied()
    }

    /// The client closes its end.
    pub(super) fn hang_up(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.is_held = false;
        }
        self.forget_if_over(id);
    }

    /// The far end is closed.
    pub(super) fn far_ended(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            if let Far::Server(connection) = link.far {
                self.served.remove(&connection);
            }
            link.far = Far::Gone;
        }
        self.forget_if_over(id);
    }

    fn forget_if_over(&mut self, id: LinkId) {
        let is_over = |link: &Link| !link.is_held && matches!(link.far, Far::Gone);
        if self.links.get(&id).is_some_and(is_over) {
            self.links.remove(&id);
        }
    }

    /// The number of packets that the client ever sent on a link; `None` once it is forgotten.
    pub(super) fn sent(&self, id: LinkId) -> Option<u64> {
        let [_, to_far] = &self.links.get(&id)?.ways;
        Some(to_far.sent)
    }

    /// Links that the client has not closed.
    pub(super) fn held(&self) -> impl Iterator<Item = LinkId> {
        self.links.iter().filter(|(_, link)| link.is_held).map(|(&id, _)| id)
    }

    /// Connections that the server still has although their end could have reached it.
    pub(super) fn forgotten(&self) -> impl Iterator<Item = LinkId> {
        let is_forgotten = |link: &Link| {
            let [_, to_far] = &link.ways;
            matches!(link.far, Far::Server(_)) && !to_far.is_lossy
        };
        self.links.iter().filter(move |(_, link)| is_forgotten(link)).map(|(&id, _)| id)
    }
}

impl Link {
    fn way_mut(&mut self, to: Side) -> &mut Way {
        let [to_near, to_far] = &mut self.ways;
        match to {
            Side::Near => to_near,
            Side::Far => to_far,
        }
    }
}
