use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::command::CommandError;
use super::wait::rounded;
use super::{RetryWrites, Stage, TlsFailure, label};
use crate::one_line::OneLine;
#[cfg(feature = "protocol")]
use crate::trace::{CauseKind, CauseSummary};

/// A cause from below: an I/O error, a TLS error, or a plain text.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a connection could not be established, or failed in use.
///
/// Cheap to clone: the failure that clears a pool fails every request that waited for it. Shown, it
/// is one line of bounded length that names the stage and the reason. It holds what the shell and
/// the server put into it and nothing else: no credential. What is shown of it holds no payload, and
/// an address only where that is what the error is about.
#[derive(Clone)]
pub struct ConnectionError {
    inner: Arc<Inner>,
}

/// The kind of an error, independent of its stage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The other side, or the way to it, failed: refused, reset, unreachable, end of stream, a
    /// name that does not resolve.
    Network,
    /// Nothing came in time.
    NetworkTimeout {
        /// How long this side waited.
        after: Duration,
    },
    /// The time of the operation was over before its request was sent: the server knows nothing of it, and the
    /// connection is as it was.
    NotSent {
        /// How much time the operation had.
        after: Duration,
    },
    /// The server replied, and the reply is an error. Never a network error.
    Command(CommandError),
    /// The other side answered something that must not be accepted: a malformed message, a
    /// certificate that does not verify, a wrong server signature.
    Protocol,
    /// The configuration does not work: no such authentication mechanism, a server
    /// that does not support load balancing, a key that cannot be read, a message that must not be
    /// sent.
    Configuration,
    /// This process or its machine lacks what a new connection needs: file descriptors, memory, a
    /// free port, a thread. It says nothing about the server.
    Local,
}

struct Inner {
    stage: Stage,
    kind: Kind,
    reason: String,
    source: Option<BoxError>,
}

/// One constructor for each kind, as a shell would call them.
impl ConnectionError {
    /// The network failed. `source` is the I/O error, or a text such as `"closed by the peer"`.
    ///
    /// An operating system's own "timed out" belongs here too: it indicates a dead peer, not
    /// a limit that this side set.
    #[must_use]
    pub fn network(stage: Stage, source: impl Into<BoxError>) -> Self {
        let source = source.into();
        let reason = source.to_string();
        Self::new(stage, Kind::Network, &reason, Some(source))
    }

    /// A limit that this side set ran out after that time: `connectTimeoutMS`, `socketTimeoutMS` or
    /// the caller's own deadline, which makes no difference to the labels.
    #[must_use]
    pub fn timeout(stage: Stage, after: Duration) -> Self {
        let reason = format!("timed out after {:?}", rounded(after));
        Self::new(stage, Kind::NetworkTimeout { after }, &reason, None)
    }

    /// The time of the operation, `after`, was over before the request was sent, or the rest of it was less than
    /// a round trip to the server takes.
    // CS-11, CS-14
    #[must_use]
    pub fn not_sent(stage: Stage, after: Duration) -> Self {
        let reason = format!("timed out after {:?}, before the request was sent", rounded(after));
        Self::new(stage, Kind::NotSent { after }, &reason, None)
    }

    /// The server refused, as [`CommandError::from_reply`] found it.
    #[must_use]
    pub fn command(stage: Stage, reply: CommandError) -> Self {
        let reason = reply.to_string();
        Self::new(stage, Kind::Command(reply), &reason, None)
    }

    /// The peer violated the protocol.
    #[must_use]
    pub fn protocol(stage: Stage, reason: &str) -> Self {
        Self::new(stage, Kind::Protocol, reason, None)
    }

    /// The certificate of the server was refused: it cannot be trusted, is not valid now, or is of
    /// another host. Other failures of TLS are [`tls`](Self::tls), and bytes that did not arrive
    /// are [`network`](Self::network) at [`Stage::TlsIo`].
    // ER-32
    #[must_use]
    pub fn certificate(source: impl Into<BoxError>) -> Self {
        let source = source.into();
        let reason = source.to_string();
        Self::new(Stage::TlsCertificate, Kind::Protocol, &reason, Some(source))
    }

    /// TLS ended the connection at this stage, and not for the server's certificate.
    ///
    /// Until hello is answered this is an error at [`Stage::TlsIo`]: with TLS 1.3 a server refuses
    /// the client's certificate when the client has already sent hello.
    #[must_use]
    pub fn tls(stage: Stage, failure: TlsFailure) -> Self {
        let stage = if stage == Stage::Hello { Stage::TlsIo } else { stage };
        let reason = failure.reason(stage);
        Self::new(stage, Kind::Protocol, &reason, Some(failure.into()))
    }

