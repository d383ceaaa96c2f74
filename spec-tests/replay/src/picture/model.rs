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
    pub start: u64,
    /// The end of the trace.
    pub end: u64,
    /// The number of steps.
    pub steps: u64,
    /// The lifetime of each connection, in the order of their ends.
    pub lives: Vec<Life>,
    /// Establishments and uses of connections, in the order of their ends.
    pub uses: Vec<Use>,
    /// Requests that waited or failed, in the order of their ends.
    pub waits: Vec<Wait>,
    /// The counts, whenever they change.
    pub points: Vec<Point>,
    /// The limits, whenever they change.
    pub limits: Vec<Limits>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// All texts, by index; the first is empty.
    pub texts: Vec<String>,
    /// What each clear did, by number from 1.
    pub clears: Vec<String>,
    /// What happened, as `--explain` says it.
    pub summary: String,
    /// Faults that were injected while the trace was recorded; the trace does not contain them.
    pub faults: Vec<Fault>,
    /// The offset from UTC of wall-clock times, in minutes.
    pub utc_offset: i32,
    /// The servers of the client, if the trace of its topology is drawn, too.
    pub servers: Option<Servers>,
    /// From when to when there is something to be seen, if that is more than the trace.
    pub shown: Option<(u64, u64)>,
    /// There is no pool, only servers.
    pub is_topology: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its lane.
    pub slot: u32,
    /// Its number.
    pub number: u64,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
    /// The index of the text that says why it was closed; 0 if the trace ends first.
    pub why: u32,
}

/// An establishment or a use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Its lane.
    pub slot: u32,
    /// Its number.
    pub number: u64,
    /// The kind.
    pub kind: UseKind,
    /// The request that holds it; 0 if unknown.
    pub holder: u64,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
    /// The index of the text that says how it ended; 0 if as usual.
    pub note: u32,
    /// The index of the place of the check-out; 0 if unknown.
    pub place: u32,
}

/// The activity of a connection that is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// It is being established.
    Pending,
    /// It is checked out.
    InUse,
    /// A late reply is read.
    Draining,
}

/// A request from its arrival to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its row: waits in a row do not overlap.
    pub row: u32,
    /// The request.
    pub id: u64,
    /// The connection that was delivered; 0 if it failed.
    pub connection: u64,
    /// The outcome: 0 served, 1 timed out, 2 cleared or paused, 3 not established, 4 closed, 5
    /// cancelled, 6 still waiting at the end, 7 wait queue full, 8
    /// shed.
    pub outcome: u8,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
    /// How long it could wait; 0 if without limit, or unknown.
    pub limit: u64,
    /// How many requests were before it when it came; `None` if unknown.
    pub ahead: Option<u32>,
    /// The index of the text that says what stood in the way.
    pub why: u32,
    /// The index of the place of the check-out; 0 if unknown.
    pub place: u32,
}

/// The counts from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The start.
    pub at: u64,
    /// Pending, available and in use together.
    pub total: u32,
    /// Checked out.
    pub in_use: u32,
    /// Being established.
    pub pending: u32,
    /// In the wait queue.
    pub waiting: u32,
}

/// The limits from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The start.
    pub at: u64,
    /// `maxPoolSize`; 0 is without limit.
    pub max: u32,
    /// `minPoolSize`.
    pub min: u32,
    /// `maxConnecting`.
    pub connecting: u32,
}

/// A marked event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The time.
    pub at: u64,
    /// The kind.
    pub kind: MarkKind,
    /// The step.
    pub step: u64,
    /// The index of its text.
    pub text: u32,
    /// The number of the request, of the connection or of the clear that it is about; 0: none.
    pub about: u64,
}

/// The kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// The pool became ready.
    Ready,
    /// The pool, or a service, was cleared.
    Clear,
    /// The pool was closed.
    Close,
    /// A check-out failed.
    CheckOutFailed,
    /// An establishment failed.
    EstablishFailed,
    /// A connection was lost: an operation on it failed, or its server closed it.
    Lost,
    /// A connection was held for too long.
    Leak,
    /// Other options, a fork, a gap in the recording, or a refused input.
    Other,
}
