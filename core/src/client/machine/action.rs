//! What comes out, in one ordered stream.

use core::time::Duration;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::client::SelectionError;
use crate::connect::Command;
use crate::error::ConnectionError;
use crate::monitor::{Line, SocketId};
use crate::pool::ServiceId;
use crate::topology::ServerId;
use crate::uri::srv::SrvError;
use crate::wire::Flags;
use crate::{monitor, topology};

/// What the embedder does, in this order.
#[derive(Debug)]
pub enum Action<W> {
    /// Make the pool of a server.
    OpenPool {
        /// The server.
        server: ServerId,
        /// Its address.
        address: Arc<ServerAddress>,
        /// Whether it is marked ready at once: behind a load balancer nothing else would do so. Others are paused.
        // LB-08
        is_ready: bool,
    },
    /// Feed the pool of a server, under the lock of the client, so that no caller finds a pool that does not match what
    /// is known of its server. Comes when a monitoring socket of the server was opened, or a connection of the pool.
    // SD-04
    FeedPool {
        /// The server.
        server: ServerId,
        /// What happens to its pool.
        change: PoolChange,
        /// The [step](crate::trace::topology::Step::client_step) of the topology that it follows, if a description has
        /// changed: for the pool's trace.
        follows: Option<u64>,
    },
    /// Close the pool of a server that was removed.
    ClosePool {
        /// The server.
        server: ServerId,
        /// Its address.
        address: Arc<ServerAddress>,
    },
    /// Open a monitoring socket.
    OpenSocket {
        /// Whose socket it is.
        server: ServerId,
        /// Which one.
        socket: SocketId,
        /// What it is for.
        line: Line,
    },
    /// Send a command on a monitoring socket.
    Send {
        /// Whose socket it is.
        server: ServerId,
        /// Which one.
        socket: SocketId,
        /// The command.
        command: Command,
        /// The flags of its message.
        flags: Flags,
    },
    /// Close a monitoring socket.
    CloseSocket {
        /// Whose socket it is.
        server: ServerId,
        /// Which one.
        socket: SocketId,
    },
    /// Look SRV records up.
    LookUp {
        /// Their name.
        name: String,
    },
    /// Answer a request for a server.
    Deliver {
        /// The caller.
        waiter: W,
        /// Servers that fit, or why there is none.
        outcome: Result<Chosen, SelectionError>,
    },
    /// Call the subscribers.
    EmitEvent(Event),
    /// Log what is wrong with SRV records.
    ReportRecords(SrvError),
}

/// One or two servers that fit: of two, the one whose pool has fewer operations in progress is to be taken.
// SD-53, SS-08
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The first, which is taken if both have as many.
    pub first: ServerId,
    /// The other, unless only one fits.
    pub second: Option<ServerId>,
}

/// What happens to a pool.
#[derive(Clone, Debug)]
pub enum PoolChange {
    /// It is marked ready.
    Ready,
    /// It is cleared.
    Clear {
        /// Why.
        cause: ConnectionError,
        /// Whether connections in use are interrupted.
        interrupt: bool,
        /// Only this service, behind a load balancer.
        service: Option<ServiceId>,
    },
    /// What a round trip to the server takes at least, for `maxTimeMS`.
    // CS-14
    MinRoundTrip(Duration),
}

/// What subscribers and the log are told, in one order for the whole client.
// SE-02, SE-07
#[derive(Clone, Debug)]
pub enum Event {
    /// Of a monitor.
    Heartbeat {
        /// Of which server.
        server: ServerId,
        /// Its address.
        address: Arc<ServerAddress>,
        /// What happened.
        event: monitor::Event,
    },
    /// Of the topology and its servers.
    Topology(topology::Event),
    /// What the topology is told, before it tells what it makes of that. For traces, not for subscribers.
    ToTopology(topology::Input),
}

/// Takes actions.
pub trait ActionSink<W> {
    /// Takes the next one.
    fn act(&mut self, action: Action<W>);
}

impl<W> ActionSink<W> for Vec<Action<W>> {
    fn act(&mut self, action: Action<W>) {
        self.push(action);
    }
}

impl<W, F: FnMut(Action<W>)> ActionSink<W> for F {
    fn act(&mut self, action: Action<W>) {
        self(action);
    }
}
