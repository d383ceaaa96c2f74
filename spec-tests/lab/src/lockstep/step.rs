//! Steps of a script, which are meaningful in every state of a pool.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::{PoolOptions, Purpose, ServiceId};

/// One step: the clock moves, then an operation follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The clock's movement.
    pub clock: Clock,
    /// The operation.
    pub op: Op,
}

/// How the clock moves before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Advances by this many nanoseconds; by 0, it stands still.
    Forward(u64),
    /// Shows a time this many nanoseconds before the last one.
    Back(u64),
    /// Advances to the machine's next deadline, if that is in the future.
    ToDeadline,
    /// Advances to one nanosecond before it.
    ShortOfDeadline,
}

/// An operation. Most are invalid in some states, on purpose: then they have to be refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A check-out with the next id.
    CheckOut {
        /// The caller's deadline, in nanoseconds from now; 0 has already passed.
        deadline: Option<u64>,
        /// The purpose.
        purpose: Purpose,
    },
    /// A check-out with an id that was used before.
    CheckOutUnderOldId,
    /// The cancellation of a waiting request, by its index.
    Cancel(u8),
    /// The cancellation of an unknown request.
    CancelUnknown,
    /// A check-in.
    CheckIn {
        /// The connection.
        conn: Pick,
        /// Its health.
        errored: bool,
    },
    /// A check-in before a late reply.
    CheckInLate(Pick),
    /// The late reply was read.
    Drained(Pick),
    /// The late reply could not be read.
    DrainFail(Pick),
    /// Bytes of the late reply were read.
    DrainRead(Pick),
    /// Credentials changed.
    Retire,
    /// Idle connections are given back.
    Release,
    /// A connection changes its purpose.
    Repurpose {
        /// The connection.
        conn: Pick,
        /// The new purpose.
        purpose: Purpose,
    },
    /// The server replied to hello.
    Handshake {
        /// The connection.
        conn: Pick,
        /// The service, if there is one.
        service: Option<u8>,
        /// How many clears of services ago that was, if the number at that time is told; -1 is after
        /// the next one.
        clears_ago: Option<i8>,
    },
    /// Establishment succeeds.
    Succeed(Pick),
    /// Establishment fails.
    Fail {
        /// The connection.
        conn: Pick,
        /// The server may be overloaded.
        overloaded: bool,
    },
    /// The peer closes a connection.
    PeerClose(Pick),
    /// The pool is marked ready.
    Ready,
    /// The pool is closed.
    Close,
    /// The timer fires.
    Timer,
    /// The process forks, and this is the child.
    Fork,
    /// The pool is cleared.
    Clear {
        /// In-use and pending connections are interrupted, too.
        interrupt: bool,
        /// Only the connections of this service.
        service: Option<u8>,
    },
    /// Other options are set.
    SetOptions(Box<PoolOptions>),
}

/// The connection of a step: by its index among those in a state, or by its number.
///
/// Indices start at 0 and wrap around. If no connection is in that state, the index is taken for a
/// number, which is mostly refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// A pending connection.
    Pending(u8),
    /// An available connection, perhaps one that is pending a response.
    Available(u8),
    /// A connection in use.
    InUse(u8),
    /// A draining connection.
    Draining(u8),
    /// A closed connection.
    Closed(u8),
    /// The connection with this number, in its slot; in any slot if it does not exist.
    Number(u64),
    /// An existing connection with a wrong slot.
    WrongSlot(u8),
}

/// The service of this index.
pub fn service(index: u8) -> ServiceId {
    ServiceId([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, index])
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clock, op } = self;
        match clock {
            Clock::Forward(0) => {}
            Clock::Forward(nanos) => write!(f, "{:?} later: ", Duration::from_nanos(*nanos))?,
            Clock::Back(nanos) => write!(f, "{:?} earlier: ", Duration::from_nanos(*nanos))?,
            Clock::ToDeadline => f.write_str("at the deadline: ")?,
            Clock::ShortOfDeadline => f.write_str("just before the deadline: ")?,
        }
        match op {
            Op::SetOptions(options) => write!(f, "SetOptions {}", options),
            Op::CheckOut { .. }
            | Op::CheckOutUnderOldId
            | Op::Cancel(_)
            | Op::CancelUnknown
            | Op::CheckIn { .. }
            | Op::CheckInLate(_)
            | Op::Drained(_)
            | Op::DrainFail(_)
            | Op::DrainRead(_)
            | Op::Retire
            | Op::Release
            | Op::Repurpose { .. }
            | Op::Handshake { .. }
            | Op::Succeed(_)
            | Op::Fail { .. }
            | Op::PeerClose(_)
            | Op::Ready
            | Op::Close
            | Op::Timer
            | Op::Fork
            | Op::Clear { .. } => write!(f, "{op:?}"),
        }
    }
}
