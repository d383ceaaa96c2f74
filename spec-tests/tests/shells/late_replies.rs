//! Replies that come after their operation has timed out, on pools that keep their connections: the draft of
//! DRIVERS-2884.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{CheckOutError, Event, PoolOptions};
use cenote_core::wire::Flags;
use cenote_endpoint::{Ending, Endpoint, Fault, ListenOptions, Script, Settings};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::connection::{Connection, MongoConnector};
use cenote_shell::pool::{CLOSE_GRACE, Pool};
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_smol::Smol;
use cenote_tokio::Tokio;
use smol::future::{or, zip};

use crate::raw::message;
use crate::shell::{AnyPool, Shell, Subscriber, on_all_runtimes, on_runtime, pool_with_options};
use crate::world::{Events, at, block_ping, closed, plain, set, subscriber, tls, with};

on_all_runtimes!(
    a_late_reply_does_not_cost_the_connection,
    a_reply_that_was_read_in_part_is_read_to_its_end,
    a_reply_that_came_long_ago_is_read,
    a_reply_that_never_comes_costs_the_connection,
    a_connection_that_was_silent_for_too_long_is_closed_at_once,
    a_late_reply_that_breaks_the_protocol_costs_the_connection,
    a_check_out_that_runs_out_of_time_leaves_the_reply_to_the_next,
    no_reply_goes_to_another_command,
    a_stream_of_replies_is_not_waited_for,
    a_clear_ends_the_wait,
    warm_up_waits_for_a_late_reply,
);

// On the others a subscriber that blocks also holds up the pools of other tests.
on_runtime!(
    on_a_loop_of_its_own,
    Mio,
    a_subscriber_that_blocks_does_not_keep_the_pool_from_closing
);

const MS: fn(u64) -> Duration = Duration::from_millis;

fn a_ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

fn keeping(options: PoolOptions) -> PoolOptions {
    options.with_experimental_pending_response(true)
}

fn pool(shell: Shell, uri: &str, options: &str) -> (Arc<dyn AnyPool>, Events) {
    let (subscriber, events) = subscriber();
    let pool = pool_with_options(shell, &with(uri, options), keeping, subscriber);
    pool.ready();
    (pool, events)
}

/// A ping that runs out of time: so late that it was sent in any case.
fn time_out(pool: &Arc<dyn AnyPool>, after: Duration) {
    let mut connection = pool.check_out().expect("a connection");
    let options = OperationOptions::new().with_timeout(after);
    let error = connection.command_with("admin", &a_ping(), options).expect_err("it is late");
    assert!(error.is_timeout(), "{error}");
}

/// A ping that has time; how long its check-out took.
fn ping(pool: &Arc<dyn AnyPool>) -> Duration {
    let begin = Instant::now();
    let mut connection = pool.check_out_before(begin + MS(20_000)).expect("a connection");
    let taken = begin.elapsed();
    let reply = connection.command("admin", &a_ping()).expect("a reply");
    assert!(reply.get_f64("ok").is_ok_and(|ok| ok == 1.0));
    taken
}

fn names(events: &Events) -> Vec<&'static str> {
    let names = |event: &Event<ConnectionError>| event.name();
    events.lock().expect("no panic").iter().map(names).collect()
}

fn count(events: &Events, name: &str) -> usize {
    names(events).iter().filter(|own| **own == name).count()
}

/// How draining ended each time, once it has ended so often.
fn ends(events: &Events, times: usize) -> Vec<&'static str> {
    let limit = Instant::now() + MS(30_000);
    loop {
        let ends: Vec<_> = {
            let events = events.lock().expect("no panic");
            let end = |event: &Event<ConnectionError>| {
                if let Event::ConnectionPendingResponseFailed { reason, .. } = event {
                    return Some(reason.as_str());
                }
                let has_succeeded = event.name() == "ConnectionPendingResponseSucceeded";
                has_succeeded.then_some("succeeded")
            };
            events.iter().filter_map(end).collect()
        };
        if ends.len() >= times {
            return ends;
        }
        assert!(Instant::now() < limit, "never: {:?}", names(events));
        thread::sleep(MS(1));
    }
}