    /// This side cannot go on, for the reason given. The reason must not hold a secret.
    #[must_use]
    pub fn configuration(stage: Stage, reason: &str) -> Self {
        Self::new(stage, Kind::Configuration, reason, None)
    }

    /// This process or its machine lacks what a new connection needs, for the reason given.
    #[must_use]
    pub fn local(stage: Stage, reason: &str) -> Self {
        Self::new(stage, Kind::Local, reason, None)
    }

    /// The same error with another cause, for a driver that has an error type of its own: stage, kind, reason and so the
    /// text and the labels stay, and [`source_as`](Self::source_as) returns the driver's error wherever this one arrives.
    /// Nothing else shows it. A pool converts what its `Connector` fails with:
    ///
    /// ```
    /// use cenote_core::error::{ConnectionError, Stage};
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("attempt {attempt} failed: {error}")]
    /// struct DriverError {
    ///     attempt: u32,
    ///     error: ConnectionError,
    /// }
    ///
    /// impl From<DriverError> for ConnectionError {
    ///     fn from(error: DriverError) -> Self {
    ///         error.error.clone().with_source(error)
    ///     }
    /// }
    ///
    /// fn connect() -> Result<(), ConnectionError> {
    ///     let error = ConnectionError::network(Stage::Tcp, "connection refused");
    ///     Err(DriverError { attempt: 3, error })?
    /// }
    ///
    /// let error = connect().unwrap_err();
    /// assert!(error.is_network_error() && error.stage() == Stage::Tcp);
    /// assert_eq!(error.source_as::<DriverError>().unwrap().attempt, 3);
    /// ```
    #[must_use]
    pub fn with_source(self, source: impl Into<BoxError>) -> Self {
        let Inner { stage, kind, reason, source: _ } = &*self.inner;
        let (stage, kind, reason) = (*stage, kind.clone(), reason.clone());
        Self { inner: Arc::new(Inner { stage, kind, reason, source: Some(source.into()) }) }
    }

    /// The same on a connection that was in use already.
    #[cfg(feature = "protocol")]
    pub(crate) fn of_reauthentication(&self) -> Self {
        let reason = format!("re-authentication failed: {}", self.reason());
        Self::new(Stage::Operation, self.kind().clone(), &reason, Some(self.clone().into()))
    }

    /// As a trace has it, which is less than there was.
    #[cfg(feature = "protocol")]
    pub(crate) fn recorded(summary: CauseSummary, reason: &str) -> Self {
        let kind = match summary.kind {
            Some(CauseKind::NetworkTimeout) => Kind::NetworkTimeout { after: Duration::ZERO },
            Some(CauseKind::Command) => Kind::Command(CommandError::new(0, reason)),
            Some(CauseKind::Protocol) => Kind::Protocol,
            Some(CauseKind::Configuration) => Kind::Configuration,
            Some(CauseKind::Local) => Kind::Local,
            Some(CauseKind::Network) | None => Kind::Network,
        };
        Self::new(summary.stage.unwrap_or(Stage::Hello), kind, reason, None)
    }

    fn new(stage: Stage, kind: Kind, reason: &str, source: Option<BoxError>) -> Self {
        let reason = OneLine::text(reason).to_string();
        Self { inner: Arc::new(Inner { stage, kind, reason, source }) }
    }
}

