//! Rules about what events have to say.

use super::{Verdict, must};
use crate::line::{Kind, Line};
use crate::pool::Pool;

/// ConnectionClosed has one of four reasons, and an error exactly for that one.
pub(super) fn closed_says_why(_pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionClosed) else { return Ok(()) };
    let reason = line.reason.as_deref().unwrap_or_default();
    must(["error", "stale", "idle", "poolClosed"].contains(&reason), || {
        format!("connection {id} is closed for the reason {reason:?}, which there is not")
    })?;
    must(reason == "error" || line.error.is_none(), || {
        format!("connection {id} is closed with an error, but for the reason {reason:?}")
    })
}

/// ConnectionCheckOutFailed has one of three reasons.
pub(super) fn failed_says_why(_pool: &Pool, line: &Line) -> Verdict {
    let has_failed = line.kind == Kind::ConnectionCheckOutFailed;
    let reason = line.reason.as_deref().unwrap_or_default();
    must(!has_failed || ["poolClosed", "timeout", "connectionError"].contains(&reason), || {
        format!("a check-out fails for the reason {reason:?}, which there is not")
    })
}

/// ConnectionPendingResponseFailed has one of two reasons.
pub(super) fn a_pending_response_says_why_it_failed(_pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionPendingResponseFailed) else {
        return Ok(());
    };
    let reason = line.reason.as_deref().unwrap_or_default();
    must(["timeout", "error"].contains(&reason), || {
        format!("the pending response on connection {id} fails for the reason {reason:?}")
    })
}

/// ConnectionPoolCleared says so also when it does not interrupt; one service never does.
pub(super) fn cleared_says_whether_it_interrupts(_pool: &Pool, line: &Line) -> Verdict {
    if line.kind != Kind::ConnectionPoolCleared {
        return Ok(());
    }
    let is_service = line.service_id.is_some();
    must(is_service || line.interrupts.is_some(), || {
        "the pool is cleared without interruptInUseConnections".to_owned()
    })?;
    must(!is_service || line.interrupts != Some(true), || {
        "one service is cleared and interrupts, which it cannot".to_owned()
    })
}

/// Time does not run backwards, and nothing has lasted for longer than the pool is there; what has
/// a duration says it.
pub(super) fn times_make_sense(pool: &Pool, line: &Line) -> Verdict {
    if let (Some(before), Some(at)) = (pool.at, line.at) {
        must(at >= before, || format!("it is {at} s, but the event before came at {before} s"))?;
    }
    if !line.kind.has_duration() {
        return Ok(());
    }
    let milliseconds = line.milliseconds.ok_or_else(|| "the duration is missing".to_owned())?;
    must(milliseconds >= 0.0, || format!("a duration of {milliseconds} ms is below zero"))?;
    let Some(at) = line.at else { return Ok(()) };
    // A line may be written a little after its event, and its time is rounded.
    const SLACK: f64 = 0.001;
    must(milliseconds / 1000.0 <= at + SLACK, || {
        format!("a duration of {milliseconds} ms is longer than the {at} s since the start")
    })
}
