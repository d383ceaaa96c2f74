//! The situations in which each input is tried.

use super::Kind;

/// A situation. Commands are separated by `; `.
pub(super) struct Row {
    pub(super) when: &'static str,
    /// The command that creates the pool.
    pub(super) pool: &'static str,
    /// The commands in the ready pool, before it enters the state of the column.
    pub(super) there: &'static str,
    /// The commands in that state, right before the input.
    pub(super) late: &'static str,
    pub(super) input: &'static str,
}

const fn row(
    when: &'static str,
    pool: &'static str,
    there: &'static str,
    input: &'static str,
) -> Row {
    Row { when, pool, there, late: "", input }
}

const SMALL: &str = "pool max=2 connecting=1";
const MINIMUM: &str = "pool max=2 min=1 connecting=1";
const TIMED: &str = "pool max=1 connecting=1 wait=50ms idle=50ms held=50ms";
const BALANCED: &str = "pool balanced";
/// Connection 1 in use, 2 pending for b, c waits.
const BUSY: &str = "out a; established 1; out b c";
/// Connection 1 pending without a request.
const ORPHAN: &str = "out x; cancel x";
const IDLE: &str = "out a; established 1; in 1";
const LATE: &str = "pool max=2 connecting=1 pending-response";
/// Connection 1 is pending the response to request 7.
const PENDING_RESPONSE: &str = "out a; established 1; in 1 pending=7";
/// Connection 1 is draining for b.
const DRAINING: &str = "out a; established 1; in 1 pending=7; out b";
/// Connection 1 is draining for no request.
const DRAINING_ALONE: &str = "out a; established 1; in 1 pending=7; out b; cancel b";