/// The order of events is the draft's.
// LR-01, LR-02, LR-03
fn a_late_reply_does_not_cost_the_connection(shell: Shell) {
    for (endpoint, options) in [
        (plain(), "maxPoolSize=1"),
        (plain(), "maxPoolSize=1&compressors=zlib"),
        (tls(Settings::default()), "maxPoolSize=1"),
    ] {
        let (pool, events) = pool(shell, &endpoint.uri(), options);
        block_ping(&endpoint, 1_500);
        time_out(&pool, MS(300));
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.available, snapshot.pending_response), (1, 1));
        assert!(ping(&pool) >= MS(100), "it waits for the reply");
        assert_eq!(ends(&events, 1), ["succeeded"]);
        // The thread that read the reply may still be reporting, when the caller has its connection.
        until("the second check-in", || count(&events, "ConnectionCheckedIn") == 2);
        let told = names(&events);
        let first = told.iter().position(|name| *name == "ConnectionCheckedIn").expect("it was");
        let expected = [
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionPendingResponseStarted",
            "ConnectionPendingResponseSucceeded",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
        ];
        assert_eq!(told[first..], expected, "{told:?}");
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.connections_created, snapshot.pending_response), (1, 0));
    }
}

/// The draft's prose tests: of its length, its header or its body.
fn a_reply_that_was_read_in_part_is_read_to_its_end(shell: Shell) {
    // About two seconds each: the command has long been late by then.
    for (bytes, every) in [(2, MS(100)), (4, MS(200)), (16, MS(800)), (20, MS(1_500))] {
        let endpoint = plain();
        let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
        set(&endpoint, at(Fault::Drip { bytes, every }, "ping").times(1));
        time_out(&pool, MS(100));
        ping(&pool);
        assert_eq!(ends(&events, 1), ["succeeded"], "{bytes}");
        assert_eq!(pool.snapshot().connections_created, 1, "{bytes}");
    }
}

/// The draft's prose test of the aliveness check: nothing is lost of what has come meanwhile.
fn a_reply_that_came_long_ago_is_read(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
    block_ping(&endpoint, 1_500);
    time_out(&pool, MS(300));
    thread::sleep(MS(3_500));
    ping(&pool);
    assert_eq!(ends(&events, 1), ["succeeded"]);
    assert_eq!(pool.snapshot().connections_created, 1);
}

// LR-04, LR-05
fn a_reply_that_never_comes_costs_the_connection(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
    set(&endpoint, at(Fault::Stall, "ping").times(1));
    time_out(&pool, MS(300));
    let taken = ping(&pool);
    assert!(taken >= MS(2_500) && taken < MS(8_000), "the window of 3 s: {taken:?}");
    assert_eq!(ends(&events, 1), ["timeout"]);
    assert_eq!(closed(&events, 1), ["error"]);
    assert_eq!(pool.snapshot().connections_created, 2);
}

// LR-06
fn a_connection_that_was_silent_for_too_long_is_closed_at_once(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
    set(&endpoint, at(Fault::Stall, "ping").times(1));
    time_out(&pool, MS(300));
    thread::sleep(MS(3_200));
    assert!(ping(&pool) < MS(2_000), "there is no second window");
    assert_eq!(ends(&events, 1), ["timeout"]);
    assert_eq!(closed(&events, 1), ["error"]);
}

/// Garbage, too large, of another request, two of them, cut off: the next command gets another connection.
// LR-04, LR-08
fn a_late_reply_that_breaks_the_protocol_costs_the_connection(shell: Shell) {
    for fault in [
        Fault::Garbage { bytes: 64 },
        Fault::Length { value: 100_000_000 },
        Fault::Length { value: -1 },
        Fault::OpCode { value: 7 },
        Fault::ResponseTo { off_by: 1 },
        Fault::CompressorId { value: 9 },
        Fault::Bomb { bytes: 200_000, claimed: None },
        Fault::Checksum,
        Fault::Twice,
        Fault::Close,
        Fault::Reset,
        Fault::Cut { bytes: 20, then: Ending::Close },
    ] {
        // A small limit, so that what is too large takes no time to make.
        let mut settings = Settings::default();
        settings.limits.message_size = 100_000;
        let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
        let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
        ping(&pool);
        block_ping(&endpoint, 1_500);
        set(&endpoint, at(fault.clone(), "ping").times(1));
        time_out(&pool, MS(300));
        ping(&pool);
        assert_eq!(ends(&events, 1), ["error"], "{fault:?}");
        assert_eq!(closed(&events, 1), ["error"], "{fault:?}");
        assert_eq!(pool.snapshot().connections_created, 2, "{fault:?}");
    }
}

/// "Multiple calls to drain the buffer", as the draft's tests call it.
// LR-04, LR-07
fn a_check_out_that_runs_out_of_time_leaves_the_reply_to_the_next(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
    block_ping(&endpoint, 2_000);
    time_out(&pool, MS(300));
    let Err(error) = pool.check_out_before(Instant::now() + MS(300)) else {
        panic!("its reply has not come")
    };
    assert!(error.is_timeout(), "{error}");
    assert_eq!(pool.snapshot().pending_response, 1);
    ping(&pool);
    assert_eq!(ends(&events, 2), ["timeout", "succeeded"]);
    assert_eq!(pool.snapshot().connections_created, 1);
}