/// The error, and what follows from it.
impl ConnectionError {
    /// How far the connection had come.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.inner.stage
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.inner.kind
    }

    /// The reason without the stage, as one line.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.inner.reason
    }

    /// The error reply, if the server sent one.
    #[must_use]
    pub fn command_error(&self) -> Option<&CommandError> {
        match self.kind() {
            Kind::Command(error) => Some(error),
            Kind::Network
            | Kind::NetworkTimeout { .. }
            | Kind::NotSent { .. }
            | Kind::Protocol
            | Kind::Configuration
            | Kind::Local => None,
        }
    }

    /// Whether no reply came, be it for a failure or for a timeout.
    #[must_use]
    pub fn is_network_error(&self) -> bool {
        match self.kind() {
            Kind::Network | Kind::NetworkTimeout { .. } => true,
            Kind::NotSent { .. }
            | Kind::Command(_)
            | Kind::Protocol
            | Kind::Configuration
            | Kind::Local => false,
        }
    }

    /// Whether this process or its machine lacks what a new connection needs. SDAM then does
    /// nothing.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.kind() == &Kind::Local
    }

    /// Whether the server is there, and one side refuses the other: its certificate, its replica set, its answer. The network
    /// is not to blame; a log at WARN says so the first time.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind(), Kind::Protocol | Kind::Configuration) || self.tls_failure().is_some()
    }

    /// Whether a limit of this side ran out, or the server's own for this command
    /// ([`CommandError::is_timeout`]).
    // CS-15
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self.kind() {
            Kind::NetworkTimeout { .. } | Kind::NotSent { .. } => true,
            Kind::Command(error) => error.is_timeout(),
            Kind::Network | Kind::Protocol | Kind::Configuration | Kind::Local => false,
        }
    }

    /// The labels for the operation that failed on this account, each once.
    ///
    /// * `SystemOverloadedError` and `RetryableError` on network errors and timeouts of the TCP
    ///   connect, the bytes of the TLS handshake and hello; on no other.
    /// * `RetryableWriteError` on any network error or timeout while establishing, when the
    ///   client [retries writes](RetryWrites::Enabled). On an established connection only the driver knows whether
    ///   the command was a retryable write, so there the label is the driver's.
    /// * The labels that the server sent.
    // PS-13, ER-21, ER-30
    pub fn labels(&self, retry_writes: RetryWrites) -> impl Iterator<Item = &str> {
        // The three sources cannot overlap: a network error has no reply to take labels from.
        let overload: &[&str] = if self.can_be_overload() { &OVERLOAD_LABELS } else { &[] };
        let from_server = self.command_error().map_or(&[][..], |error| error.labels.as_slice());
        let failed_to_connect = self.is_network_error() && self.stage().is_establishing();
        let for_writes = retry_writes.label().filter(|_| failed_to_connect);
        overload.iter().copied().chain(from_server.iter().map(String::as_str)).chain(for_writes)
    }

    /// Whether the error indicates an overloaded server; SDAM then does nothing.
    #[must_use]
    pub fn is_overload(&self) -> bool {
        self.labels(RetryWrites::Disabled).any(|label| label == label::SYSTEM_OVERLOADED_ERROR)
    }

    /// Whether an operation that may safely run twice is worth another attempt: after a network
    /// error, after a code that promises better, or when the server says so. Refused certificates,
    /// passwords and settings will be refused again, and more attempts do not mend a shortage in
    /// this process.
    // ER-22
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            Kind::Network | Kind::NetworkTimeout { .. } => true,
            Kind::Command(error) => {
                error.has_retryable_code() || error.has_label(label::RETRYABLE_ERROR)
            }
            Kind::NotSent { .. } | Kind::Protocol | Kind::Configuration | Kind::Local => false,
        }
    }

    /// Whether the connection can serve the next request: after a complete reply, which a refusal
    /// is, and when nothing was sent, because this side could not. After a timeout it may still
    /// carry the late reply of another request, so it is closed although the pool is not
    /// cleared.
    // CO-11
    #[must_use]
    pub fn leaves_connection_healthy(&self) -> bool {
        match self.kind() {
            Kind::NotSent { .. } | Kind::Command(_) | Kind::Configuration => {
                !self.stage().is_establishing()
            }
            Kind::Network | Kind::NetworkTimeout { .. } | Kind::Protocol | Kind::Local => false,
        }
    }

    /// Why TLS ended the connection, if it did and not for the server's certificate.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&TlsFailure> {
        self.source_as()
    }

    /// The first error of this type among the causes: that of this error, which [`source`](Error::source) does not return
    /// because the text repeats it, the source of that, and so on, a hundred at most.
    #[must_use]
    pub fn source_as<E: Error + 'static>(&self) -> Option<&E> {
        let cause = self.inner.source.as_deref().map(|cause| cause as &(dyn Error + 'static));
        let sources = core::iter::successors(cause, |&error| error.source());
        // Those of an application's connector may go round in a circle.
        sources.take(100).find_map(|error| error.downcast_ref())
    }

    // ER-36
    fn can_be_overload(&self) -> bool {
        self.is_network_error() && self.stage().can_be_overload()
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage(), self.reason())
    }
}

/// The source in one line.
impl fmt::Debug for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { stage, kind, reason, source } = &*self.inner;
        let source = source.as_ref().map(|source| format!("{source:?}"));
        f.debug_struct("ConnectionError")
            .field("stage", stage)
            .field("kind", kind)
            .field("reason", reason)
            .field("source", &source.as_deref().map(OneLine::text))
            .finish()
    }
}

impl Error for ConnectionError {
    /// The source of the cause. The text has the cause itself, on one line and cut if it is long: a chain of errors says each
    /// thing once.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner.source.as_deref()?.source()
    }
}

pub(super) const OVERLOAD_LABELS: [&str; 2] =
    [label::SYSTEM_OVERLOADED_ERROR, label::RETRYABLE_ERROR];
