//! Subscribers get all events in one order, and may use the pool.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::OperationError;
use cenote_core::pool::Event;
use cenote_shell::pool::CLOSE_GRACE;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, Log, at_most, builder, failure, until};

on_all_runtimes!(
    a_panic_in_a_subscriber_does_not_affect_others,
    a_subscriber_that_uses_the_pool_gets_all_events_in_order,
    events_can_be_sent_to_a_channel,
    all_subscribers_get_the_same_order,
    a_slow_subscriber_does_not_delay_sockets,
    a_subscriber_that_blocks_loses_events_and_does_not_hold_up_close,
    a_caller_that_tells_subscribers_goes_on_while_others_use_the_pool,
);

fn a_panic_in_a_subscriber_does_not_affect_others<R: TestRuntime>() {
    let gate = Gate::open();
    let log = Log::default();
    let heard = log.clone();
    let pool = builder::<R>(&gate, at_most(1))
        .on_event(|event| {
            if event.event.name() == "ConnectionPoolReady" {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        })
        .on_event(move |event| heard.push(event))
        .build()
        .expect("good options");
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    assert_eq!(log.take_all(7).len(), 7, "created, ready, started, created, ready, out, in");
}

// EV-01
fn a_subscriber_that_uses_the_pool_gets_all_events_in_order<R: TestRuntime>() {
    let gate = Gate::open();
    let log = Log::default();
    let own: Arc<OnceLock<R::Pool<Gate>>> = Arc::default();
    let (heard, inside) = (log.clone(), Arc::clone(&own));
    let pool = builder::<R>(&gate, at_most(1))
        .on_event(move |event| {
            heard.push(event);
            let Some(pool) = inside.get() else { return };
            if event.event.name() == "ConnectionCheckedIn" && pool.snapshot().generation == 0 {
                pool.clear(failure(), false);
                pool.ready();
            }
        })
        .build()
        .expect("good options");
    let _ = own.set(pool.clone());
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    assert_eq!(
        log.take_all(10).split_off(5),
        [
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionPoolCleared",
            "ConnectionClosed",
            "ConnectionPoolReady",
        ]
    );
}

// EV-03
fn events_can_be_sent_to_a_channel<R: TestRuntime>() {
    let (sender, mut receive) = R::event_channel();
    let pool = builder::<R>(&Gate::open(), at_most(1))
        .event_channel(sender)
        .build()
        .expect("good options");
    pool.ready();
    let created = receive();
    assert!(created.to_string().starts_with("Connection pool created for db.example.com:27017"));
    assert_eq!(receive().event.name(), "ConnectionPoolReady");
    drop(receive);
    drop(pool.check_out().expect("a connection"));
}

/// While several threads use the pool.
// EV-01
fn all_subscribers_get_the_same_order<R: TestRuntime>() {
    let gate = Gate::open();
    let logs = [Log::default(), Log::default()];
    let mut builder = builder::<R>(&gate, at_most(1));
    for log in logs.clone() {
        builder = builder.on_event(move |event| log.push(event));
    }
    let pool = builder.build().expect("good options");
    pool.ready();
    let counted = Arc::new(Mutex::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let connection = pool.check_out().expect("a connection");
                    *counted.lock().expect("no panic") += 1;
                    drop(connection);
                }
            });
        }
    });
    pool.close();
    let [first, second] = logs.map(|log| log.take());
    assert_eq!(first, second);
    assert_eq!(*counted.lock().expect("no panic"), 800);
    // There is one connection, which is checked out once at a time.
    let mut out = false;
    for name in first {
        match name {
            "ConnectionCheckedOut" => assert!(!std::mem::replace(&mut out, true)),
            "ConnectionCheckedIn" => assert!(std::mem::replace(&mut out, false)),
            _ => {}
        }
    }
    assert!(!out);
}

