//! Sockets that belong to one runtime and are used from another.

use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::pool::Status;
use cenote_endpoint::Fault;
use cenote_endpoint::Settings;
use cenote_tokio::OperationError;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::world::{ping, pool};
use crate::world::{at, plain, set, tls, with};

/// How long until something is held to hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// One that runs by itself.
fn running() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[test]
fn one_pool_for_several_runtimes() {
    let endpoint = tls(Settings::default());
    let runtimes = [running(), running(), running()];
    let (pool, _) = runtimes[0].block_on(async { pool(&with(&endpoint.uri(), "maxPoolSize=2")) });
    let pings: Vec<_> = (0..30)
        .map(|number| {
            let pool = pool.clone();
            runtimes[number % 3].spawn(async move { ping(&pool).await })
        })
        .collect();
    for ping in pings {
        let done = runtimes[0].block_on(async { timeout(PATIENCE, ping).await });
        assert!(done.expect("nothing hangs").expect("no panic"));
    }
    assert!(pool.snapshot().connections_created <= 2);
    runtimes[0].block_on(pool.close());
}

/// A command whose reply never comes, a request that waits, and a guard that comes home later.
#[test]
fn the_runtime_of_the_sockets_ends() {
    let endpoint = plain();
    let (home, second) = (running(), running());
    let (pool, _) = home.block_on(async { pool(&with(&endpoint.uri(), "maxPoolSize=2")) });
    let mut idle = second.block_on(pool.check_out()).unwrap();
    let mut busy = second.block_on(pool.check_out()).unwrap();
    set(&endpoint, at(Fault::Stall, "ping"));
    let command = second.spawn(async move {
        let outcome = busy.command("admin", &rawdoc! { "ping": 1 }).await;
        (busy, outcome)
    });
    let request = second.spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.map(drop) }
    });
    while pool.snapshot().waiting == 0
        || !endpoint.with(|server, _| server.statistics()).commands.contains_key("ping")
    {
        thread::yield_now();
    }
    drop(home);

    let command = second.block_on(async { timeout(PATIENCE, command).await });
    let (busy, outcome) = command.expect("it does not hang").unwrap();
    let OperationError::Connection(error) = outcome.unwrap_err() else { panic!("interrupted") };
    assert!(error.is_network_error(), "{error}");
    let request = second.block_on(async { timeout(PATIENCE, request).await });
    let error = request.expect("it does not hang").unwrap().unwrap_err();
    assert_eq!(error.name(), "PoolClosedError", "{error}");

    // Nothing can be done with a socket of that runtime any more, but to give it back.
    let late = second.block_on(idle.command("admin", &rawdoc! { "ping": 1 }));
    assert!(late.is_err());
    drop((idle, busy));
    second.block_on(pool.close());
    assert_eq!((pool.snapshot().status, pool.snapshot().total), (Status::Closed, 0));
}
