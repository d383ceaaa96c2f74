//! What a picture shows, as plain data.

use cenote_core::trace::TraceHeader;
use serde_json::Value;

use super::servers;
use crate::clock::Clock;
use crate::topology::History;

/// Everything that is drawn. Times are nanoseconds since the origin.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The beginning of the trace.
    pub(super) start: u64,
    /// The end of the trace.
    pub(super) end: u64,
    /// The number of steps.
    pub steps: u64,
    /// The lifetime of each connection, in the order of their ends.
    pub(super) lives: Vec<Life>,
    /// Establishments and uses of connections, in the order of their ends.
    pub(super) uses: Vec<Use>,
    /// Requests that waited or failed, in the order of their ends.
    pub(super) waits: Vec<Wait>,
    /// The counts, whenever they change.
    pub(super) points: Vec<Point>,
    /// The limits, whenever they change.
    pub(super) limits: Vec<Limits>,
    /// The marks.
    pub(super) marks: Vec<Mark>,
    /// All texts, by index; the first is empty.
    pub(super) texts: Vec<String>,
    /// What each clear did, by number from 1.
    pub(super) clears: Vec<String>,
    /// What happened, as `cenote explain` says it.
    pub(super) summary: String,
    /// Faults that were injected while the trace was recorded; the trace does not contain them.
    pub faults: Vec<Fault>,
    /// The offset from UTC of wall-clock times, in minutes.
    pub(super) utc_offset: i32,
    /// The servers of the client, if the trace of its topology is drawn, too.
    pub servers: Option<Servers>,
    /// From when to when there is something to be seen, if that is more than the trace.
    pub shown: Option<(u64, u64)>,
    /// There is no pool, only servers.
    pub is_topology: bool,
    /// Neighbours are joined if both together are no longer, in nanoseconds; 0: nothing is joined.
    pub(super) joined_below: u64,
}

/// The servers of a client, for the page.
#[derive(Clone, Debug)]
pub struct Servers(pub(super) Value);

impl Servers {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0["addresses"].as_array().map_or(0, Vec::len)
    }
}

/// What a picture is of.
#[derive(Clone, Debug, Default)]
pub struct Title {
    /// The address of the server; `None` if that is unknown, and for a topology.
    pub address: Option<String>,
    /// The program that recorded.
    pub program: Option<String>,
    /// Milliseconds since 1970 at the origin.
    pub origin: i64,
    /// Whether the trace begins with the pool.
    pub is_new: bool,
}

impl From<&TraceHeader> for Title {
    fn from(header: &TraceHeader) -> Self {
        let TraceHeader { address, program, origin, is_new, .. } = header.clone();
        Self { address, program, origin, is_new }
    }
}

impl Picture {
    /// The servers of a client alone.
    #[must_use]
    pub fn of_topology(history: &History, clock: Clock) -> Self {
        let (start, end) = (history.header.start.as_nanos(), history.end.as_nanos());
        let picture =
            Self { start, end, steps: history.steps, is_topology: true, ..Self::default() };
        let utc_offset = clock.utc_offset().minutes();
        Self { utc_offset, ..picture }.with_servers(history, clock)
    }

    /// With what the servers of the client were meanwhile, on the clock of the picture.
    #[must_use]
    pub fn with_servers(self, history: &History, clock: Clock) -> Self {
        let start = self.start.min(history.header.start.as_nanos());
        let end = self.end.max(history.end.as_nanos());
        let servers = Some(Servers(servers::servers(history, &clock)));
        Self { servers, shown: Some((start, end)), ..self }
    }

    /// From when to when there is something to be seen.
    #[must_use]
    pub fn time(&self) -> (u64, u64) {
        self.shown.unwrap_or((self.start, self.end))
    }
}

/// A fault that was injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it was.
    pub name: String,
    /// When it began, in milliseconds since 1970.
    pub at: u64,
    /// How long it lasted, in milliseconds.
    pub lasted: u64,
    /// What came of it.
    pub text: String,
}

/// The lifetime of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) slot: u32,
    pub(super) number: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The index of the text that says why it was closed; 0 if the trace ends first.
    pub(super) why: u32,
}

/// An establishment or a use of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) slot: u32,
    pub(super) number: u64,
    pub(super) kind: UseKind,
    /// The request that holds it; 0 if unknown.
    pub(super) holder: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The index of the text that says how it ended; 0 if as usual.
    pub(super) note: u32,
    /// The index of the place of the check-out; 0 if unknown.
    pub(super) place: u32,
    /// How many uses are joined in it.
    pub(super) count: u32,
    /// How long they are together.
    pub(super) busy: u64,
}

/// The activity of a connection that is not available, in the order of the page's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UseKind {
    Pending,
    InUse,
    Draining,
}

/// A request from its arrival to its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// Its row: waits in a row do not overlap.
    pub(super) row: u32,
    pub(super) id: u64,
    /// The connection that was delivered; 0 if it failed.
    pub(super) connection: u64,
    /// Its place in [`OUTCOMES`].
    pub(super) outcome: u8,
    pub(super) start: u64,
    pub(super) end: u64,
    /// How long it could wait; 0 if without limit, or unknown.
    pub(super) limit: u64,
    /// How many requests were before it when it came; `None` if unknown.
    pub(super) ahead: Option<u32>,
    /// The index of the text that says what stood in the way.
    pub(super) why: u32,
    /// The index of the place of the check-out; 0 if unknown.
    pub(super) place: u32,
    /// How many requests are joined in it.
    pub(super) count: u32,
    /// How long they waited together.
    pub(super) busy: u64,
}

/// In the order of the page's script.
pub(super) const OUTCOMES: [&str; 9] = [
    "served",
    "timed out",
    "cleared",
    "not established",
    "closed",
    "cancelled",
    "still waiting",
    "queue full",
    "shed",
];

/// The counts from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) at: u64,
    /// Pending, available and in use together.
    pub(super) total: u32,
    pub(super) in_use: u32,
    pub(super) pending: u32,
    pub(super) waiting: u32,
}

/// The limits from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) at: u64,
    /// `maxPoolSize`; 0 is without limit.
    pub(super) max: u32,
    pub(super) min: u32,
    pub(super) connecting: u32,
}

/// A marked event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) at: u64,
    pub(super) kind: MarkKind,
    pub(super) step: u64,
    /// The index of its text.
    pub(super) text: u32,
    /// The number of the request, of the connection or of the clear that it is about; 0: none.
    pub(super) about: u64,
}

/// The kinds of marks, in the order of the page's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Ready,
    /// The pool, or a service, was cleared.
    Clear,
    Close,
    CheckOutFailed,
    EstablishFailed,
    /// A connection was lost: an operation on it failed, or its server closed it.
    Lost,
    /// A connection was held for too long.
    Leak,
    /// For the time that its text names, no connection is established.
    BackOff,
    /// A request was shed on standing delay.
    Shed,
    /// The credentials changed: older connections are retired.
    Retired,
    /// Other options, a fork, a gap in the recording, or a refused input.
    Other,
}
