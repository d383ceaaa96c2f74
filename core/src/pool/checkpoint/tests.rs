//! Checkpoints that are those of no pool: each reason for which one is refused, at its limit.

use std::prelude::v1::*;

use super::validate::COUNT_MAX;
use super::*;
use crate::pool::invariants::tests::{SERVICE, at, balanced, busy, id, idle};
use crate::pool::{NoPayload, PoolState};

type Pool = PoolState<NoPayload>;
type Change = fn(&mut PoolCheckpoint);

const EARLIER: ServiceCheckpoint = service([1; 12]);
const LATER: ServiceCheckpoint = service([9; 12]);

const fn service(id: [u8; 12]) -> ServiceCheckpoint {
    ServiceCheckpoint { id: ServiceId(id), generation: 0, was_cleared: false, clears: 0 }
}

/// Each change alone makes the checkpoint of `pool` one that is refused with these words.
#[track_caller]
fn refused(pool: &Pool, changes: &[(Change, &str)]) {
    for (change, words) in changes {
        let mut checkpoint = pool.checkpoint();
        change(&mut checkpoint);
        let refusal = Pool::restore(&checkpoint, &mut ()).map(drop).expect_err(words);
        assert!(refusal.to_string().contains(words), "{words:?} is not in {refusal}");
    }
}

/// Each change alone makes the checkpoint of `pool` that of another pool.
#[track_caller]
fn taken(pool: &Pool, changes: &[Change]) {
    for (index, change) in changes.iter().enumerate() {
        let mut checkpoint = pool.checkpoint();
        change(&mut checkpoint);
        match Pool::restore(&checkpoint, &mut ()) {
            Ok(other) => {
                other.check_invariants();
                assert_eq!(other.checkpoint(), checkpoint, "change {index}");
            }
            Err(refusal) => panic!("change {index}: {refusal}"),
        }
    }
}

#[test]
fn counts() {
    let never = "which no pool ever reaches";
    refused(
        &idle(),
        &[
            (|it| it.generation = COUNT_MAX + 1, never),
            (|it| it.last_connection = COUNT_MAX + 1, never),
            (|it| it.service_clears = COUNT_MAX + 1, never),
            (|it| it.clock_regressions = i64::MAX as u64, never),
            (|it| it.inherited = 3, "more connections were inherited than made"),
            (|it| it.inherited = 1, "has a number that was not given out"),
            (|it| it.last_connection = 1, "more slots than connections ever made"),
            (
                |it| it.options.max_connecting = Some(0),
                "its options are invalid: maxConnecting is 0",
            ),
        ],
    );
    taken(
        &idle(),
        &[
            |it| it.generation = COUNT_MAX,
            |it| it.last_connection = COUNT_MAX,
            |it| it.clock_regressions = COUNT_MAX,
        ],
    );
    let empty: [Change; 1] = [|it| {
        it.connections.clear();
        it.free_slots = vec![0, 1];
        it.inherited = 2;
    }];
    taken(&idle(), &empty);
}

#[test]
fn slots() {
    let twice = "is not there or is told of twice, among";
    refused(
        &idle(),
        &[
            (|it| it.free_slots.push(1), twice),
            (|it| it.free_slots.push(3), twice),
            (|it| it.connections[1].id = ConnId::from_parts(2, 0), twice),
            (|it| it.connections[1].id = ConnId::from_parts(1, 1), "is told of more than once"),
            (|it| it.free_slots.push(2), "more slots than connections ever made"),
        ],
    );
}

#[test]
fn connections() {
    let given_out = "has a number that was not given out";
    let after = "has not begun";
    let time = "from before or after its time";
    refused(
        &idle(),
        &[
            (|it| it.connections[1].id = ConnId::from_parts(3, 1), given_out),
            (|it| it.connections[0].id = ConnId::from_parts(0, 0), given_out),
            (|it| it.connections[0].generation = 1, after),
            (
                |it| it.connections[0].service = Some(SERVICE),
                "if and only if there is a load balancer",
            ),
            (|it| it.connections[1].created = at(1), time),
            (
                |it| {
                    it.connections[0].state = ConnectionStateCheckpoint::Available { since: at(1) }
                },
                time,
            ),
            (|it| it.connections[0].expiry_met = true, "and is available"),
            (
                |it| (it.connections[1].expires, it.connections[1].expiry_met) = (None, true),
                "has met the end of a life that has none",
            ),
        ],
    );
    let expires = "has an end of life before it is established";
    let order = "is not in the order of time";
    refused(
        &busy(),
        &[
            (|it| it.connections[0].expires = Some(at(60)), expires),
            (|it| it.connections.swap(0, 1), order),
            (|it| it.connections.swap(1, 2), order),
        ],
    );
    taken(
        &busy(),
        &[
            |it| it.connections[1].expiry_met = true,
            |it| it.connections[2].expires = None,
            |it| it.connections[1].generation = 0,
        ],
    );
}

