//! The network between the client and the server: packets are delayed, or lost without notice.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;

use cenote_endpoint::ConnectionId;

/// An end of a link, at which packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulate) enum Side {
    /// The client's end.
    Near,
    /// The server's end.
    Far,
}

#[derive(Debug)]
pub(super) enum Packet {
    /// A request to connect, or its acceptance.
    Open,
    Bytes(Vec<u8>),
    /// The stream ends.
    End(ErrorKind),
}

/// A link of the client. Each direction keeps its order.
#[derive(Debug, Default)]
struct Link {
    /// `None` before the server has accepted it, and after it has closed it.
    server_end: Option<ConnectionId>,
    to_near: VecDeque<Packet>,
    to_far: VecDeque<Packet>,
    /// Packets are lost without notice.
    is_lossy: bool,
}

/// All links of the client, by the numbers of the pool's connections.
#[derive(Debug, Default)]
pub(super) struct Network {
    links: BTreeMap<u64, Link>,
    served: BTreeMap<ConnectionId, u64>,
}

impl Network {
    pub(super) fn open(&mut self, connection: u64, is_lossy: bool) {
        self.links.insert(connection, Link { is_lossy, ..Link::default() });
    }

    /// Sends a packet towards a side. Returns whether it will arrive.
    pub(super) fn send(&mut self, connection: u64, to: Side, packet: Packet) -> bool {
        match self.links.get_mut(&connection) {
            Some(link) if !link.is_lossy => {
                link.way_mut(to).push_back(packet);
                true
            }
            Some(_) | None => false,
        }
    }

    /// The next packet at a side; `None` if it was lost.
    pub(super) fn arrive(&mut self, connection: u64, at: Side) -> Option<Packet> {
        let link = self.links.get_mut(&connection)?;
        link.way_mut(at).pop_front().filter(|_| !link.is_lossy)
    }

    /// From now on, all packets on these links are lost.
    pub(super) fn lose_all(&mut self) {
        self.links.values_mut().for_each(|link| link.is_lossy = true);
    }

    pub(super) fn serve(&mut self, connection: u64, id: ConnectionId) {
        if let Some(link) = self.links.get_mut(&connection) {
            link.server_end = Some(id);
            self.served.insert(id, connection);
        }
    }

    pub(super) fn server_end(&self, connection: u64) -> Option<ConnectionId> {
        self.links.get(&connection)?.server_end
    }

    pub(super) fn connection_of(&self, id: ConnectionId) -> Option<u64> {
        self.served.get(&id).copied()
    }

    /// The server closes its end.
    pub(super) fn server_ended(&mut self, connection: u64) {
        let link = self.links.get_mut(&connection);
        if let Some(id) = link.and_then(|link| link.server_end.take()) {
            self.served.remove(&id);
        }
    }

    /// The client closes its end. Returns the server's, if it had not closed that.
    pub(super) fn close(&mut self, connection: u64) -> Option<ConnectionId> {
        let id = self.links.remove(&connection)?.server_end?;
        self.served.remove(&id);
        Some(id)
    }
}

impl Link {
    fn way_mut(&mut self, to: Side) -> &mut VecDeque<Packet> {
        match to {
            Side::Near => &mut self.to_near,
            Side::Far => &mut self.to_far,
        }
    }
}
