//! What can happen in a world.

use cenote_core::pool::WaiterId;

/// Something that will happen. Connections are named by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A caller wants a connection.
    Ask { caller: u32 },
    /// A caller who waits goes away.
    GiveUp { request: WaiterId },
    /// A caller has done with its connection what it wanted, or cannot.
    Finish { connection: u64, use_number: u64 },
    /// A connection serves another purpose from now on.
    Repurpose { connection: u64, use_number: u64 },
    /// The hello of a connection is answered.
    Greeted { connection: u64 },
    /// A connection is open, or will never be.
    Opened { connection: u64 },
    /// The time for opening a connection is over.
    OpeningTimesOut { connection: u64 },
    /// The monitor looks at the server.
    Heartbeat,
    /// The server gets into trouble, or a trouble ends.
    Trouble,
    /// The peer of an idle connection closes it.
    PeerCloses { connection: u64 },
    /// Behind the load balancer services go, and others come.
    ServicesMove,
    /// The application sets other options.
    SetOptions,
    /// The process forks, and this is the child.
    Fork,
    /// Whoever embeds the pool makes a mistake.
    Misuse,
}
