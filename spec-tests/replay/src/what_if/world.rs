//! Callers and a server, as a pool meets them.

use std::time::Duration;

use cenote_core::pool::{ConnId, Instant, PoolOptions, Purpose, ServiceId, WaiterId};
use cenote_core::trace::Cause;

/// What the pool does not decide: when requests come, for how long they use a connection, and how the server answers.
pub(crate) trait World {
    /// What happens whatever the pool does: requests, by the number that the world gives them, and events.
    fn begin(&mut self, plan: &mut dyn FnMut(Instant, Due));

    /// The next of many requests that are made whatever the pool does, in the order of time; after what is planned in
    /// [`begin`](Self::begin) for the same moment.
    fn arrival(&mut self) -> Option<(Instant, u32)> {
        None
    }

    /// How a request is made.
    fn request(&mut self, request: u32) -> Ask;

    /// How a request that was served uses its connection, one of those in use.
    fn serve(&mut self, request: u32, in_use: u32, now: Instant) -> Use;

    /// The request that the caller of this one makes at the end of its use, and whose end it waits for before it checks in.
    fn nested(&mut self, request: u32) -> Option<u32>;

    /// How a connection is established.
    fn open(&mut self, number: u64, now: Instant) -> Opening;

    /// A request has ended, after its use if it was served. The next one that its caller makes, and when.
    fn end(&mut self, request: u32, now: Instant, was_served: bool) -> Option<(Instant, u32)>;

    /// An event that was planned.
    fn event(&mut self, event: u32) -> Event;

    /// A clear.
    fn clear(&self, clear: u32) -> Clear;
}

/// A request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ask {
    /// The caller's deadline.
    pub(crate) limit: Option<Duration>,
    /// The caller cancels after this time.
    pub(crate) patience: Option<Duration>,
    pub(crate) purpose: Purpose,
}

/// The use of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Use {
    /// `None`: it is never checked in.
    pub(crate) lasts: Option<Duration>,
    /// How it fails.
    pub(crate) failure: Option<Cause>,
    /// The pool is cleared because of the failure.
    pub(crate) clear: Option<u32>,
}

/// An establishment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opening {
    pub(crate) lasts: Duration,
    pub(crate) service: Option<ServiceId>,
    pub(crate) failure: Option<FailedOpening>,
    pub(crate) clear: Option<u32>,
}

/// How an establishment fails.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FailedOpening {
    pub(crate) cause: Cause,
    /// The server may be overloaded.
    pub(crate) overloaded: bool,
}

/// A clear, and when the pool is ready again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clear {
    pub(crate) cause: Cause,
    pub(crate) interrupt: bool,
    pub(crate) service: Option<ServiceId>,
    pub(crate) ready_after: Option<Duration>,
}

/// What happens to the pool from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Ready,
    Clear(u32),
    Retire,
    Release,
    SetOptions(Box<PoolOptions>),
    /// The peer closes the idle connection that has waited longest.
    PeerCloses(Cause),
}

/// What is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    Ask(u32),
    /// The same, and the next one that the world tells of is planned.
    Arrive(u32),
    Cancel(WaiterId),
    Opened(ConnId),
    CheckIn(ConnId, WaiterId),
    Event(u32),
    Ready,
}

/// The state of a pool when a run begins: as if it had been used before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Warm {
    pub(crate) is_ready: bool,
    /// Requests that hold connections.
    pub(crate) held: Vec<u32>,
    /// Idle connections.
    pub(crate) idle: u32,
}
