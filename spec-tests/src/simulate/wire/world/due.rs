//! What can happen in a world on the wire.

use cenote_core::pool::WaiterId;

use crate::simulate::wire::network::{LinkId, Side};

/// Something that will happen. Connections are named by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A packet comes to the end of its way.
    Arrive { link: LinkId, at: Side },
    /// A caller wants a connection.
    Ask { caller: u32 },
    /// A caller who waits goes away.
    GiveUp { request: WaiterId },
    /// A caller sends a command.
    Speak { connection: u64, use_number: u64 },
    /// The reply to a command should have come by now.
    Silence { connection: u64, use_number: u64, command: u32 },
    /// A caller brings a connection back.
    Finish { connection: u64, use_number: u64 },
    /// A connection serves another purpose from now on.
    Repurpose { connection: u64, use_number: u64 },
    /// The time for opening a connection is over.
    OpeningTimesOut { link: LinkId },
    /// Something gets into trouble, or a trouble ends.
    Trouble,
    /// Behind the load balancer routers go, and others come.
    ServicesMove,
    /// The application sets other options.
    SetOptions,
    /// The process forks, and this is the child.
    Fork,
    /// The process ends that this one was forked from.
    ParentEnds,
    /// Whoever embeds the machines makes a mistake.
    Misuse,
}
