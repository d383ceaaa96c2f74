//! Who is told, in which order, and what subscribers may do.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use cenote_core::pool::Event;
use cenote_mio::{OperationError, Pool};

use crate::world::{Gate, Log, at_most, builder, failure, until};

#[test]
fn one_that_panics_is_not_noticed_by_the_others() {
    let gate = Gate::open();
    let log = Log::default();
    let heard = log.clone();
    let pool = builder(&gate, at_most(1))
        .on_event(|event| {
            // Quietly: a panic with a payload and no message.
            if event.event.name() == "ConnectionPoolReady" {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        })
        .on_event(move |event| heard.push(event))
        .build()
        .unwrap();
    pool.ready();
    drop(pool.check_out().unwrap());
    assert_eq!(log.take_all(7).len(), 7, "created, ready, started, created, ready, out, in");
}

/// A subscriber uses the pool that it is told about, whatever it is told.
#[test]
fn one_that_uses_the_pool_sees_everything_in_order() {
    let gate = Gate::open();
    let log = Log::default();
    let own: Arc<OnceLock<Pool<Gate>>> = Arc::default();
    let (heard, inside) = (log.clone(), Arc::clone(&own));
    let pool = builder(&gate, at_most(1))
        .on_event(move |event| {
            heard.push(event);
            let Some(pool) = inside.get() else { return };
            if event.event.name() == "ConnectionCheckedIn" && pool.snapshot().generation == 0 {
                pool.clear(failure(), false);
                pool.ready();
            }
        })
        .build()
        .unwrap();
    let _ = own.set(pool.clone());
    pool.ready();
    drop(pool.check_out().unwrap());
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

#[test]
fn a_channel_gets_them_too() {
    let (sender, receiver) = channel();
    let pool = builder(&Gate::open(), at_most(1)).event_channel(sender).build().unwrap();
    pool.ready();
    let created = receiver.recv().unwrap();
    assert!(created.to_string().starts_with("Connection pool created for db.example.com:27017"));
    assert_eq!(receiver.recv().unwrap().event.name(), "ConnectionPoolReady");
    drop(receiver);
    drop(pool.check_out().unwrap());
}

/// Threads use the pool at the same time; every subscriber sees one and the same order, and the
/// order makes sense.
#[test]
fn threads_do_not_mix_the_order() {
    let gate = Gate::open();
    let logs = [Log::default(), Log::default()];
    let mut builder = builder(&gate, at_most(1));
    for log in logs.clone() {
        builder = builder.on_event(move |event| log.push(event));
    }
    let pool = builder.build().unwrap();
    pool.ready();
    let counted = Arc::new(Mutex::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let connection = pool.check_out().unwrap();
                    *counted.lock().unwrap() += 1;
                    drop(connection);
                }
            });
        }
    });
    pool.close();
    let [first, second] = logs.map(|log| log.take());
    assert_eq!(first, second);
    assert_eq!(*counted.lock().unwrap(), 800);
    // One connection: it is out once at a time.
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

/// INT-03, ES-04: while a subscriber takes its time, connections are broken off, opened and closed.
#[test]
fn one_that_takes_its_time_keeps_no_socket_waiting() {
    let gate = Gate::open();
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let pool = builder(&gate, at_most(3))
        .on_event(move |event| {
            if matches!(event.event, Event::ConnectionCheckedIn { connection_id: 1 }) {
                entered.send(()).expect("the test waits");
                may_leave.lock().expect("no panic").recv().expect("the test goes on");
            }
        })
        .build()
        .unwrap();
    pool.ready();
    let [first, mut busy, broken] = [(), (), ()].map(|()| pool.check_out().unwrap());
    // The event loop has no more to tell: it would tell the next event, too, and open nothing then.
    pool.while_quiet(|| ());
    let slow = thread::spawn(move || drop(first));
    is_in.recv().unwrap();

    pool.clear(failure(), true);
    let outcome: Result<(), _> = busy.run(|_| Ok(()));
    assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
    drop(broken);
    assert_eq!(gate.alive(), [2], "1 and 3 are closed");
    pool.ready();
    assert_eq!(pool.check_out().unwrap().number, 4);

    // Whoever closes the pool waits for what is still to be told.
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
    assert_eq!(early, Err(RecvTimeoutError::Timeout), "nothing is left but what is to be told");
    leave.send(()).unwrap();
    is_closed.recv().unwrap();
    closing.join().unwrap();
    slow.join().unwrap();
}
