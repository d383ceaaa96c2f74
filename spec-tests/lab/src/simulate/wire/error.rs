//! The pool's payload types in these worlds. Causes are real errors, as on real sockets.

use std::fmt;

use cenote_core::error::ConnectionError;
use cenote_core::pool::PoolTypes;
use cenote_core::trace::{Cause, CauseSummary, TraceCause};

/// Payloads are numbers, as in [`Tagged`](crate::lockstep::Tagged); causes are real errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulate) enum WireTypes {}

impl PoolTypes for WireTypes {
    type Conn = u64;
    type Waiter = u64;
    type Cause = NumberedError;
}

/// An error with a number, by which it is compared, so that mixed-up errors are noticed.
#[derive(Clone, Debug)]
pub(in crate::simulate) struct NumberedError {
    number: u64,
    error: ConnectionError,
}

impl NumberedError {
    pub(super) const fn new(number: u64, error: ConnectionError) -> Self {
        Self { number, error }
    }

    /// The cause as it stands in a trace.
    pub(in crate::simulate) fn traced(&self) -> Cause {
        let text = Some(self.error.reason().into());
        Cause { summary: self.error.summary(), text }
    }
}

impl PartialEq for NumberedError {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl fmt::Display for NumberedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl TraceCause for NumberedError {
    fn summary(&self) -> CauseSummary {
        self.error.summary()
    }

    fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.error.write_text(out)
    }
}
