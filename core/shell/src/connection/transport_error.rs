//! Why there is no reply on a connection.

use std::io::{self, ErrorKind};
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::WireError;

use crate::connection::shortage::opening_failed;

/// An error of a [`Channel`](cenote_core::wire::Channel) or of the stream below it.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// The stream failed.
    Io(io::Error),
    /// The peer closed it.
    Closed,
    /// A time limit passed: how long it was.
    TimedOut(Duration),
    /// That was the operation's, and was over before its request was sent; the connection is as it was.
    NotSent(Duration),
    /// The peer broke the protocol.
    Wire(WireError),
    /// The caller's request is invalid, or comes at the wrong time; nothing was sent.
    Refused(WireError),
}

impl TransportError {
    /// Tells the two outcomes of a step that ask for another call from its failures.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](ErrorKind::WouldBlock) and [`Interrupted`](ErrorKind::Interrupted).
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

    /// The connection's error.
    #[must_use]
    pub fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::Io(error) if stage.is_establishing() => opening_failed(stage, error),
            Self::Io(error) => ConnectionError::network(stage, error),
            Self::Closed => ConnectionError::network(stage, "closed by the peer"),
            Self::TimedOut(after) => ConnectionError::timeout(stage, after),
            Self::NotSent(after) => ConnectionError::not_sent(stage, after),
            // The end in the middle of a message is an end, and does not break the protocol.
            Self::Wire(error @ WireError::EndOfStream { .. }) => {
                ConnectionError::network(stage, error)
            }
            Self::Wire(error) => ConnectionError::protocol(stage, &error.to_string()),
            Self::Refused(error) => ConnectionError::configuration(stage, &error.to_string()),
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