pub(super) fn of(kind: Kind) -> Vec<Row> {
    match kind {
        Kind::CheckOutRequested => vec![
            row("a connection is available", SMALL, IDLE, "out z"),
            row(
                "only one that is over its idle time",
                "pool idle=10ms",
                "out a; established 1; in 1; +11ms",
                "out z",
            ),
            row("room and a permit", SMALL, "", "out z"),
            row("no permit", SMALL, "out a", "out z"),
            row("no room", SMALL, "out a; established 1; out b; established 2", "out z"),
            row("older requests wait", SMALL, BUSY, "out z"),
            row("as many wait as may", "pool max=2 connecting=1 queue=1", BUSY, "out z"),
            row("deadline passed, nothing available", SMALL, "", "out z deadline=+0ms"),
            row("only one that is pending a response", LATE, PENDING_RESPONSE, "out z"),
            row("only one that is draining for no request", LATE, DRAINING_ALONE, "out z"),
        ],
        Kind::CheckOutCancelled => vec![
            row("it waits", SMALL, BUSY, "cancel c"),
            row("it owns a pending connection", SMALL, BUSY, "cancel b"),
            row("it waits for the end of a drain", LATE, DRAINING, "cancel b"),
            row("it has its outcome", SMALL, BUSY, "cancel a"),
        ],
        Kind::CheckedIn => vec![
            row("healthy, no request waits", SMALL, "out a; established 1", "in 1"),
            row("healthy, a request waits", SMALL, BUSY, "in 1"),
            row("healthy, but stale", SMALL, "out a; established 1; clear old; ready", "in 1"),
            row(
                "healthy, but interrupted",
                SMALL,
                "out a; established 1; clear old interrupt; ready",
                "in 1",
            ),
            row(
                "healthy, but over its lifetime",
                "pool lifetime=10ms",
                "out a; established 1; +10ms",
                "in 1",
            ),
            row(
                "healthy, but surplus",
                SMALL,
                "out a; established 1; out b; established 2; options max=1",
                "in 1",
            ),
            row("errored, no request waits", SMALL, "out a; established 1", "in 1 error=reset"),
            row("errored, a request waits", SMALL, BUSY, "in 1 error=reset"),
            row("pending a response", LATE, "out a; established 1", "in 1 pending=7"),
            row(
                "pending a response, without the option",
                SMALL,
                "out a; established 1",
                "in 1 pending=7",
            ),
        ],
        Kind::Repurposed => vec![row("in use", SMALL, "out a; established 1", "purpose 1 cursor")],
        Kind::Handshaken => vec![
            row("pending", SMALL, "out a", "handshaken 1"),
            row("pending, load balanced", BALANCED, "out a", "handshaken 1 service=S1"),
            row(
                "pending, load balanced, cleared since hello",
                BALANCED,
                "out a; clear reset service=S1",
                "handshaken 1 service=S1 clears=0",
            ),
        ],
        Kind::EstablishSucceeded => vec![
            row("for its request", SMALL, "out a", "established 1"),
            row("for no request", SMALL, ORPHAN, "established 1"),
            row("for no request, another waits", SMALL, "out x y; cancel x", "established 1"),
            row(
                "for no request, minimum not reached",
                "pool max=2 min=2 connecting=1",
                "",
                "established 1",
            ),
            row("stale, for its request", SMALL, "out a; clear old; ready", "established 1"),
            row(
                "stale, for no request",
                SMALL,
                "out x; cancel x; clear old; ready",
                "established 1",
            ),
            row(
                "aborted by an interrupt",
                SMALL,
                "out a; clear old interrupt; ready",
                "established 1",
            ),
        ],
        Kind::EstablishFailed => vec![
            row("for its request", SMALL, "out a", "failed 1 refused"),
            row("for its request, another waits", SMALL, "out a b", "failed 1 refused"),
            row("for no request, minimum not reached", MINIMUM, "", "failed 1 refused"),
            row(
                "aborted by an interrupt",
                SMALL,
                "out a; clear old interrupt; ready",
                "failed 1 refused",
            ),
        ],
        Kind::IdleClosedByPeer => vec![
            row("available", SMALL, IDLE, "peer closed 1"),
            row("available, minimum not reached then", MINIMUM, "established 1", "peer closed 1"),
            row("in use", SMALL, "out a; established 1", "peer closed 1"),
        ],
        Kind::DrainSucceeded => vec![
            row("for its request", LATE, DRAINING, "drained 1"),
            row("for no request", LATE, DRAINING_ALONE, "drained 1"),
        ],
        Kind::DrainFailed => vec![
            row("for its request", LATE, DRAINING, "drain failed 1"),
            row("for no request", LATE, DRAINING_ALONE, "drain failed 1"),
        ],
        Kind::DrainProgress => vec![row("draining", LATE, DRAINING, "drain read 1")],
        Kind::RetireConnections => vec![
            row("one available", SMALL, IDLE, "retire"),
            row("one pending a response", LATE, PENDING_RESPONSE, "retire"),
            row("one draining for a request", LATE, DRAINING, "retire"),
            row("one in use, one pending, one waits", SMALL, BUSY, "retire"),
            row("minimum", MINIMUM, "established 1", "retire"),
        ],
        Kind::ReleaseIdle => vec![
            row("one available", SMALL, IDLE, "release"),
            row("one pending a response", LATE, PENDING_RESPONSE, "release"),
            row("one draining for no request", LATE, DRAINING_ALONE, "release"),
            row("one draining for a request", LATE, DRAINING, "release"),
            row("one in use, one pending, one waits", SMALL, BUSY, "release"),
            row("one pending for no request", SMALL, ORPHAN, "release"),
            row("minimum", MINIMUM, "established 1", "release"),
        ],
        Kind::Ready => vec![
            row("no minimum", SMALL, "", "ready"),
            row("minimum not reached", MINIMUM, "failed 1 refused", "ready"),
        ],
        Kind::Clear => vec![
            row("empty", SMALL, "", "clear z"),
            row("one available", SMALL, IDLE, "clear z"),
            row("one in use, one pending, one waits", SMALL, BUSY, "clear z"),
            row("the same, with interrupt", SMALL, BUSY, "clear z interrupt"),
            row(
                "a service that has an idle connection",
                BALANCED,
                "out a; handshaken 1 service=S1; established 1; in 1",
                "clear z service=S1",
            ),
            row("one pending a response", LATE, PENDING_RESPONSE, "clear z"),
            row("one draining for a request", LATE, DRAINING, "clear z"),
            row("a service that has none", BALANCED, "", "clear z service=S1"),
        ],
        Kind::Close => vec![
            row("empty", SMALL, "", "close"),
            row("one available", SMALL, IDLE, "close"),
            row("one in use, one pending, one waits", SMALL, BUSY, "close"),
            row("one draining for a request", LATE, DRAINING, "close"),
        ],
        Kind::Timer => vec![
            row("nothing due", SMALL, BUSY, "timer"),
            Row {
                late: "+51ms",
                ..row("the deadline of a request has passed", TIMED, "out a b", "timer")
            },
            Row {
                late: "+51ms",
                ..row("a connection is over its idle time", TIMED, IDLE, "timer")
            },
            Row {
                late: "+51ms",
                ..row("a connection is over its lifetime", "pool lifetime=50ms", IDLE, "timer")
            },
            Row {
                late: "+51ms",
                ..row(
                    "a connection reaches the leak detection threshold",
                    TIMED,
                    "out a; established 1",
                    "timer",
                )
            },
            Row {
                late: "+51ms",
                ..row("an establishment stays unanswered", "pool unanswered=50ms", "out a", "timer")
            },
            Row {
                late: "+1s",
                ..row("the pause after a failure is over", MINIMUM, "failed 1 refused", "timer")
            },
            Row { late: "+3s", ..row("a drain is over its window", LATE, DRAINING, "timer") },
            Row {
                late: "+50ms",
                ..row(
                    "the deadline of a request that waits for a drain has passed",
                    LATE,
                    "out a; established 1; in 1 pending=7; out b deadline=+50ms",
                    "timer",
                )
            },
        ],
        Kind::SetOptions => vec![
            row(
                "larger maximum, a request waits",
                "pool max=1",
                "out a; established 1; out b",
                "options max=2",
            ),
            row(
                "smaller maximum, two available",
                SMALL,
                "out a; established 1; out b; established 2; in 1; in 2",
                "options max=1",
            ),
            row("larger minimum", SMALL, "", "options min=1"),
            row("maintenance begins, one available", "pool maintenance=never", IDLE, "options"),
            row("no pending responses, one draining for a request", LATE, DRAINING, "options"),
            row("invalid", SMALL, "", "options max=1 min=2"),
        ],
        Kind::ResetAfterFork => vec![
            row("one available", SMALL, IDLE, "fork"),
            row("one in use, one pending, one waits", SMALL, BUSY, "fork"),
            row("minimum", MINIMUM, "established 1", "fork"),
            row("one draining for a request", LATE, DRAINING, "fork"),
        ],
    }
}

/// The inputs of this kind about connection 1, each with what distinguishes it from others of its
/// kind.
pub(super) const fn about_connection(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::CheckedIn => &[
            (", healthy", "in 1"),
            (", errored", "in 1 error=reset"),
            (", pending a response", "in 1 pending=7"),
        ],
        Kind::Repurposed => &[("", "purpose 1 cursor")],
        Kind::Handshaken => &[("", "handshaken 1")],
        Kind::EstablishSucceeded => &[("", "established 1")],
        Kind::EstablishFailed => &[("", "failed 1 refused")],
        Kind::IdleClosedByPeer => &[("", "peer closed 1")],
        Kind::DrainSucceeded => &[("", "drained 1")],
        Kind::DrainFailed => &[("", "drain failed 1")],
        Kind::DrainProgress => &[("", "drain read 1")],
        Kind::CheckOutRequested
        | Kind::CheckOutCancelled
        | Kind::RetireConnections
        | Kind::ReleaseIdle
        | Kind::Ready
        | Kind::Clear
        | Kind::Close
        | Kind::Timer
        | Kind::SetOptions
        | Kind::ResetAfterFork => &[],
    }
}
