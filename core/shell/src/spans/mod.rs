//! Spans of check-outs that wait, and of establishments with their stages (feature `spans`).

#[cfg(not(feature = "spans"))]
mod off;
#[cfg(feature = "spans")]
mod on;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, Snapshot};

#[cfg(not(feature = "spans"))]
pub(crate) use self::off::{CheckOutSpan, CheckOutSpans, EstablishSpan, StageSpan, are_wanted};
#[cfg(feature = "spans")]
pub(crate) use self::on::{CheckOutSpan, CheckOutSpans, EstablishSpan, StageSpan, are_wanted};

/// The number of the connection, or why this server gave none.
pub(crate) type Outcome<'a> = Result<u64, (&'a CheckOutError<ConnectionError>, &'a ServerAddress)>;

/// What a request waits for that has just begun to wait.
pub(crate) fn waits_for(before: &Snapshot, now: &Snapshot) -> &'static str {
    if now.owners > before.owners {
        let is_opened = now.pending > before.pending;
        return if is_opened { "establishment" } else { "pendingResponse" };
    }
    let is_full = now.max_pool_size.is_some_and(|max| now.total >= max);
    if is_full { "maxPoolSize" } else { "maxConnecting" }
}
