//! The simulated server: it replies to hello, or fails as the fail point says.

use std::time::Duration;

use bson::raw::cstr;
use bson::rawdoc;
use cenote_core::error::{CommandError, ConnectionError, Stage};

use crate::scenario::{FailPoint, Hit};
use crate::target::Setup;

/// A server of which only the reply to hello matters, which stands for the whole handshake. For targets
/// under virtual time.
#[derive(Debug)]
pub struct SimulatedServer {
    fail_point: Option<FailPoint>,
    app_name: Option<String>,
}

/// The reply to a hello.
#[derive(Debug)]
pub struct Answer {
    /// How long it takes.
    pub after: Duration,
    /// Whether the connection is established then.
    pub result: Result<(), ConnectionError>,
}

impl SimulatedServer {
    /// How long connecting and hello take. Not 0, so that scenarios can act while a connection is
    /// being established.
    const ROUND_TRIP: Duration = Duration::from_millis(1);

    /// The server for this pool.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self { fail_point: setup.fail_point.clone(), app_name: setup.uri.app_name.clone() }
    }

    /// A connection of the pool says hello.
    pub fn hello(&mut self) -> Answer {
        let app_name = self.app_name.as_deref();
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

/// The error reply of `failCommand`, as a real server words it.
fn refused(code: i32) -> ConnectionError {
    let message = "Failing command via 'failCommand' failpoint";
    let mut reply = rawdoc! { "ok": 0.0, "errmsg": message, "code": code };
    // Of the codes that scenarios use, one has a name.
    if code == 91 {
        reply.append(cstr!("codeName"), "ShutdownInProgress");
    }
    let error = CommandError::from_reply(&reply).expect("a refusal");
    ConnectionError::command(Stage::Hello, error)
}
