//! Rules about the life of a connection.

use super::{Verdict, must};
use crate::line::{Kind, Line};
use crate::pool::{Doing, Pool, Status};

/// CMAP's defaults.
const MAX_POOL_SIZE: u32 = 100;
const MAX_CONNECTING: u32 = 2;

/// Nothing is created before ConnectionPoolReady, nor in a pool that is paused again or closed.
pub(super) fn created_comes_after_ready(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionCreated) else { return Ok(()) };
    must(pool.status == Status::Ready, || {
        format!("connection {id} is created, but the pool is not ready")
    })
}

/// Connections are numbered 1, 2, 3, … in the order of their creation, whatever becomes of them
///.
pub(super) fn numbers_are_counted_up(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionCreated) else { return Ok(()) };
    let next = pool.last_id + 1;
    must(id == next, || format!("connection {id} is created, but the next one is {next}"))
}

/// `maxPoolSize` is for all connections, those that are pending included; 0 is no limit.
pub(super) fn there_are_no_more_than_allowed(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionCreated) else { return Ok(()) };
    let (total, max) = (pool.connections.len(), pool.limits.max.unwrap_or(MAX_POOL_SIZE));
    must(max == 0 || total < max as usize, || {
        format!("connection {id} is created, but {total} of {max} are there")
    })
}

/// `maxConnecting` limits all pending connections, including those from before a clear.
pub(super) fn no_more_are_pending_than_allowed(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionCreated) else { return Ok(()) };
    let (pending, max) = (pool.pending, pool.limits.connecting.unwrap_or(MAX_CONNECTING));
    must(pending < u64::from(max), || {
        format!("connection {id} is created, but {pending} of {max} are pending")
    })
}

/// Every event about a connection lies between its ConnectionCreated and its one ConnectionClosed.
pub(super) fn nothing_comes_without_created_or_after_closed(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = subject(line) else { return Ok(()) };
    must(pool.connections.contains_key(&id), || {
        let trouble = if id <= pool.last_id { "was closed before" } else { "was never created" };
        format!("connection {id} {trouble}")
    })
}

/// ConnectionReady comes once, after ConnectionCreated, and before the first ConnectionCheckedOut.
pub(super) fn created_ready_checked_out(pool: &Pool, line: &Line) -> Verdict {
    if let Some(id) = line.connection_of(Kind::ConnectionReady) {
        let is_ready = pool.doing(id).is_some_and(|doing| doing != Doing::Pending);
        must(!is_ready, || format!("connection {id} is ready a second time"))?;
    }
    if let Some(id) = line.connection_of(Kind::ConnectionCheckedOut) {
        must(pool.doing(id) != Some(Doing::Pending), || {
            format!("connection {id} is checked out, but was not ready")
        })?;
    }
    Ok(())
}

/// A connection in use is checked in before it is closed, in a closed pool, too.
pub(super) fn checked_in_comes_before_closed(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionClosed) else { return Ok(()) };
    must(pool.doing(id) != Some(Doing::InUse), || {
        format!("connection {id} is closed, but it is in use: ConnectionCheckedIn comes first")
    })
}

/// One at a time has a connection: it is checked in before it is checked out again, and only what
/// is checked out is checked in.
pub(super) fn checked_out_and_in_take_turns(pool: &Pool, line: &Line) -> Verdict {
    if let Some(id) = line.connection_of(Kind::ConnectionCheckedOut) {
        must(pool.doing(id) != Some(Doing::InUse), || {
            format!("connection {id} is checked out, but is in use already")
        })?;
    }
    if let Some(id) = line.connection_of(Kind::ConnectionCheckedIn) {
        must(pool.doing(id).is_none_or(|doing| doing == Doing::InUse), || {
            format!("connection {id} is checked in, but was not checked out")
        })?;
    }
    Ok(())
}

/// A connection is closed as stale only after a clear that came after its creation. One that is pending
/// may be stale without that: a clear of a service that has no connections yet is not told.
pub(super) fn stale_comes_after_cleared(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionClosed) else { return Ok(()) };
    let Some(connection) = pool.connections.get(&id) else { return Ok(()) };
    let was_cleared =
        pool.clears > connection.created_after || pool.service_clears > connection.service_clears;
    let may_be_stale = was_cleared || connection.doing == Doing::Pending;
    must(line.reason.as_deref() != Some("stale") || may_be_stale, || {
        format!("connection {id} is closed as stale, but nothing was cleared since its creation")
    })
}

/// A connection from before a clear is not handed out.
pub(super) fn stale_is_not_handed_out(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionCheckedOut) else { return Ok(()) };
    let Some(connection) = pool.connections.get(&id) else { return Ok(()) };
    must(pool.clears == connection.created_after, || {
        format!("connection {id} is checked out, but the pool was cleared since its creation")
    })
}

/// A late reply is awaited only on a connection that was checked in, and for a check-out that is
/// under way.
pub(super) fn a_response_is_pending_after_checked_in(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionPendingResponseStarted) else {
        return Ok(());
    };
    must(pool.doing(id).is_none_or(|doing| doing == Doing::Returned), || {
        format!("connection {id} is pending a response, but was not checked in")
    })?;
    must(pool.under_way > 0, || {
        format!("connection {id} is drained, but no check-out is under way")
    })
}

/// ConnectionPendingResponseStarted is followed by exactly one of Succeeded and Failed, before
/// anything else about the connection.
pub(super) fn a_pending_response_ends_once(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = subject(line) else { return Ok(()) };
    let ends = [Kind::ConnectionPendingResponseSucceeded, Kind::ConnectionPendingResponseFailed];
    let ends = ends.contains(&line.kind);
    let drains = pool.doing(id) == Some(Doing::Draining);
    must(ends == drains || pool.doing(id).is_none(), || {
        let trouble = if drains { "has not ended" } else { "was not announced" };
        format!("the wait for the pending response on connection {id} {trouble}")
    })
}

/// The connection that an event is about, if it was created before.
fn subject(line: &Line) -> Option<u64> {
    line.connection().filter(|_| line.kind != Kind::ConnectionCreated)
}