/// One in five finds is late; each reply is of the find that it is given to.
// Reports PgDog#759: where replies are late, a command gets that of another.
fn no_reply_goes_to_another_command(shell: Shell) {
    const CALLERS: i32 = 4;
    const FINDS: i32 = 60;
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=3");
    let documents: Vec<_> = (0..CALLERS * FINDS).map(|id| rawdoc! { "_id": id }).collect();
    let mut connection = pool.check_out().expect("a connection");
    let insert =
        rawdoc! { "insert": "birds", "documents": bson::RawArrayBuf::from_iter(documents) };
    connection.command("zoo", &insert).expect("they are inserted");
    drop(connection);
    let data = rawdoc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 60 };
    let block = rawdoc! {
        "configureFailPoint": "failCommand", "mode": { "activationProbability": 0.2 }, "data": data,
    };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
    let late = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let pool = &pool;
                scope.spawn(move || {
                    let find = |id: &i32| find_in_time(pool, *id);
                    (caller * FINDS..(caller + 1) * FINDS).filter(|id| !find(id)).count()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).sum::<usize>()
    });
    assert!(late > 0, "one in five");
    assert_eq!(pool.snapshot().connections_created, 3, "{late} were late");
    assert_eq!(count(&events, "ConnectionClosed"), 0);
}

/// Whether the reply came in time; it is of this document then.
fn find_in_time(pool: &Arc<dyn AnyPool>, id: i32) -> bool {
    let mut connection = pool.check_out_before(Instant::now() + MS(20_000)).expect("a connection");
    let find = rawdoc! { "find": "birds", "filter": { "_id": id } };
    let options = OperationOptions::new().with_timeout(MS(30));
    match connection.command_with("zoo", &find, options) {
        Ok(reply) => {
            let batch = reply.get_document("cursor").and_then(|it| it.get_array("firstBatch"));
            let first = batch.expect("a batch").get_document(0).expect("a document").get_i32("_id");
            assert_eq!(first.expect("a number"), id);
            true
        }
        Err(error) => {
            assert!(error.is_timeout(), "{error}");
            false
        }
    }
}

/// The draft's prose test of exhaust cursors.
fn a_stream_of_replies_is_not_waited_for(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1&timeoutMS=1000");
    let mut connection = pool.check_out().expect("a connection");
    block_ping(&endpoint, 5_000);
    let (_, bytes) = message(&mut *connection, Flags::EXHAUST_ALLOWED, &a_ping(), &[]);
    connection.send(&bytes).expect("it is small");
    assert!(connection.receive().expect_err("it is late").is_timeout());
    drop(connection);
    assert_eq!(closed(&events, 1), ["error"]);
    assert_eq!(pool.snapshot().pending_response, 0);
}

/// A check-out that waits for a late reply, on a thread.
fn waiting(pool: &Arc<dyn AnyPool>, events: &Events) -> thread::JoinHandle<CheckOutFailure> {
    let waiter = Arc::clone(pool);
    let waiting = thread::spawn(move || {
        let Err(error) = waiter.check_out_before(Instant::now() + MS(20_000)) else {
            panic!("the pool has none")
        };
        error.error().clone()
    });
    while count(events, "ConnectionPendingResponseStarted") == 0 {
        thread::yield_now();
    }
    waiting
}

type CheckOutFailure = CheckOutError<ConnectionError>;

fn silent(endpoint: &Endpoint) {
    endpoint.with(|server, now| {
        server.set_fault(now, Script::new(Fault::Stall).at_command("ping", 0).times(1));
    });
}

fn a_clear_ends_the_wait(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri(), "maxPoolSize=1");
    silent(&endpoint);
    time_out(&pool, MS(300));
    let waiting = waiting(&pool, &events);
    let cause = ConnectionError::timeout(Stage::Hello, MS(1));
    pool.clear(cause, false);
    let error = waiting.join().expect("no panic");
    assert!(matches!(error, CheckOutError::PoolCleared { .. }), "{error:?}");
    assert_eq!((closed(&events, 1), ends(&events, 1)), (vec!["stale".to_owned()], vec!["error"]));
    pool.ready();
    ping(&pool);
}

/// Its own check-outs wait for late replies, which is not in vain.
fn warm_up_waits_for_a_late_reply(shell: Shell) {
    for (connections, options) in [(1, "maxPoolSize=1"), (2, "maxPoolSize=2")] {
        let endpoint = plain();
        let (pool, events) = pool(shell, &endpoint.uri(), options);
        block_ping(&endpoint, 1_500);
        time_out(&pool, MS(300));
        assert_eq!(pool.warm_up(connections).expect("a warm pool"), connections, "{options}");
        assert_eq!(ends(&events, 1), ["succeeded"]);
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.available, snapshot.pending_response), (connections, 0));
    }
}

