//! Several services behind one port.

use bson::{RawBsonRef, rawdoc};
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::pool::Purpose;
use cenote_endpoint::{Endpoint, LoadBalanced, Topology};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, fail_point, open, standalone, start};

on_all_runtimes!(
    no_monitors_and_ready_at_once,
    a_cursor_is_pinned,
    a_cursor_stays_pinned_after_an_error,
    nothing_is_pinned_to_a_server,
);

pub(crate) fn balanced() -> Endpoint {
    start(Topology::LoadBalanced(LoadBalanced { services: 4 }))
}

// OP-23, LB-08, LB-40: there is no monitor, and the pool is ready at once.
fn no_monitors_and_ready_at_once(shell: Shell) {
    let endpoint = balanced();
    let world = World::of(shell, &[&endpoint], "loadBalanced=true");
    world.until_told("ConnectionPoolReady", 1);
    assert_eq!(world.pool_events(), ["ConnectionPoolCreated", "ConnectionPoolReady"]);
    assert_eq!(world.kinds(), [Some(ServerKind::LoadBalancer)]);
    for selector in [Selector::Primary, Selector::Secondary, Selector::Any] {
        assert!(world.client.check_out(&selector).is_ok());
    }
    world.ping();
    assert_eq!(open(&endpoint), 1, "one connection of the pool, and nothing else");
    assert!(!world.server_events().iter().any(|name| name.starts_with("ServerHeartbeat")));
    world.client.close();
}

// LB-35, LN-01, LB-30, LB-31, LB-32: a cursor goes on where it began, and its connection comes back at its end.
fn a_cursor_is_pinned(shell: Shell) {
    let endpoint = balanced();
    let world = World::of(shell, &[&endpoint], "loadBalanced=true");
    let mut pinned = world.client.pin(&Selector::Primary, Purpose::Cursor).expect("a connection");
    assert!(pinned.is_pinned());
    let documents: bson::RawArrayBuf =
        [1, 2, 3, 4].map(|number| rawdoc! { "_id": number }).into_iter().collect();
    let insert = rawdoc! { "insert": "birds", "documents": documents };
    pinned.command("zoo", &insert).expect("a reply");
    let find = rawdoc! { "find": "birds", "batchSize": 2 };
    let reply = pinned.command("zoo", &find).expect("the first batch");
    let cursor = reply.get_document("cursor").expect("a cursor");
    let id = cursor.get("id").expect("whole").and_then(RawBsonRef::as_i64).expect("a number");
    // Others are served by other services meanwhile.
    for _ in 0..3 {
        world.ping();
    }
    let more = rawdoc! { "getMore": id, "collection": "birds" };
    assert!(pinned.command("zoo", &more).is_ok());
    let in_use = |world: &World| {
        let servers = world.client.servers();
        (servers[0].pool.in_use_by_cursors, servers[0].pool.in_use)
    };
    assert_eq!(in_use(&world), (1, 1));
    pinned.unpin();
    assert_eq!(in_use(&world), (0, 0));
    world.client.close();
}

// LB-33, LB-34: a failed operation does not unpin. A broken connection is closed once it is checked in, and no other
// one takes its place before.
fn a_cursor_stays_pinned_after_an_error(shell: Shell) {
    let endpoint = balanced();
    let world = World::of(shell, &[&endpoint], "loadBalanced=true");
    let pin = || world.client.pin(&Selector::Primary, Purpose::Cursor).expect("a connection");
    let in_use = || world.client.servers()[0].pool.in_use_by_cursors;
    let ping = rawdoc! { "ping": 1 };
    let more = rawdoc! { "getMore": 1_i64, "collection": "birds" };
    let kill = rawdoc! { "killCursors": "birds", "cursors": [1_i64] };

    let mut pinned = pin();
    fail_point(&endpoint, rawdoc! { "failCommands": ["getMore"], "errorCode": 96 }, 1);
    assert!(pinned.command("zoo", &more).is_err());
    assert_eq!((pinned.is_pinned(), in_use()), (true, 1));
    assert!(pinned.command("admin", &ping).is_ok());
    pinned.unpin();
    world.until_told("ConnectionCheckedIn", 1);
    assert_eq!(world.count("ConnectionClosed"), 0);

    for (closed, command) in [(1, more), (2, kill)] {
        let mut pinned = pin();
        let fails = rawdoc! { "failCommands": ["getMore", "killCursors"], "closeConnection": true };
        fail_point(&endpoint, fails, 1);
        assert!(pinned.command("zoo", &command).is_err());
        assert!(pinned.command("admin", &ping).is_err(), "on the same connection");
        assert_eq!((pinned.is_pinned(), in_use()), (true, 1));
        assert_eq!(world.count("ConnectionClosed"), closed - 1);
        pinned.unpin();
        world.until_told("ConnectionClosed", closed);
        let events = world.pool_events();
        assert_eq!(events[events.len() - 2..], ["ConnectionCheckedIn", "ConnectionClosed"]);
        assert_eq!(world.count("ConnectionCheckedOut"), closed + 1);
    }
    world.client.close();
}

/// Anywhere else every connection to the server will do, and none is kept.
fn nothing_is_pinned_to_a_server(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "");
    let mut pinned =
        world.client.pin(&Selector::Primary, Purpose::Transaction).expect("a connection");
    assert!(!pinned.is_pinned());
    for _ in 0..2 {
        assert!(pinned.command("admin", &rawdoc! { "ping": 1 }).is_ok());
        assert_eq!(world.client.servers()[0].pool.in_use, 0);
    }
    world.client.close();
}
