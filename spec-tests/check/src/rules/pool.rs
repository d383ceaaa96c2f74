//! Rules about the life of a pool.

use super::{Verdict, must};
use crate::line::{Kind, Line};
use crate::pool::{Doing, Pool, Status};

/// ConnectionPoolCreated is the first event of a pool and comes once, with its options.
/// Another pool may begin where one has come to its end.
pub(super) fn begins_with_its_creation(pool: &Pool, line: &Line) -> Verdict {
    if line.kind != Kind::ConnectionPoolCreated {
        let is_there = pool.status != Status::Absent;
        return must(is_there, || "the pool was not created yet".to_owned());
    }
    must(pool.status == Status::Absent || pool.is_over(), || {
        "the pool is created again, but is not over".to_owned()
    })?;
    must(line.options.is_some(), || "the pool is created without options".to_owned())
}

/// ConnectionPoolReady is told only when the pool was paused.
pub(super) fn ready_comes_to_paused_pools(pool: &Pool, line: &Line) -> Verdict {
    must(line.kind != Kind::ConnectionPoolReady || pool.status != Status::Ready, || {
        "the pool is ready, but it was so before".to_owned()
    })
}

/// ConnectionPoolCleared is told only when the pool was ready; one service behind a load balancer
/// can be cleared again and again, and the pool stays ready.
pub(super) fn cleared_comes_to_ready_pools(pool: &Pool, line: &Line) -> Verdict {
    let is_cleared = line.kind == Kind::ConnectionPoolCleared;
    must(!is_cleared || pool.status != Status::Paused, || {
        "the pool is cleared, but it was paused".to_owned()
    })
}

/// A closed pool is not made ready, cleared or closed again, and creates nothing.
/// Check-outs may be tried, and what is in use comes home.
pub(super) fn closed_is_the_end(pool: &Pool, line: &Line) -> Verdict {
    if pool.status != Status::Closed {
        return Ok(());
    }
    let id = line.connection().unwrap_or_default();
    let not_any_more = [
        (Kind::ConnectionPoolReady, "the pool is ready, but it was closed".to_owned()),
        (Kind::ConnectionPoolCleared, "the pool is cleared, but it was closed".to_owned()),
        (Kind::ConnectionPoolClosed, "the pool is closed a second time".to_owned()),
        (Kind::ConnectionReady, format!("connection {id} is ready in a closed pool")),
        (
            Kind::ConnectionPendingResponseStarted,
            format!("connection {id} is drained in a closed pool"),
        ),
    ];
    not_any_more.into_iter().find(|(kind, _)| *kind == line.kind).map_or(Ok(()), |(_, it)| Err(it))
}

/// When ConnectionPoolClosed comes, all connections but those in use have been closed.
pub(super) fn closed_comes_after_what_was_available(pool: &Pool, line: &Line) -> Verdict {
    if line.kind != Kind::ConnectionPoolClosed || pool.status == Status::Closed {
        return Ok(());
    }
    let left = pool.connections.iter().find(|(_, connection)| connection.doing != Doing::InUse);
    match left {
        Some((id, _)) => Err(format!("the pool is closed, but connection {id} is not")),
        None => Ok(()),
    }
}

/// Requests that wait when the pool is cleared fail then: when it is ready again, only those are left
/// whose own connections are pending.
pub(super) fn nobody_outlasts_a_clear(pool: &Pool, line: &Line) -> Verdict {
    let (left, pending) = (pool.under_way, pool.pending);
    let is_again = line.kind == Kind::ConnectionPoolReady && pool.status == Status::Paused;
    must(!is_again || left <= pending, || {
        format!("the pool is ready, and {left} check-outs wait with {pending} connections pending")
    })
}

/// At the end every connection of a closed pool is closed.
pub(super) fn all_are_closed(pool: &Pool) -> Verdict {
    let left: Vec<_> = pool.connections.keys().collect();
    must(pool.status != Status::Closed || left.is_empty(), || {
        format!("the pool is closed, and its connections {left:?} never are")
    })
}
