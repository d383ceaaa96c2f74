//! The labels that retry loops look for. Their texts are fixed by the specifications.

/// The server may have refused work because it has too much of it. SDAM leaves the pool and the
/// server's description alone when it sees this label.
pub const SYSTEM_OVERLOADED_ERROR: &str = "SystemOverloadedError";

/// The operation had no effect and may be tried again, after a backoff.
pub const RETRYABLE_ERROR: &str = "RetryableError";

/// A write that the server can recognise may be sent once more.
pub const RETRYABLE_WRITE_ERROR: &str = "RetryableWriteError";
