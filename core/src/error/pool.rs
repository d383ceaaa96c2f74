use core::fmt;
use std::sync::Arc;

use super::connection::OVERLOAD_LABELS;
use super::{ConnectionError, RetryWrites, Wait, WaitLimit};
use crate::address::ServerAddress;
use crate::pool::{CheckOutError, Snapshot, WaiterId};

/// Why a check-out failed, as an application gets to see it.
///
/// The pool's own [`CheckOutError`] together with what the machine does not know: the address of the
/// pool, and how long the caller [waited](Wait). `C` is what the shell feeds as the cause of a
/// failure; with [`ConnectionError`], labels and the question whether to try again are answered,
/// too.
///
/// `Display` is the [`message`](Self::message), the server, the number of the [request](Self::request),
/// how long the check-out waited and what limited that, and after a wait-queue timeout also what the pool
/// looked like at that moment:
///
/// ```text
/// Timed out while checking out a connection from connection pool [db1.example.com:27017 | request w4711 | waited 203ms, waitQueueTimeoutMS=200 | ready  gen 0 | total 1/1 min 0 | idle 0 | in use 1 | pending 0/2 | waiting 3]
/// ```
///
/// It must never be fed to SDAM, which already knows what it says about the server.
/// [`crate::sdam`] takes a [`ConnectionError`] only, so it cannot be:
///
/// ```compile_fail,E0308
/// use cenote_core::{error::PoolError, sdam};
///
/// fn feed(context: &sdam::Context, error: &PoolError) -> sdam::Verdict {
///     sdam::verdict(context, error)
/// }
/// ```
///
/// ```
/// use std::sync::Arc;
/// use cenote_core::{error::PoolError, pool::CheckOutError};
///
/// let address = Arc::new("db1.example.com".parse()?);
/// let error: PoolError = PoolError::new(address, CheckOutError::PoolCleared { cause: None });
/// assert_eq!(error.name(), "PoolClearedError");
/// assert!(error.is_retryable());
/// # Ok::<(), cenote_core::address::AddressError>(())
/// ```
// ER-01, ER-11
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolError<C = ConnectionError> {
    // One pointer, for the sake of check-outs that succeed.
    inner: Box<Inner<C>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner<C> {
    address: Arc<ServerAddress>,
    error: CheckOutError<C>,
    wait: Option<Wait>,
    request: Option<WaiterId>,
}

impl<C> PoolError<C> {
    /// A check-out from the pool of `address` failed.
    #[must_use]
    pub fn new(address: Arc<ServerAddress>, error: CheckOutError<C>) -> Self {
        Self { inner: Box::new(Inner { address, error, wait: None, request: None }) }
    }

    /// Says how long the check-out waited.
    #[must_use]
    pub fn with_wait(mut self, wait: Wait) -> Self {
        self.inner.wait = Some(wait);
        self
    }

    /// Says which request failed.
    #[must_use]
    pub fn with_request(mut self, request: WaiterId) -> Self {
        self.inner.request = Some(request);
        self
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.inner.address
    }

    /// The error that the pool delivered.
    #[must_use]
    pub fn error(&self) -> &CheckOutError<C> {
        &self.inner.error
    }

    /// The failure that cleared the pool, or the failed establishment, if there was one.
    #[must_use]
    pub fn cause(&self) -> Option<&C> {
        match self.error() {
            CheckOutError::PoolCleared { cause: Some(cause) }
            | CheckOutError::EstablishFailed { cause } => Some(cause),
            CheckOutError::PoolCleared { cause: None }
            | CheckOutError::PoolClosed
            | CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
            | CheckOutError::Cancelled => None,
        }
    }

    /// How long the check-out waited, if the shell [said so](Self::with_wait).
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        self.inner.wait
    }

    /// The number of the request, if the shell [said so](Self::with_request). Its events, its log record and a
    /// trace of the pool have the same number: `cenote explain TRACE --waiter NUMBER` says what was in the way.
    #[must_use]
    pub fn request(&self) -> Option<WaiterId> {
        self.inner.request
    }

    /// The type's name in the specification and in the official test files. For what the
    /// specification has no name for: `WaitQueueFullError`, `CheckOutShedError`,
    /// `ConnectionError` and `CheckOutCancelledError`.
    // ER-02, ER-03, ER-04
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.error() {
            CheckOutError::PoolClosed => "PoolClosedError",
            CheckOutError::PoolCleared { .. } => "PoolClearedError",
            CheckOutError::WaitQueueTimeout { .. } => "WaitQueueTimeoutError",
            CheckOutError::WaitQueueFull { .. } => "WaitQueueFullError",
            CheckOutError::Shed { .. } => "CheckOutShedError",
            CheckOutError::EstablishFailed { .. } => "ConnectionError",
            CheckOutError::Cancelled => "CheckOutCancelledError",
        }
    }
}