/// Blocks in the first event of this name until it is opened.
struct Gate {
    of: &'static str,
    opened: Mutex<Option<mpsc::Sender<()>>>,
    is_entered: Arc<AtomicBool>,
}

impl Gate {
    fn new(of: &'static str) -> (Self, Subscriber, Events) {
        let (sender, receiver) = mpsc::channel();
        let (receiver, is_entered) = (Mutex::new(receiver), Arc::<AtomicBool>::default());
        let (inner, events) = subscriber();
        let entered = Arc::clone(&is_entered);
        let subscriber =
            Box::new(move |event: &Event<ConnectionError>, address: &Arc<ServerAddress>| {
                inner(event, address);
                if event.name() == of && !entered.swap(true, Ordering::SeqCst) {
                    // Until the sender is dropped.
                    let _ = receiver.lock().expect("no panic").recv();
                }
            });
        (Self { of, opened: Mutex::new(Some(sender)), is_entered }, subscriber, events)
    }

    fn until_entered(&self) {
        until(self.of, || self.is_entered.load(Ordering::SeqCst));
    }

    fn open(&self) {
        drop(self.opened.lock().expect("no panic").take());
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = Instant::now() + MS(30_000);
    while !holds() {
        assert!(Instant::now() < limit, "never: {what}");
        thread::sleep(MS(1));
    }
}

/// How long closing it takes.
fn close_within(pool: &Arc<dyn AnyPool>, limit: Duration) -> Duration {
    let (told, tells) = mpsc::channel::<()>();
    let begin = Instant::now();
    let closing = Arc::clone(pool);
    thread::spawn(move || {
        closing.close();
        drop(told);
    });
    let ended = tells.recv_timeout(limit);
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "{:?}", pool.snapshot());
    begin.elapsed()
}

/// Sockets are waited for without a limit, and subscribers are not: the socket of a drain that has failed is closed.
fn a_subscriber_that_blocks_does_not_keep_the_pool_from_closing(shell: Shell) {
    let endpoint = plain();
    let (gate, subscriber, _) = Gate::new("ConnectionPendingResponseFailed");
    let uri = with(&endpoint.uri(), "maxPoolSize=1");
    let pool = pool_with_options(shell, &uri, keeping, subscriber);
    pool.ready();
    set(&endpoint, at(Fault::Garbage { bytes: 64 }, "ping").times(1));
    block_ping(&endpoint, 1_500);
    time_out(&pool, MS(300));
    let waiter = Arc::clone(&pool);
    let waiting = thread::spawn(move || drop(waiter.check_out_before(Instant::now() + MS(20_000))));
    gate.until_entered();
    let taken = close_within(&pool, CLOSE_GRACE + MS(5_000));
    assert!(taken >= CLOSE_GRACE, "{taken:?}");
    gate.open();
    waiting.join().expect("no panic");
}

/// Callers that drop their future leave their connection to the next ones, once its late reply is read.
async fn callers_that_leave_cost_no_connection_each<R>()
where
    R: Network<Connection = Connection<R>> + CurrentRuntime,
{
    let endpoint = tls(Settings::default());
    let block = rawdoc! {
        "configureFailPoint": "failCommand", "mode": "alwaysOn",
        "data": { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 300 },
    };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
    let uri = with(&endpoint.uri(), "maxPoolSize=2");
    let builder = Pool::<R, MongoConnector<R>>::builder(&uri).expect("a string");
    let pool = builder
        .map_options(|options| options.with_experimental_pending_response(true))
        .build()
        .expect("good options");
    pool.ready();
    let call = async || {
        let mut connection = pool.check_out().await.expect("a connection");
        connection.command("admin", &a_ping()).await.expect("a reply");
    };
    // The first ones open both.
    zip(call(), call()).await;
    for _ in 0..50 {
        let leaves = async || {
            let served = async {
                call().await;
                panic!("the reply takes longer")
            };
            or(served, R::current().sleep_until(Instant::now() + MS(20))).await;
        };
        zip(leaves(), leaves()).await;
    }
    call().await;
    assert_eq!(endpoint.with(|server, _| server.statistics()).accepted, 2);
    pool.close().await;
}

#[tokio::test]
async fn callers_that_leave_on_tokio() {
    callers_that_leave_cost_no_connection_each::<Tokio>().await;
}

#[test]
fn callers_that_leave_on_smol() {
    smol::block_on(callers_that_leave_cost_no_connection_each::<Smol>());
}
