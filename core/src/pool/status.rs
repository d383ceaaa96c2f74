//! The state of a pool, as CMAP names it.

use core::fmt;

/// The state of a pool, as CMAP names it.
// PS-15
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// At first, and after a clear: no check-outs, nothing is created.
    Paused,
    /// Serves check-outs and keeps up the minimum.
    Ready,
    /// For good.
    Closed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Paused => "paused",
            Self::Ready => "ready",
            Self::Closed => "closed",
        })
    }
}
