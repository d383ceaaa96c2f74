//! What timeouts of operations cost: TLS handshakes, with and without keeping the connections for their late
//! replies. One find in 20 takes twice as long as its caller waits; every reply is checked to be that of its find.
//!
//! ```sh
//! cargo bench -p cenote --bench late_replies
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::error::OperationError;
use cenote_core::pool::{PoolOptions, Snapshot};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_shell::connection::operation::OperationOptions;

const CALLERS: i32 = 16;
const FINDS: i32 = 500;
const TIMEOUT: Duration = Duration::from_millis(40);

/// What a run has shown.
struct Seen {
    late: u64,
    snapshot: Snapshot,
    time: Duration,
}

fn main() {
    println!("{CALLERS} callers, {FINDS} finds each, 10 connections, TLS and SCRAM-SHA-256\n");
    println!("| shell | late replies | timeouts | handshakes | finds a second |");
    println!("|---|---|---|---|---|");
    for (name, run) in [("tokio", on_tokio as fn(&str, bool) -> Seen), ("mio", on_mio)] {
        let handshakes = [false, true].map(|keeps| {
            let endpoint = endpoint();
            let Seen { late, snapshot, time } = run(&endpoint.uri(), keeps);
            let rate = f64::from(CALLERS * FINDS) / time.as_secs_f64();
            let what = if keeps { "read" } else { "connection closed" };
            let handshakes = snapshot.connections_created;
            println!("| {name} | {what} | {late} | {handshakes} | {rate:.0} |");
            // The first ten are no cost of timeouts.
            handshakes.saturating_sub(10)
        });
        let [closing, keeping] = handshakes.map(|count| count as f64);
        println!(
            "\n{name}: {:.1} % fewer handshakes after timeouts\n",
            100.0 * (1.0 - keeping / closing)
        );
    }
}

/// A server with a document for each find, of which one in 20 is late.
fn endpoint() -> Endpoint {
    let settings =
        Settings { users: vec![User::new("app", "pencil")], auth: true, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts");
    let data = rawdoc! {
        "failCommands": ["find"],
        "blockConnection": true,
        "blockTimeMS": i64::try_from(2 * TIMEOUT.as_millis()).expect("it is short"),
    };
    let mode = rawdoc! { "activationProbability": 0.05 };
    let block = rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
    endpoint
}

fn insert() -> RawDocumentBuf {
    let documents = (0..CALLERS * FINDS).map(|id| rawdoc! { "_id": id });
    rawdoc! { "insert": "birds", "documents": RawArrayBuf::from_iter(documents) }
}

fn find(id: i32) -> RawDocumentBuf {
    rawdoc! { "find": "birds", "filter": { "_id": id } }
}

fn of_caller(caller: i32) -> Range<i32> {
    caller * FINDS..(caller + 1) * FINDS
}

/// Whether the find was late; otherwise its reply is its own.
fn is_late(id: i32, outcome: Result<RawDocumentBuf, OperationError>) -> bool {
    match outcome {
        Ok(reply) => {
            assert_eq!(first_id(&reply), Some(id), "the reply of another command");
            false
        }
        Err(error) => {
            assert!(error.is_timeout(), "{error}");
            true
        }
    }
}

fn first_id(reply: &RawDocument) -> Option<i32> {
    let batch = reply.get_document("cursor").ok()?.get_array("firstBatch").ok()?;
    batch.get_document(0).ok()?.get_i32("_id").ok()
}

fn options(uri: &str, keeps: bool) -> PoolOptions {
    let uri = ConnectionString::parse(uri).expect("a connection string");
    let options = uri.pool_options().with_max_pool_size(10);
    options.with_experimental_pending_response(keeps)
}

fn on_tokio(uri: &str, keeps: bool) -> Seen {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let builder = cenote_tokio::Pool::builder(uri).expect("a connection string");
        let pool = builder.replace_options(options(uri, keeps)).build().expect("good options");
        pool.ready();
        let mut connection = pool.check_out().await.expect("a connection");
        connection.command("zoo", &insert()).await.expect("they are inserted");
        drop(connection);
        let begin = Instant::now();
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    let mut late = 0;
                    for id in of_caller(caller) {
                        let mut connection = pool.check_out().await.expect("a connection");
                        let options = OperationOptions::new().with_timeout(TIMEOUT);
                        let outcome = connection.command_with("zoo", &find(id), options).await;
                        late += u64::from(is_late(id, outcome));
                    }
                    late
                })
            })
            .collect();
        let mut late = 0;
        for caller in callers {
            late += caller.await.expect("no panic");
        }
        Seen { late, time: begin.elapsed(), snapshot: pool.snapshot() }
    })
}

fn on_mio(uri: &str, keeps: bool) -> Seen {
    let builder = cenote_mio::Pool::builder(uri).expect("a connection string");
    let pool = builder.replace_options(options(uri, keeps)).build().expect("good options");
    pool.ready();
    let mut connection = pool.check_out().expect("a connection");
    connection.command("zoo", &insert()).expect("they are inserted");
    drop(connection);
    let (begin, late) = (Instant::now(), AtomicU64::new(0));
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (pool, late) = (&pool, &late);
            scope.spawn(move || {
                for id in of_caller(caller) {
                    let mut connection = pool.check_out().expect("a connection");
                    let options = OperationOptions::new().with_timeout(TIMEOUT);
                    let outcome = connection.command_with("zoo", &find(id), options);
                    late.fetch_add(u64::from(is_late(id, outcome)), Ordering::Relaxed);
                }
            });
        }
    });
    Seen { late: late.into_inner(), time: begin.elapsed(), snapshot: pool.snapshot() }
}