impl<C: fmt::Display> PoolError<C> {
    /// What the specification has the error say, with a small "connection" as in the official test
    /// files.
    pub fn message(&self) -> impl fmt::Display {
        Self::message_of(self.error(), self.address())
    }

    /// The [`message`](Self::message) of such a check-out's error, without an error being made of
    /// it: for logs, which borrow their values and have separate keys for the server.
    pub fn message_of<'a>(
        error: &'a CheckOutError<C>,
        address: &'a ServerAddress,
    ) -> impl fmt::Display + use<'a, C> {
        Message { address, error }
    }

    /// The text of such an error, without creating one: for events, which borrow their values and
    /// tell how long the check-out waited themselves.
    pub fn explain<'a>(
        error: &'a CheckOutError<C>,
        address: &'a ServerAddress,
    ) -> impl fmt::Display + use<'a, C> {
        Explanation { address, error, wait: None, request: None }
    }
}

impl PoolError {
    /// Whether an operation that may safely run twice is worth another attempt: after the pool was
    /// cleared, after a failed establishment that says so itself, and, after a backoff, when the wait queue
    /// was full or the request was shed.
    ///
    /// A retry loop that meets a cleared pool leaves SDAM alone and keeps the first such error, to
    /// raise it if the later attempts fail, too.
    // OUT-12, CLR-09, ER-22
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.error() {
            CheckOutError::PoolCleared { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. } => true,
            CheckOutError::EstablishFailed { cause } => cause.is_retryable(),
            CheckOutError::PoolClosed
            | CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::Cancelled => false,
        }
    }

    /// Whether a limit of this side ran out: in the queue, or during the establishment of the
    /// connection that was started for this request. A driver with `timeoutMS` then raises its
    /// timeout error around this one. A pool that a timeout cleared has not timed out for requests
    /// that came later.
    // ER-10, ER-12
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self.error() {
            CheckOutError::WaitQueueTimeout { .. } => true,
            CheckOutError::EstablishFailed { cause } => cause.is_timeout(),
            CheckOutError::PoolClosed
            | CheckOutError::PoolCleared { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
            | CheckOutError::Cancelled => false,
        }
    }

    /// The labels for the operation that wanted the connection, each once.
    ///
    /// * `RetryableWriteError` when the pool was cleared and the client [retries writes](RetryWrites::Enabled).
    /// * `SystemOverloadedError` and `RetryableError` when the wait queue was full or the request was shed:
    ///   the operation had no effect, and a retry should back off.
    /// * Those of the [cause](ConnectionError::labels) when the establishment failed.
    /// * None otherwise. The cause of a clear passes none on: its labels are about another
    ///   operation.
    ///
    /// `TransientTransactionError` is left to the driver, which knows whether the operation belongs
    /// to a transaction and is not its commit: it adds the label if
    /// [`is_retryable`](Self::is_retryable) on a cleared pool, and on network errors.
    // ES-03, ER-20, ER-37
    pub fn labels(&self, retry_writes: RetryWrites) -> impl Iterator<Item = &str> {
        let (mut for_writes, mut overload, mut cause) = (None, &[][..], None);
        match self.error() {
            CheckOutError::PoolCleared { .. } => for_writes = retry_writes.label(),
            CheckOutError::WaitQueueFull { .. } | CheckOutError::Shed { .. } => {
                overload = &OVERLOAD_LABELS;
            }
            CheckOutError::EstablishFailed { cause: its } => cause = Some(its),
            CheckOutError::PoolClosed
            | CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::Cancelled => {}
        }
        let of_cause = cause.into_iter().flat_map(move |cause| cause.labels(retry_writes));
        for_writes.into_iter().chain(overload.iter().copied()).chain(of_cause)
    }
}