// INT-03, ES-04: connections are interrupted, opened and closed meanwhile.
fn a_slow_subscriber_does_not_delay_sockets<R: TestRuntime>() {
    let gate = Gate::open();
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let pool = builder::<R>(&gate, at_most(3))
        .on_event(move |event| {
            if matches!(event.event, Event::ConnectionCheckedIn { connection_id: 1 }) {
                entered.send(()).expect("the test waits");
                may_leave.lock().expect("no panic").recv().expect("the test goes on");
            }
        })
        .build()
        .expect("good options");
    pool.ready();
    let [first, mut busy, broken] = [(), (), ()].map(|()| pool.check_out().expect("a connection"));
    // Otherwise the thread of the runtime might report the next event, too, and open no connection meanwhile.
    R::wait_for_tasks(&pool);
    let slow = thread::spawn(move || drop(first));
    is_in.recv().expect("a message");

    pool.clear(failure(), true);
    let outcome: Result<(), _> = busy.run(|_| Ok(()));
    assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
    drop(broken);
    assert_eq!(gate.alive(), [2], "1 and 3 are closed");
    pool.ready();
    assert_eq!(pool.check_out().expect("a connection").number, 4);

    // `close` waits until all events are reported.
    drop(busy);
    let (closed, is_closed) = channel();
    let closing = thread::spawn({
        let pool = pool.clone();
        move || {
            pool.close();
            closed.send(()).expect("the test waits");
        }
    });
    until(|| gate.alive().is_empty());
    let early = is_closed.recv_timeout(Duration::from_millis(200));
    assert_eq!(early, Err(RecvTimeoutError::Timeout), "events are left to be reported");
    leave.send(()).expect("it works");
    is_closed.recv().expect("a message");
    closing.join().expect("no panic");
    slow.join().expect("no panic");
}

fn a_subscriber_that_blocks_loses_events_and_does_not_hold_up_close<R: TestRuntime>() {
    let log = Log::default();
    let heard = log.clone();
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let pool = builder::<R>(&Gate::open(), at_most(1))
        .event_queue(100)
        .on_event(move |event| {
            heard.push(event);
            if event.event.name() == "ConnectionCheckedIn" && entered.send(()).is_ok() {
                may_leave.lock().expect("no panic").recv().expect("the test goes on");
            }
        })
        .build()
        .expect("good options");
    pool.ready();
    let first = pool.check_out().expect("a connection");
    R::wait_for_tasks(&pool);
    let slow = thread::spawn(move || drop(first));
    is_in.recv().expect("a message");
    drop(is_in);

    // Started, out and in. Other callers are served.
    for _ in 0..100 {
        drop(pool.check_out().expect("a connection"));
    }
    assert_eq!(pool.dropped_events(), 300 - 100);
    let begin = Instant::now();
    pool.close();
    assert!((CLOSE_GRACE..CLOSE_GRACE * 4).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    assert_eq!(pool.snapshot().total, 0);

    leave.send(()).expect("the subscriber waits");
    slow.join().expect("no panic");
    pool.close();
    let told = log.take();
    assert_eq!(told.len(), 7 + 100);
    assert_eq!(
        told[7..10],
        ["ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckedIn"]
    );
    assert_eq!(pool.dropped_events(), 200 + 2, "the events of the close");
}

/// A thousand events come while a caller tells one: a task tells the last of them.
fn a_caller_that_tells_subscribers_goes_on_while_others_use_the_pool<R: TestRuntime>() {
    let log = Log::default();
    let heard = log.clone();
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let told = AtomicU64::new(0);
    let pool = builder::<R>(&Gate::open(), at_most(1))
        .on_event(move |event| {
            heard.push(event);
            // The first check-in, and an event that comes long after it.
            if [7, 1000].contains(&(told.fetch_add(1, Ordering::Relaxed) + 1)) {
                entered.send(()).expect("the test goes on");
                may_leave.lock().expect("no panic").recv().expect("the test goes on");
            }
        })
        .build()
        .expect("good options");
    pool.ready();
    let first = pool.check_out().expect("a connection");
    R::wait_for_tasks(&pool);
    let slow = thread::spawn(move || drop(first));
    is_in.recv().expect("a message");
    for _ in 0..400 {
        drop(pool.check_out().expect("a connection"));
    }
    leave.send(()).expect("the subscriber waits");
    slow.join().expect("it goes on with its own work");
    is_in.recv().expect("a message");
    leave.send(()).expect("the subscriber waits");
    pool.close();
    let told = log.take();
    assert_eq!(told.len(), 7 + 3 * 400 + 2);
    assert!(told[7..].chunks(3).take(400).all(|three| three[2] == "ConnectionCheckedIn"));
}
