//! Scheduled events of a fleet.

use cenote_core::pool::ConnId;

use super::Ask;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A caller makes a request, or retries one.
    Ask { client: u32, ask: Ask },
    /// A new caller arrives, at a client that is shared by all.
    Arrive,
    /// The timer of a pool.
    Timer { client: u32 },
    /// A connection is established or fails.
    Opened { client: u32, id: ConnId, is_good: bool },
    /// An operation is done, if the connection still serves the same use.
    Answered { client: u32, id: ConnId, use_number: u64 },
    /// A connection reaches the age at which the network closes it.
    Cut { client: u32, id: ConnId },
    /// A client's monitor checks the server.
    Check { client: u32 },
    /// The result of the check arrives.
    Checked { client: u32, is_good: bool },
    /// A client is frozen.
    Freeze { client: u32 },
    /// The server becomes unavailable.
    Down,
    /// The server is available again.
    Up,
    /// Connections are counted.
    Count,
}

impl Due {
    /// The client that has to run for it.
    pub(super) const fn of_client(&self) -> Option<u32> {
        match *self {
            Self::Ask { client, .. }
            | Self::Timer { client }
            | Self::Opened { client, .. }
            | Self::Answered { client, .. }
            | Self::Cut { client, .. }
            | Self::Check { client }
            | Self::Checked { client, .. } => Some(client),
            Self::Arrive | Self::Freeze { .. } | Self::Down | Self::Up | Self::Count => None,
        }
    }
}
