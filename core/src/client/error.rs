use core::fmt;
use core::time::Duration;

use thiserror::Error;

use super::{InvalidReadPreference, Selector};
use crate::address::ServerAddress;
use crate::error::{OperationError, PoolError, RetryWrites, rounded};

/// Why a call to a client failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no server for it.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// There is no connection.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The connection failed, or the server refused.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// An operation with a limit of its own, `timeoutMS` or the timeout or deadline of the call, has run out of time.
    #[error("{limit} were over: {cause}")]
    TimedOut {
        /// How much time there was, and for what.
        limit: TimeLimit,
        /// What it did then.
        cause: Box<ClientError>,
    },
}

/// How much time an operation had.
///
/// `Display` is, for example, `the operation's 2s` or `the 200ms of serverSelectionTimeoutMS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeLimit {
    /// For all of it: `timeoutMS`, or the timeout or deadline of the call.
    Operation(Duration),
    /// For selection and check-out together: `serverSelectionTimeoutMS`, which was less than that.
    ServerSelection(Duration),
}

/// Why no server was selected. It shows the description of each server.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// `serverSelectionTimeoutMS` or `timeoutMS` ran out.
    #[error("there was no {selector} within {:?}: {servers}", rounded(*after))]
    TimedOut {
        /// The selector.
        selector: Selector,
        /// How long it was waited for.
        after: Duration,
        /// Each server, with its type or why it is Unknown.
        servers: String,
    },
    /// No server speaks a wire version of this client.
    #[error(
        "there is no {selector}, since no server speaks a wire version of this client: {servers}"
    )]
    Incompatible {
        /// The selector.
        selector: Selector,
        /// Each server, with its type or why it is Unknown.
        servers: String,
    },
    /// The address is none of the servers that were found.
    #[error(
        "{address} is no server of this client: name one of the servers that `Client::servers` lists"
    )]
    NotOfThisClient {
        /// The selector.
        address: ServerAddress,
    },
    /// The read preference selects no server, whichever there are.
    #[error(transparent)]
    ReadPreference(#[from] InvalidReadPreference),
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
    /// This process was forked from the one that has the client, with its monitors.
    #[error("the client is the parent process's: make another one in this process")]
    Inherited,
}

impl SelectionError {
    /// Why, without the selector and the servers: [log records](crate::log::Selection::failed) have these apart.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::TimedOut { after, .. } => format!("there was none within {:?}", rounded(*after)),
            Self::Incompatible { .. } => {
                "no server speaks a wire version of this client".to_owned()
            }
            Self::NotOfThisClient { .. } => "it is no server of this client".to_owned(),
            Self::ReadPreference(_) | Self::Closed | Self::Inherited => self.to_string(),
        }
    }
}

impl ClientError {
    /// The labels that a driver would raise the error with, each once. `retry_writes` is whether
    /// the operation is a write that the client may send twice.
    // BP-01
    #[must_use]
    pub fn labels(&self, retry_writes: RetryWrites) -> Vec<&str> {
        match self {
            Self::Selection(_) => Vec::new(),
            Self::Pool(error) => error.labels(retry_writes).collect(),
            Self::Operation(OperationError::Connection(error)) => {
                error.labels(retry_writes).collect()
            }
            Self::Operation(OperationError::Interrupted(_)) => {
                retry_writes.label().into_iter().collect()
            }
            Self::TimedOut { cause, .. } => cause.labels(retry_writes),
        }
    }

    /// The same error as one of an operation that had this much time, if it is one of time.
    // CS-15
    #[must_use]
    pub fn within(self, limit: TimeLimit) -> Self {
        if matches!(self, Self::TimedOut { .. }) || !self.is_timeout() {
            return self;
        }
        Self::TimedOut { limit, cause: Box::new(self) }
    }

    /// Whether a limit of time ran out: that of the operation, of selection, of the wait queue or of the socket.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Selection(error) => matches!(error, SelectionError::TimedOut { .. }),
            Self::Pool(error) => error.is_timeout(),
            Self::Operation(error) => error.is_timeout(),
            Self::TimedOut { .. } => true,
        }
    }

    /// Whether an operation that may safely run twice is worth another attempt.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Selection(_) => false,
            Self::Pool(error) => error.is_retryable(),
            Self::Operation(error) => error.is_retryable(),
            Self::TimedOut { .. } => false,
        }
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Operation(limit) => write!(f, "the operation's {:?}", rounded(limit)),
            Self::ServerSelection(limit) => {
                write!(f, "the {:?} of serverSelectionTimeoutMS", rounded(limit))
            }
        }
    }
}
