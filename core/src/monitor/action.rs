//! What comes out, in one ordered stream.

use core::fmt;
use std::collections::VecDeque;

use super::Event;
use crate::connect::Command;
use crate::error::ConnectionError;
use crate::wire::Flags;

/// One socket of a monitor: 1, 2, 3, … as they are opened. None is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "monitoring socket {}", self.0)
    }
}

/// What a socket is for. There is one of each at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// Checks.
    Check,
    /// Round-trip times, which streamed checks cannot measure.
    RoundTrip,
}

/// What the embedder has to do.
#[derive(Debug)]
pub enum Action {
    /// Connect, TLS, hello with the options of the [monitor](super::Monitor::establish_options);
    /// within `connectTimeoutMS`, which the embedder enforces, because it knows the stage. Then
    /// answer with [`Input::Opened`](super::Input::Opened) or
    /// [`Input::Failed`](super::Input::Failed), unless `Close` comes first.
    Open {
        /// A new one.
        socket: SocketId,
        /// Its role.
        line: Line,
    },
    /// Write this as one message, uncompressed, and feed each reply as
    /// [`Input::Replied`](super::Input::Replied). How long that may take is the machine's to say.
    Send {
        /// One that is open.
        socket: SocketId,
        /// The document of the message.
        command: Command,
        /// Its flags: with `exhaustAllowed`, replies go on until one has no `moreToCome`.
        flags: Flags,
    },
    /// Drop the socket in any state, and stop opening it. Exactly one for each `Open`, after
    /// `Failed`, too. No answer is owed; one that is on its way does no harm.
    Close {
        /// Not to be heard of again.
        socket: SocketId,
    },
    /// A check has succeeded: mark the pool ready, if the server
    /// [is usable](crate::topology::TopologyDescription::is_usable); without a topology, if it
    /// [holds data](super::ServerDescription::is_data_bearing) or is used whatever it is.
    MarkReady,
    /// Clear the pool.
    ClearPool {
        /// Why the check failed.
        cause: ConnectionError,
        /// Whether connections in use are broken off: after a timeout.
        interrupt: bool,
    },
    /// Call the event subscribers, in this place of the order.
    EmitEvent(Event),
}

/// Where actions go: `Vec`, `VecDeque`, closures, or a type of the embedder.
pub trait ActionSink {
    /// Takes the next action of the stream.
    fn act(&mut self, action: Action);
}

impl ActionSink for Vec<Action> {
    fn act(&mut self, action: Action) {
        self.push(action);
    }
}

impl ActionSink for VecDeque<Action> {
    fn act(&mut self, action: Action) {
        self.push_back(action);
    }
}

impl<F: FnMut(Action)> ActionSink for F {
    fn act(&mut self, action: Action) {
        self(action);
    }
}
