//! What is going to happen in a fleet.

use cenote_core::pool::ConnId;

use super::Ask;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A caller wants something done, perhaps again.
    Ask { client: u32, ask: Ask },
    /// A caller comes who never came before, to a client that has one for all.
    Arrive,
    /// The timer of a pool.
    Timer { client: u32 },
    /// A connection is open, or will not be.
    Opened { client: u32, id: ConnId, is_good: bool },
    /// An operation is done, if the connection still serves the same use.
    Answered { client: u32, id: ConnId, use_number: u64 },
    /// A connection has reached the age at which it is closed from outside.
    Cut { client: u32, id: ConnId },
    /// A client asks whether its server is there.
    Check { client: u32 },
    /// It hears whether it is.
    Checked { client: u32, is_good: bool },
    /// The server goes away.
    Down,
    /// It is back.
    Up,
    /// Connections are counted.
    Count,
}
