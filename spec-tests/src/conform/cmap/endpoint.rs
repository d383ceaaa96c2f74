//! The other side of every connection: an endpoint that answers hello, sometimes badly.

use std::fmt;
use std::time::Duration;

use super::fail_point::{FailPoint, Hit};

/// A server of which only the answer to hello matters. Every command that the specification calls
/// part of the handshake is answered with it.
#[derive(Debug)]
pub(super) struct Endpoint {
    fail_point: Option<FailPoint>,
}

/// What becomes of a hello, and when.
#[derive(Debug)]
pub(super) struct Answer {
    /// How long it takes.
    pub(super) after: Duration,
    /// Whether the connection is established then.
    pub(super) result: Result<(), Cause>,
}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The endpoint closed the connection instead of answering hello.
    ClosedInHello,
    /// The endpoint answered hello with an error.
    HelloError { code: i32 },
    /// The file asked for a clear, as if a monitor had failed.
    ClearedByFile,
    /// The pool was cleared and broke the connection while it was in use.
    Interrupted,
}

impl Endpoint {
    /// How long connect and hello take when nothing is wrong. Not 0, so that what happens while a
    /// connection is being established has its own moment.
    const ROUND_TRIP: Duration = Duration::from_millis(1);

    /// An endpoint with this fail point switched on.
    pub(super) const fn new(fail_point: Option<FailPoint>) -> Self {
        Self { fail_point }
    }

    /// A connection of this application says hello.
    pub(super) fn hello(&mut self, app_name: Option<&str>) -> Answer {
        let hit = self.fail_point.as_mut().and_then(|fail_point| fail_point.hit(app_name));
        let Some(Hit { blocked, close, error_code }) = hit else {
            return Answer { after: Self::ROUND_TRIP, result: Ok(()) };
        };
        let result = match error_code {
            _ if close => Err(Cause::ClosedInHello),
            Some(code) => Err(Cause::HelloError { code }),
            None => Ok(()),
        };
        Answer { after: Self::ROUND_TRIP + blocked, result }
    }
}

impl Cause {
    /// What SDAM makes of a failed establishment: a network error before hello is done may mean
    /// overload and says nothing about the server (ER-30, ER-34); an error that the server took the
    /// trouble to send does, and clears the pool (ER-35, ER-36).
    pub(super) const fn clears(self) -> bool {
        match self {
            Self::HelloError { .. } => true,
            Self::ClosedInHello | Self::ClearedByFile | Self::Interrupted => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedInHello => f.write_str("connection closed during hello"),
            Self::HelloError { code } => write!(f, "hello failed with code {code}"),
            Self::ClearedByFile => f.write_str("clear was called by the test"),
            Self::Interrupted => f.write_str("interrupted by a clear"),
        }
    }
}
