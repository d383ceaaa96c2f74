//! The shell of these worlds: why something failed is what a shell on real sockets would say.

use std::fmt;

use cenote_core::error::ConnectionError;
use cenote_core::pool::PoolTypes;
use cenote_core::trace::{Cause, CauseSummary, TraceCause};

/// PayloadSource are numbers, as in [`Tagged`](crate::lockstep::Tagged); causes are real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulate) enum Wired {}

impl PoolTypes for Wired {
    type Conn = u64;
    type Waiter = u64;
    type Cause = Why;
}

/// An error that can be told from all others, so that one which is mixed up is seen.
#[derive(Clone, Debug)]
pub(in crate::simulate) struct Why {
    number: u64,
    error: ConnectionError,
}

impl Why {
    pub(super) const fn new(number: u64, error: ConnectionError) -> Self {
        Self { number, error }
    }

    /// As a trace tells it.
    pub(in crate::simulate) fn traced(&self) -> Cause {
        let text = Some(self.error.reason().into());
        Cause { summary: self.error.summary(), text }
    }
}

impl PartialEq for Why {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl TraceCause for Why {
    fn summary(&self) -> CauseSummary {
        self.error.summary()
    }

    fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.error.write_text(out)
    }
}
