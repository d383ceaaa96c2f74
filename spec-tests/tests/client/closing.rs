//! Closing a client, and dropping it.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::{ClientError, SelectionError, Selector};
use cenote_endpoint::{Fault, Role, Script, Server};
use cenote_shell::error::CloseTimeout;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, judge, member, standalone, three, until_open, until_so};

on_all_runtimes!(
    nothing_is_left,
    pools_close_in_their_order,
    who_waits_hears_of_it,
    what_is_still_out,
    closing_waits_for_what_is_out,
    dropped_it_closes,
);

fn is_closed(error: &ClientError) -> bool {
    matches!(error, ClientError::Selection(SelectionError::Closed))
}

// OP-12, PCL-08, SM-13
// SD-10: monitors end, pools close, nothing is left. Each pool tells of itself in its own order, and
// the report of one does not wait for another.
// Reports beats#44562: a client that is closed leaves connections open.
fn nothing_is_left(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], "replicaSet=rs0&minPoolSize=2");
    world.ping();
    world.until_all_known();
    world.client.close();
    let addresses: BTreeSet<_> = set.iter().map(|it| it.address().to_string()).collect();
    let closed = world.addresses_of("ConnectionPoolClosed");
    assert_eq!(closed.len(), 3);
    assert_eq!(closed.into_iter().collect::<BTreeSet<_>>(), addresses);
    for endpoint in &set {
        until_open(endpoint, 0);
    }
    let error = world.client.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails");
    assert!(is_closed(&error), "{error}");
    // Again does no harm.
    world.client.close();
}

/// In that of the connection string. No monitor hears of its server before, so that no other thread has anything to
/// tell of these pools meanwhile, and they are told of in the order in which they were closed.
// PCL-05
fn pools_close_in_their_order(shell: Shell) {
    let silent = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let mut hosts = silent.each_ref().map(|it| it.local_addr().expect("an address").to_string());
    hosts.sort();
    hosts.swap(0, 2);
    let world = World::new(shell, &format!("mongodb://{}", hosts.join(",")));
    world.client.close();
    assert_eq!(world.addresses_of("ConnectionPoolClosed"), hosts);
}

/// A caller that waits for a server gets an error.
fn who_waits_hears_of_it(shell: Shell) {
    let world = World::new(shell, "mongodb://127.0.0.1:1");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| world.client.command("admin", &rawdoc! { "ping": 1 }));
        world.until("refused", |world| world.error().is_some());
        world.client.close();
        let error = waiting.join().expect("no panic").expect_err("it fails");
        assert!(is_closed(&error), "{error}");
    });
}

/// What is still out is told, and comes home later.
// ND-09
fn what_is_still_out(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "");
    let connection = world.check_out(&Selector::Any);
    assert_eq!(
        world.client.close_within(Duration::from_millis(20)),
        Err(CloseTimeout { in_use: 1 })
    );
    drop(connection);
    assert_eq!(world.client.close_within(Duration::from_secs(20)), Ok(()));
    world.client.close();
    until_open(&only, 0);
}

fn closing_waits_for_what_is_out(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "");
    let connection = world.check_out(&Selector::Any);
    let is_out = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Closing waits by now, or finds nothing that is out.
            thread::sleep(Duration::from_millis(100));
            is_out.store(false, Ordering::SeqCst);
            drop(connection);
        });
        world.client.close();
        assert!(!is_out.load(Ordering::SeqCst));
    });
}

/// The last clone that is dropped closes, sockets of monitors and of pools.
// SM-13
fn dropped_it_closes(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "");
    world.ping();
    let World { client, .. } = world;
    let clone = client.again();
    drop(client);
    assert!(clone.command("admin", &rawdoc! { "ping": 1 }).is_ok());
    drop(clone);
    until_open(&only, 0);
}

/// A cancelled server selection leaves nothing behind, and a close that is cancelled has
/// closed. On tokio, where one can give up.
#[tokio::test]
async fn waits_that_are_given_up() {
    let only = standalone();
    only.with(|server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let builder = cenote_tokio::Client::builder(&only.uri()).expect("a connection string");
    let client = builder.on_event(judge()).build().expect("a client");
    let pool = client.pool(&only.address()).expect("of this client");
    let _ = timeout(Duration::from_millis(50), client.check_out(&Selector::Any))
        .await
        .expect_err("there is no server");
    only.with(Server::clear_faults);
    let connection = client.check_out(&Selector::Any).await.expect("a connection");
    assert_eq!((pool.snapshot().total, pool.snapshot().waiting), (1, 0));
    {
        let closing = std::pin::pin!(client.close());
        assert!(timeout(Duration::ZERO, closing).await.is_err(), "one is still out");
    }
    let error = client.check_out(&Selector::Any).await.expect_err("it fails");
    assert!(is_closed(&error), "{error}");
    drop(connection);
    until_open(&only, 0);
}

/// Callers that wait for a server, and later ones, get an error at once. On tokio, whose runtime the
/// application can shut down.
// Reports mongo-rust-driver#615 (mended): a client is used after its runtime has ended.
#[test]
fn a_runtime_that_shuts_down() {
    let only = member(Role::Primary);
    let [of_client, of_caller] = [(); 2].map(|()| Runtime::new().expect("a runtime"));
    let uri = format!("mongodb://{}/?replicaSet=rs0", only.address());
    let client = of_client.block_on(async {
        let builder = cenote_tokio::Client::builder(&uri).expect("a connection string");
        builder.on_event(judge()).build().expect("a client")
    });
    let selector = Selector::Any;
    drop(of_client.block_on(client.check_out(&selector)).expect("a connection"));
    let waiting = of_caller.spawn({
        let client = client.clone();
        async move { client.check_out(&Selector::Secondary).await.map(drop) }
    });
    // It waits by now, or finds the client closed.
    thread::sleep(Duration::from_millis(50));
    drop(of_client);
    let error = of_caller.block_on(waiting).expect("no panic").expect_err("it fails");
    assert!(is_closed(&error), "{error}");
    let error = of_caller.block_on(client.check_out(&selector)).expect_err("it fails");
    assert!(is_closed(&error), "{error}");
    assert_eq!(client.topology().servers().count(), 0, "it is closed");
    of_caller.block_on(client.close());
    until_open(&only, 0);
}

/// Between two checks there is no socket: the timer is the only task.
#[test]
fn a_runtime_that_shuts_down_between_two_checks() {
    let [of_client, of_caller] = [(); 2].map(|()| Runtime::new().expect("a runtime"));
    let client = of_client.block_on(async {
        let builder = cenote_tokio::Client::builder("mongodb://127.0.0.1:1");
        builder.expect("a connection string").on_event(judge()).build().expect("a client")
    });
    let waiting = of_caller.spawn({
        let client = client.clone();
        async move { client.check_out(&Selector::Any).await.map(drop) }
    });
    until_so(|| match &client.servers()[0].description.error {
        Some(_) => Ok(()),
        None => Err("no check has failed".to_owned()),
    });
    // The caller waits again by now, and the next check is 500 ms after the first.
    thread::sleep(Duration::from_millis(100));
    drop(of_client);
    let ended = of_caller.block_on(async { timeout(Duration::from_secs(10), waiting).await });
    let error = ended.expect("at once").expect("no panic").expect_err("it fails");
    assert!(is_closed(&error), "{error}");
}
