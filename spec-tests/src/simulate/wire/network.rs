//! The way between clients and the server: what is sent takes its time, in whatever cut, and may be
//! held up, lost or broken off.

use std::collections::{BTreeMap, VecDeque};

use cenote_endpoint::ConnectionId;

use super::proxy::Proxy;

/// One connection, as the network knows it: 1, 2, 3, …
pub(super) type LinkId = u64;

/// An end of a link, and what comes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// The client's.
    Near,
    /// The server's, or a proxy's.
    Far,
}

/// What goes one way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A client wants to connect; or the server lets it.
    Open,
    Bytes(Vec<u8>),
    /// Nothing more comes from there.
    End,
    /// Nobody listens.
    Refusal,
    /// The connection is broken.
    Reset,
}

/// Who is at the far end.
#[derive(Debug)]
pub(super) enum Far {
    /// Nobody has answered yet.
    Nobody,
    Proxy(Proxy),
    Server(ConnectionId),
    /// It has ended there, and whoever goes on to send is told by a reset.
    Gone,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) far: Far,
    /// The client has not hung up.
    is_held: bool,
    ways: [Way; 2],
}

#[derive(Debug, Default)]
struct Way {
    packets: VecDeque<Packet>,
    /// How many were ever sent.
    sent: u64,
    /// Whatever is sent there vanishes, and nobody is told.
    is_lossy: bool,
}

/// All links. When a packet arrives is for the world to say: in each direction in the order in which
/// they were sent.
#[derive(Debug, Default)]
pub(super) struct Network {
    links: BTreeMap<LinkId, Link>,
    served: BTreeMap<ConnectionId, LinkId>,
    last: LinkId,
    /// Nothing gets through, and nothing is lost.
    pub(super) is_cut: bool,
    /// What has arrived at the place of the cut.
    held_up: Vec<(LinkId, Side)>,
}

impl Network {
    /// A client begins to connect.
    pub(super) fn open(&mut self) -> LinkId {
        self.last += 1;
        let ways = [Way::default(), Way::default()];
        self.links.insert(self.last, Link { far: Far::Nobody, is_held: true, ways });
        self.last
    }

    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(&id)
    }

    /// Sends a packet towards a side. Whether it will arrive at all.
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

    /// The next packet has arrived at a side; `None` if it was lost or is held up on the last mile.
    pub(super) fn arrive(&mut self, id: LinkId, at: Side) -> Option<Packet> {
        if self.is_cut {
            self.held_up.push((id, at));
            return None;
        }
        let way = self.links.get_mut(&id)?.way_mut(at);
        let packet = way.packets.pop_front()?;
        (!way.is_lossy).then_some(packet)
    }

    /// The network is whole again: what was held up goes on, in the order in which it came.
    pub(super) fn mend(&mut self) -> Vec<(LinkId, Side)> {
        self.is_cut = false;
        std::mem::take(&mut self.held_up)
    }

    /// From now on nothing arrives at that side any more, and nobody is told.
    pub(super) fn lose(&mut self, id: LinkId, to: Side) {
        if let Some(link) = self.links.get_mut(&id) {
            link.way_mut(to).is_lossy = true;
        }
    }

    /// The server has accepted the link.
    pub(super) fn serve(&mut self, id: LinkId, connection: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.far = Far::Server(connection);
            self.served.insert(connection, id);
        }
    }

    /// Whose the server's connection is.
    pub(super) fn link_of(&self, connection: ConnectionId) -> Option<LinkId> {
        self.served.get(&connection).copied()
    }

    /// The client has dropped its end.
    pub(super) fn hang_up(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.is_held = false;
        }
        self.forget_if_over(id);
    }

    /// It has ended at the far end.
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

    /// How many packets clients have ever sent on a link; `None` once it is forgotten.
    pub(super) fn sent(&self, id: LinkId) -> Option<u64> {
        let [_, to_far] = &self.links.get(&id)?.ways;
        Some(to_far.sent)
    }

    /// Links that clients still hold.
    pub(super) fn held(&self) -> impl Iterator<Item = LinkId> {
        self.links.iter().filter(|(_, link)| link.is_held).map(|(&id, _)| id)
    }

    /// Connections that the server still has, though it could have heard that they are over.
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
