//! Why an operation of the client failed.

use std::fmt;

use cenote_core::client::ClientError;
use cenote_core::error::label::{RETRYABLE_ERROR, SYSTEM_OVERLOADED_ERROR};
use cenote_core::error::{ConnectionError, OperationError, RetryWrites};
use cenote_core::pool::CheckOutError;

/// What went wrong, and the labels that it has besides its own.
#[derive(Clone, Debug)]
pub(in crate::formats::unified) struct Failure {
    cause: Cause,
    labels: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum Cause {
    Client(ClientError),
    /// The script cannot go on: no test expects that.
    Script(String),
}

impl Failure {
    /// The script cannot go on.
    pub(in crate::formats::unified) fn script(reason: impl Into<String>) -> Self {
        Self { cause: Cause::Script(reason.into()), labels: Vec::new() }
    }

    /// Why the script cannot go on, if that is it.
    pub(in crate::formats::unified) fn script_error(&self) -> Option<&str> {
        match &self.cause {
            Cause::Script(reason) => Some(reason),
            Cause::Client(_) => None,
        }
    }

    #[must_use]
    pub(super) fn with_label(mut self, label: &'static str) -> Self {
        self.labels.push(label);
        self
    }

    /// Whether it is worth another attempt.
    pub(super) fn is_retryable(&self) -> bool {
        match &self.cause {
            Cause::Client(error) => error.is_retryable(),
            Cause::Script(_) => false,
        }
    }

    /// Whether the server was not able to do it at all: then any operation may be tried again.
    pub(super) fn is_overload(&self) -> bool {
        let labels = self.labels();
        [SYSTEM_OVERLOADED_ERROR, RETRYABLE_ERROR].iter().all(|it| labels.iter().any(|l| l == it))
    }

    /// Whether the connection was lost.
    pub(super) fn is_network_error(&self) -> bool {
        match self.root() {
            Some(ClientError::Operation(OperationError::Interrupted(_))) => true,
            Some(_) | None => {
                self.connection_error().is_some_and(ConnectionError::is_network_error)
            }
        }
    }

    /// Whether the client is the one that says so, and not the server.
    pub(in crate::formats::unified) fn is_client_error(&self) -> bool {
        let refused = self.connection_error().and_then(ConnectionError::command_error);
        refused.is_none()
    }

    pub(in crate::formats::unified) fn is_timeout(&self) -> bool {
        match &self.cause {
            Cause::Client(error) => error.is_timeout(),
            Cause::Script(_) => false,
        }
    }

    /// The server's code.
    pub(in crate::formats::unified) fn code(&self) -> Option<i32> {
        self.connection_error()?.command_error()?.code
    }

    pub(in crate::formats::unified) fn labels(&self) -> Vec<String> {
        let own: Vec<String> = match &self.cause {
            Cause::Client(error) => {
                error.labels(RetryWrites::Enabled).into_iter().map(str::to_owned).collect()
            }
            Cause::Script(_) => Vec::new(),
        };
        own.into_iter().chain(self.labels.iter().map(|label| (*label).to_owned())).collect()
    }

    pub(super) fn has_label(&self, label: &str) -> bool {
        self.labels().iter().any(|it| it == label)
    }

    /// What went wrong when the time was over, or else.
    fn root(&self) -> Option<&ClientError> {
        match &self.cause {
            Cause::Client(ClientError::TimedOut { cause, .. }) => Some(&**cause),
            Cause::Client(error) => Some(error),
            Cause::Script(_) => None,
        }
    }

    /// The connection's error, be it in use or being established.
    pub(super) fn connection_error(&self) -> Option<&ConnectionError> {
        match self.root()? {
            ClientError::Pool(error) => match error.error() {
                CheckOutError::EstablishFailed { cause } => Some(cause),
                CheckOutError::PoolClosed
                | CheckOutError::PoolCleared { .. }
                | CheckOutError::WaitQueueTimeout { .. }
                | CheckOutError::WaitQueueFull { .. }
                | CheckOutError::Shed { .. }
                | CheckOutError::Cancelled => None,
            },
            ClientError::Operation(OperationError::Connection(error)) => Some(error),
            ClientError::Operation(OperationError::Interrupted(_))
            | ClientError::Selection(_)
            | _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Client(error) => error.fmt(f),
            Cause::Script(reason) => f.write_str(reason),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { cause: Cause::Client(error), labels: Vec::new() }
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        ClientError::from(error).into()
    }
}
