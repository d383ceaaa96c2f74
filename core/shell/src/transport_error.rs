//! Why there was no reply on a connection, at whatever stage.

use std::io::{self, ErrorKind};
use std::time::Duration;

use cenote_core::connect::Establish;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::WireError;

/// What goes wrong with a [`Channel`](cenote_core::wire::Channel) and its stream.
#[derive(Debug)]
pub enum TransportError {
    /// The stream failed.
    Io(io::Error),
    /// The peer closed it.
    Closed,
    /// This long was not long enough.
    TimedOut(Duration),
    /// The peer broke the protocol.
    Wire(WireError),
    /// This side could not do that, or not now; no byte went either way.
    Refused(WireError),
}

impl TransportError {
    /// What is no failure but a step of a stream that does not block, as an error of its own:
    /// [`WouldBlock`](ErrorKind::WouldBlock) and [`Interrupted`](ErrorKind::Interrupted).
    ///
    /// # Errors
    ///
    /// Those two.
    pub fn split_would_block<R>(outcome: Result<R, Self>) -> io::Result<Result<R, Self>> {
        match outcome {
            Err(Self::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Err(error)
            }
            outcome => Ok(outcome),
        }
    }

    /// What it means for the connection.
    #[must_use]
    pub fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::Io(error) => ConnectionError::network(stage, error),
            Self::Closed => ConnectionError::network(stage, "closed by the peer"),
            Self::TimedOut(after) => ConnectionError::timeout(stage, after),
            // The end in the middle of a message is an end, and not the protocol's fault.
            Self::Wire(error @ WireError::EndOfStream { .. }) => {
                ConnectionError::network(stage, error)
            }
            Self::Wire(error) => ConnectionError::protocol(stage, &error.to_string()),
            Self::Refused(error) => ConnectionError::configuration(stage, &error.to_string()),
        }
    }
}

/// Tells the machine that establishes a connection, which knows the stage.
pub fn fail(establish: &mut Establish, failure: TransportError) {
    match failure {
        TransportError::Io(error) => establish.failed(error),
        TransportError::Closed => establish.failed("closed by the peer"),
        TransportError::TimedOut(after) => establish.timed_out(after),
        // As above.
        TransportError::Wire(error @ WireError::EndOfStream { .. }) => establish.failed(error),
        TransportError::Wire(error) | TransportError::Refused(error) => {
            establish.garbled(&error.to_string())
        }
    }
}

impl From<io::Error> for TransportError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Duration> for TransportError {
    fn from(after: Duration) -> Self {
        Self::TimedOut(after)
    }
}

impl From<WireError> for TransportError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}
