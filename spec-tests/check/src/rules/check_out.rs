//! Rules about check-outs.

use super::{Verdict, must};
use crate::line::{Kind, Line};
use crate::pool::{Pool, Status};

/// Each outcome belongs to a check-out that was started.
pub(super) fn started_comes_first(pool: &Pool, line: &Line) -> Verdict {
    let outcomes = [Kind::ConnectionCheckedOut, Kind::ConnectionCheckOutFailed];
    let is_outcome = outcomes.contains(&line.kind);
    must(!is_outcome || pool.under_way > 0, || {
        "a check-out has an outcome, but none is under way".to_owned()
    })
}

/// A check-out whose own connection fails does so after the ConnectionClosed of that one.
pub(super) fn closed_comes_before_failed(pool: &Pool, line: &Line) -> Verdict {
    must(!line.is_failure_of_a_connection() || pool.lost > 0, || {
        "a check-out fails with its connection, but no connection was closed for that".to_owned()
    })
}

/// Only a ready pool hands out connections.
pub(super) fn only_ready_pools_hand_out(pool: &Pool, line: &Line) -> Verdict {
    let Some(id) = line.connection_of(Kind::ConnectionCheckedOut) else { return Ok(()) };
    must(pool.status == Status::Ready, || {
        format!("connection {id} is checked out, but the pool is not ready")
    })
}

/// At the end every check-out of a closed pool has an outcome.
pub(super) fn all_have_an_outcome(pool: &Pool) -> Verdict {
    let left = pool.under_way;
    must(pool.status != Status::Closed || left == 0, || {
        format!("the pool is closed, and {left} check-outs never had an outcome")
    })
}
