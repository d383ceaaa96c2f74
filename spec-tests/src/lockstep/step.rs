//! Steps: what may be done to a pool, in words that mean something in every state.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::{PoolOptions, Purpose, ServiceId};

/// One step of a script: what the clock does, and then what happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// First this.
    pub clock: Clock,
    /// Then this.
    pub op: Op,
}

/// What the clock does before something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Runs on by so many nanoseconds; by none, it stands still.
    Forward(u64),
    /// Shows a time so many nanoseconds before the last.
    Back(u64),
    /// Runs to the next deadline that the machine named, if there is one ahead.
    ToDeadline,
    /// Runs to one nanosecond before it.
    ShortOfDeadline,
}

/// What happens. Some of it makes no sense in most states, on purpose: then it has to be refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A request with the next id.
    CheckOut {
        /// The caller's deadline, in nanoseconds from now; 0 is out of time already.
        deadline: Option<u64>,
        /// What for.
        purpose: Purpose,
    },
    /// A request under an id that was used before.
    CheckOutUnderOldId,
    /// The caller of a request goes away: one of those without an outcome, by its place among them.
    Cancel(u8),
    /// The caller of no request in particular goes away.
    CancelUnknown,
    /// A connection comes back.
    CheckIn {
        /// Which.
        conn: Pick,
        /// In what condition.
        errored: bool,
    },
    /// A connection serves another purpose.
    Repurpose {
        /// Which.
        conn: Pick,
        /// Which purpose.
        purpose: Purpose,
    },
    /// Hello is done.
    Handshake {
        /// Which connection's.
        conn: Pick,
        /// With which service, if with any.
        service: Option<u8>,
    },
    /// Establishment succeeds.
    Succeed(Pick),
    /// Establishment fails.
    Fail(Pick),
    /// The peer closes a connection.
    PeerClose(Pick),
    /// The server can be used.
    Ready,
    /// The pool is closed.
    Close,
    /// The timer fires.
    Timer,
    /// The process forks, and this is the child.
    Fork,
    /// Connections are suspect.
    Clear {
        /// Those in use and pending ones, too.
        interrupt: bool,
        /// Of one service, or of the pool.
        service: Option<u8>,
    },
    /// Other options.
    SetOptions(Box<PoolOptions>),
}

/// Which connection a step is about: by its place among those of a kind, or bluntly by number.
///
/// A place counts from 0 and wraps around. Where there is none of the kind, the place is taken for
/// a number, which then mostly is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// One that is being established.
    Pending(u8),
    /// One that lies in the pool.
    Available(u8),
    /// One that is checked out.
    InUse(u8),
    /// One that has been closed, by its place among the closed ones.
    Closed(u8),
    /// One of this number, where the machine put it; any slot for a number that is not there.
    Number(u64),
    /// One that is there, but in a slot where it is not.
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
            Op::SetOptions(options) => write!(f, "SetOptions {}", Brief(options)),
            Op::CheckOut { .. }
            | Op::CheckOutUnderOldId
            | Op::Cancel(_)
            | Op::CancelUnknown
            | Op::CheckIn { .. }
            | Op::Repurpose { .. }
            | Op::Handshake { .. }
            | Op::Succeed(_)
            | Op::Fail(_)
            | Op::PeerClose(_)
            | Op::Ready
            | Op::Close
            | Op::Timer
            | Op::Fork
            | Op::Clear { .. } => write!(f, "{op:?}"),
        }
    }
}

/// The options that are set, and no others.
pub struct Brief<'a>(pub &'a PoolOptions);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.0;
        let mut set = f.debug_map();
        let mut entry = |name: &str, value: Option<&dyn fmt::Debug>| {
            if let Some(value) = value {
                set.entry(&format_args!("{name}"), value);
            }
        };
        entry("max", options.max_pool_size.as_ref().map(|value| value as _));
        entry("min", options.min_pool_size.as_ref().map(|value| value as _));
        entry("connecting", options.max_connecting.as_ref().map(|value| value as _));
        entry("idle", options.max_idle_time.as_ref().map(|value| value as _));
        entry("wait", options.wait_queue_timeout.as_ref().map(|value| value as _));
        entry("lifetime", options.max_lifetime.as_ref().map(|value| value as _));
        entry("seed", options.jitter_seed.as_ref().map(|value| value as _));
        entry("held", options.leak_detection_threshold.as_ref().map(|value| value as _));
        entry("balanced", options.load_balanced.as_ref().map(|value| value as _));
        entry("maintenance", options.maintenance.as_ref().map(|value| value as _));
        entry("reuse", options.reuse_order.as_ref().map(|value| value as _));
        set.finish()
    }
}