impl<C: fmt::Display> fmt::Display for PoolError<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { address, error, wait, request } = &*self.inner;
        Explanation { address, error, wait: *wait, request: *request }.fmt(f)
    }
}

impl<C: core::error::Error + 'static> core::error::Error for PoolError<C> {
    /// The source of the [cause](PoolError::cause). The message has the cause itself, as the specification wants it: a chain
    /// of errors says each thing once.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.cause()?.source()
    }
}

/// The message, and in brackets: to which server, which request, how long it waited, and for a timeout the
/// pool that it happened in.
struct Explanation<'a, C> {
    address: &'a ServerAddress,
    error: &'a CheckOutError<C>,
    wait: Option<Wait>,
    request: Option<WaiterId>,
}

impl<C: fmt::Display> fmt::Display for Explanation<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, error, wait, request } = self;
        Message { address, error }.fmt(f)?;
        let (mut wait, mut snapshot) = (*wait, None);
        // The message names the server.
        let mut is_named = false;
        match error {
            CheckOutError::WaitQueueTimeout { snapshot: pool } => snapshot = Some(pool),
            CheckOutError::PoolCleared { .. } => is_named = true,
            // waitQueueTimeoutMS ends with the wait in the queue.
            CheckOutError::EstablishFailed { .. } => {
                wait = wait.map(|wait| wait.limited_by(|it| matches!(it, WaitLimit::Deadline(_))));
            }
            CheckOutError::PoolClosed
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
            | CheckOutError::Cancelled => {}
        }
        let request = request.map(|request| format!("request {request}"));
        let parts = [
            (!is_named).then_some(address as &dyn fmt::Display),
            request.as_ref().map(|request| request as &dyn fmt::Display),
            wait.as_ref().map(|wait| wait as &dyn fmt::Display),
            snapshot.map(|snapshot| snapshot as &dyn fmt::Display),
        ];
        let mut before = " [";
        for part in parts.into_iter().flatten() {
            write!(f, "{before}{part}")?;
            before = " | ";
        }
        if before == " | " { f.write_str("]") } else { Ok(()) }
    }
}

// ER-05
struct Message<'a, C> {
    address: &'a ServerAddress,
    error: &'a CheckOutError<C>,
}

impl<C: fmt::Display> fmt::Display for Message<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, error } = self;
        match error {
            CheckOutError::PoolClosed => {
                f.write_str("Attempted to check out a connection from closed connection pool")
            }
            CheckOutError::PoolCleared { cause: Some(cause) } => write!(
                f,
                "Connection pool for {address} was cleared because another operation failed \
                 with: {cause}"
            ),
            // No pool is paused without a cause but one that was never ready (ER-08).
            CheckOutError::PoolCleared { cause: None } => {
                write!(f, "Connection pool for {address} has not been marked ready yet")
            }
            CheckOutError::WaitQueueTimeout { snapshot } if snapshot.load_balanced => {
                timed_out_behind_a_load_balancer(snapshot, f)
            }
            CheckOutError::WaitQueueTimeout { snapshot: _ } => {
                f.write_str("Timed out while checking out a connection from connection pool")
            }
            CheckOutError::WaitQueueFull { max } => write!(
                f,
                "Too many requests wait for a connection from connection pool: \
                 max_wait_queue_size is {max}"
            ),
            CheckOutError::Shed { delay } => write!(
                f,
                "Shed while checking out a connection from connection pool: for {:?} the longest wait \
                 was never below {:?}",
                delay.interval(),
                delay.target()
            ),
            CheckOutError::EstablishFailed { cause } => cause.fmt(f),
            CheckOutError::Cancelled => f.write_str("The check-out was given up by its caller"),
        }
    }
}

/// Cursors and transactions keep their connections there, so they are the first to ask when none is
/// left. 0 is how the option spells that there is no limit.
// ER-06
fn timed_out_behind_a_load_balancer(
    snapshot: &Snapshot,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "Timeout waiting for connection from the connection pool. maxPoolSize: {}, connections in \
         use by cursors: {}, connections in use by transactions: {}, connections in use by other \
         operations: {}",
        snapshot.max_pool_size.unwrap_or(0),
        snapshot.in_use_by_cursors,
        snapshot.in_use_by_transactions,
        snapshot.in_use_by_others,
    )
}
