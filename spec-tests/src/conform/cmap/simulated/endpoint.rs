//! The other side of every connection: an endpoint that answers hello, sometimes badly.

use std::time::Duration;

use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_endpoint::Refusal;

use crate::conform::cmap::fail_point::{FailPoint, Hit};

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
    pub(super) result: Result<(), ConnectionError>,
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
            _ if close => Err(ConnectionError::network(Stage::Hello, "closed by the peer")),
            Some(code) => Err(refused(code)),
            None => Ok(()),
        };
        Answer { after: Self::ROUND_TRIP + blocked, result }
    }
}

/// As a real server puts it.
fn refused(code: i32) -> ConnectionError {
    let reply = Refusal::by_fail_point(code).reply();
    let error = CommandError::from_reply(&reply).expect("a refusal");
    ConnectionError::command(Stage::Hello, error)
}