/// Connections on one list are in the order in which they came to it; pending ones in that of their
/// numbers, and others may have come at the same time.
#[test]
fn order_within_a_list() {
    let both_in_use = |it: &mut PoolCheckpoint| it.connections[0].state = it.connections[1].state;
    let mut checkpoint = idle().checkpoint();
    both_in_use(&mut checkpoint);
    let pool = Pool::restore(&checkpoint, &mut ()).expect("two are in use");
    taken(&pool, &[|it| it.connections.swap(0, 1)]);
    let order = "is not in the order of time";
    let later: Change = |it| {
        it.now = at(2);
        let state = &mut it.connections[0].state;
        if let ConnectionStateCheckpoint::InUse { since, .. } = state {
            *since = at(1);
        }
    };
    refused(&pool, &[(later, order)]);
    let pending = |it: &mut PoolCheckpoint| {
        for connection in &mut it.connections {
            connection.expires = None;
            connection.state = ConnectionStateCheckpoint::Pending { handshaken: false };
        }
    };
    pending(&mut checkpoint);
    let pool = Pool::restore(&checkpoint, &mut ()).expect("two are pending");
    refused(&pool, &[(|it| it.connections.swap(0, 1), order)]);
}

#[test]
fn services() {
    let balancer = "if and only if there is a load balancer and hello is done";
    let order = "is not in the order of ids";
    refused(
        &balanced(),
        &[
            (|it| it.connections[0].service = None, balancer),
            (
                |it| it.connections[0].service = Some(ServiceId([9; 12])),
                "a service that is not there",
            ),
            (|it| it.connections[0].generation = 1, "has not begun"),
            (
                |it| it.services[0].generation = COUNT_MAX + 1,
                "has a generation that none ever reaches",
            ),
            (|it| it.services[0].clears = 1, "was cleared more often than all services together"),
            (
                |it| {
                    it.connections[0].state =
                        ConnectionStateCheckpoint::Pending { handshaken: false }
                },
                balancer,
            ),
            (|it| it.services.push(LATER), "has no connections, so it is forgotten"),
            (|it| it.services.push(EARLIER), order),
            (|it| it.services.push(service(SERVICE.0)), order),
        ],
    );
    taken(
        &balanced(),
        &[
            |it| it.services[0].generation = COUNT_MAX,
            |it| it.services[0].was_cleared = true,
            |it| it.service_clears = COUNT_MAX,
            |it| (it.service_clears, it.services[0].clears) = (1, 1),
            |it| (it.services[0].generation, it.connections[0].generation) = (3, 2),
            |it| it.connections[0].state = ConnectionStateCheckpoint::Pending { handshaken: true },
        ],
    );
}

#[test]
fn requests() {
    let order = "is not in the order of ids";
    refused(
        &busy(),
        &[
            (|it| it.requests.swap(1, 2), order),
            (|it| it.requests[2].id = it.requests[1].id, order),
            (|it| it.last_waiter = Some(WaiterId(6)), "has an id above the last"),
            (|it| it.requests[3].started = at(10), "has not begun to wait yet"),
            (|it| it.requests[1].owns = Some(id(3)), "owns a connection that has another owner"),
            (|it| it.requests[0].owns = Some(id(2)), "owns a connection that is not pending"),
            (
                |it| it.requests[0].owns = Some(ConnId::from_parts(1, 2)),
                "owns a connection that does not exist",
            ),
        ],
    );
    taken(
        &busy(),
        &[
            |it| it.requests[0].owns = None,
            // The first has returned to the queue.
            |it| (it.requests[0].owns, it.requests[1].owns) = (None, Some(id(3))),
            |it| it.requests[3].started = at(9),
            |it| it.requests.truncate(1),
            |it| it.requests.clear(),
        ],
    );
}

#[test]
fn parts_that_do_not_go_together() {
    let paused = "a paused pool has nothing of its present generation";
    let closed = "a closed pool has no available connection";
    refused(
        &idle(),
        &[
            (|it| it.status = Status::Paused, paused),
            (
                |it| (it.status, it.generation) = (Status::Paused, 1),
                "a paused pool has closed what was available",
            ),
            (|it| it.status = Status::Closed, closed),
            (|it| it.options.max_pool_size = Some(1), "surplus is not kept available"),
        ],
    );
    let waits = "requests wait only in a ready pool";
    refused(
        &busy(),
        &[
            (|it| it.status = Status::Closed, "a closed pool has no pending connection"),
            (|it| (it.status, it.generation) = (Status::Paused, 1), waits),
            (
                |it| (it.options.max_pool_size, it.options.max_connecting) = (Some(4), Some(2)),
                "a request waits although a connection could be made",
            ),
        ],
    );
}
