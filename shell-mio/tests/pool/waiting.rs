//! Who waits, for how long, and who comes first.

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::PoolError;
use cenote_core::pool::{CheckOutError, PoolOptions, Purpose};

use crate::world::{Gate, at_most, builder, failure, ready, until};

#[test]
fn a_connection_is_made_once_and_used_again() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(1));
    for _ in 0..3 {
        assert_eq!(pool.check_out().unwrap().number, 1);
    }
    assert_eq!(
        log.take_all(13),
        [
            "ConnectionPoolCreated",
            "ConnectionPoolReady",
            "ConnectionCheckOutStarted",
            "ConnectionCreated",
            "ConnectionReady",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
        ]
    );
}

#[test]
fn first_come_first_served() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let first = pool.check_out().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..20)
        .map(|number| {
            let (own, order) = (pool.clone(), Arc::clone(&order));
            let thread = thread::spawn(move || {
                let _connection = own.check_out().unwrap();
                order.lock().unwrap().push(number);
            });
            until(|| pool.snapshot().waiting == number + 1);
            thread
        })
        .collect();
    drop(first);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

/// One connection comes back, and one thread wakes up: the operating system counts how often each of
/// them was given a processor.
#[cfg(target_os = "linux")]
#[test]
fn exactly_one_thread_is_woken() {
    const WAITING: u64 = 20;
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let first = pool.check_out().unwrap();
    let (served, has_come) = std::sync::mpsc::channel();
    let threads: Vec<_> = (0..WAITING)
        .map(|number| {
            let (own, served) = (pool.clone(), served.clone());
            let (tell, told) = std::sync::mpsc::channel();
            let thread = thread::spawn(move || {
                let own_folder = std::fs::read_link("/proc/thread-self").expect("Linux");
                tell.send(Path::new("/proc").join(own_folder)).expect("the test is there");
                let connection = own.check_out().unwrap();
                served.send((number, connection)).expect("the test is there");
            });
            let folder = told.recv().unwrap();
            until(|| pool.snapshot().waiting == number + 1);
            (folder, thread)
        })
        .collect();
    let switches = || threads.iter().map(|(folder, _)| switches(folder)).collect::<Vec<_>>();
    let mut before = switches();
    // All of them sleep, and none is on its way there.
    until(|| {
        let earlier = std::mem::replace(&mut before, switches());
        before == earlier && before.iter().all(Option::is_some)
    });
    drop(first);
    let (number, second) = has_come.recv().unwrap();
    assert_eq!(number, 0, "the oldest");
    assert_eq!(switches()[1..], before[1..], "nobody else has noticed anything");
    drop(second);
    for next in 1..WAITING {
        assert_eq!(has_come.recv().unwrap().0, next);
    }
    threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
}

/// How often a thread was given a processor, if it sleeps.
#[cfg(target_os = "linux")]
fn switches(folder: &Path) -> Option<Vec<String>> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    let is_asleep = status.lines().any(|line| line.starts_with("State:\tS"));
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    is_asleep.then(|| counts.map(str::to_owned).collect())
}

#[test]
fn waiting_ends_after_the_time_that_was_set_and_says_why() {
    let gate = Gate::open();
    let options = at_most(1).with_wait_queue_timeout(Duration::from_millis(100));
    let (pool, _) = ready(&gate, options);
    let held = pool.check_out().unwrap();
    let began = Instant::now();
    let error = pool.check_out().unwrap_err();
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert!(error.is_timeout());
    let text = error.to_string();
    assert!(text.contains("total 1/1") && text.contains("in use 1"), "{text}");

    // The caller's own deadline counts instead, be it earlier or later (CS-07).
    for wait in [10, 200] {
        let began = Instant::now();
        let deadline = began + Duration::from_millis(wait);
        assert!(pool.check_out_before(deadline).unwrap_err().is_timeout());
        assert!(began.elapsed() >= Duration::from_millis(wait));
    }
    drop(held);
    assert!(pool.check_out().is_ok());
}

#[test]
fn hundreds_give_up_each_at_its_time() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let _held = pool.check_out().unwrap();
    let began = Instant::now();
    thread::scope(|scope| {
        for number in 0..300_u64 {
            let pool = &pool;
            // Later requests give up earlier, so that the timer is set anew again and again.
            let deadline = began + Duration::from_millis(400 - number);
            scope.spawn(move || {
                assert!(pool.check_out_before(deadline).unwrap_err().is_timeout());
                assert!(Instant::now() >= deadline);
            });
        }
    });
    assert_eq!(pool.snapshot().waiting, 0);
}

/// Whoever waits sees to its timeout itself: here the loop's thread is stuck in a subscriber.
#[test]
fn a_loop_that_is_late_delays_nobody() {
    let gate = Gate::open();
    let (stuck, is_stuck) = std::sync::mpsc::channel::<()>();
    let (blocked, resume) = (Mutex::new(Some(stuck)), Mutex::new(None));
    let (release, released) = std::sync::mpsc::channel::<()>();
    *resume.lock().unwrap() = Some(released);
    let pool = builder(&gate, at_most(1).with_max_connecting(1))
        .on_event(move |event| {
            if event.event.name() == "ConnectionReady" {
                drop(blocked.lock().unwrap().take());
                let released = resume.lock().unwrap().take();
                let _ = released.map(|released| released.recv());
            }
        })
        .build()
        .unwrap();
    pool.ready();
    // Served before its events are told.
    let held = pool.check_out().unwrap();
    assert!(is_stuck.recv().is_err());
    let began = Instant::now();
    let deadline = began + Duration::from_millis(50);
    assert!(pool.check_out_before(deadline).unwrap_err().is_timeout());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.check_out().map(drop));
        until(|| pool.snapshot().waiting == 1);
        drop(held);
        assert!(waiting.join().unwrap().is_ok());
    });
    drop(release);
    pool.close();
}

#[test]
fn a_paused_pool_hands_nothing_out() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, PoolOptions::default());
    pool.clear(failure(), false);
    let error = pool.check_out().unwrap_err();
    assert!(matches!(error.error(), CheckOutError::PoolCleared { cause: Some(_) }), "{error}");
    assert!(error.is_retryable());
    pool.ready();
    assert!(pool.check_out().is_ok());
}

#[test]
fn a_failed_connection_fails_the_request_that_it_was_for() {
    let gate = Gate::closed();
    gate.refuse(1);
    let (pool, log) = ready(&gate, at_most(1));
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| pool.check_out().map(drop));
        until(|| pool.snapshot().pending == 1);
        let second = scope.spawn(|| pool.check_out().unwrap().number);
        until(|| pool.snapshot().waiting == 1);
        gate.admit(2);
        (first.join().unwrap(), second.join().unwrap())
    });
    assert_eq!(first.unwrap_err().name(), "ConnectionError");
    assert_eq!(second, 2, "the next one gets a connection of its own");
    until(|| log.take().contains(&"ConnectionCheckOutFailed"));
}

#[test]
fn idle_connections_are_closed_and_the_minimum_is_kept() {
    let gate = Gate::open();
    let options = at_most(4).with_min_pool_size(2).with_max_idle_time(Duration::from_millis(50));
    let (pool, _) = ready(&gate, options);
    until(|| gate.alive() == [1, 2]);
    until(|| gate.alive() == [3, 4]); // Both idled out, and others took their places.
    until(|| pool.snapshot().available == 2);
}

#[test]
fn what_is_not_there_at_once_is_not_waited_for() {
    let gate = Gate::closed();
    let (pool, log) = ready(&gate, at_most(1));
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(pool.snapshot().total, 0, "nothing is started for it");
    gate.admit(1);
    let held = pool.check_out().unwrap();
    assert!(pool.try_check_out().unwrap().is_none());
    drop(held);
    assert_eq!(pool.try_check_out().unwrap().unwrap().number, 1);
    assert_eq!(log.take_all(4)[2..4], ["ConnectionCheckOutStarted", "ConnectionCheckOutFailed"]);
    pool.clear(failure(), false);
    assert_eq!(pool.try_check_out().unwrap_err().name(), "PoolClearedError");
}

/// Everything is out, and would only come from somebody else.
#[test]
fn nobody_is_waited_for_to_warm_up() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(2));
    let held = [(); 2].map(|()| pool.check_out().unwrap());
    assert_eq!(pool.warm_up(2).unwrap(), 0);
    drop(held);
    assert_eq!(pool.warm_up(2).unwrap(), 2);
}

/// Perhaps it leaks: the place in this file is told.
#[test]
fn who_holds_a_connection_for_long_is_told() {
    let gate = Gate::open();
    let (sender, reports) = std::sync::mpsc::channel();
    let options = at_most(1).with_leak_detection_threshold(Duration::from_millis(10));
    let pool = builder(&gate, options)
        .on_leak(move |report| sender.send(report.clone()).expect("somebody listens"))
        .build()
        .unwrap();
    pool.ready();
    let _held = pool.check_out().unwrap();
    let line = line!() - 1;
    let report = reports.recv().unwrap();
    let place = report.place.unwrap();
    assert_eq!((report.connection_id, place.line()), (1, line));
    assert!(place.file().ends_with("waiting.rs") && report.held >= Duration::from_millis(10));
}

/// CS-03: the caller's deadline holds, whatever the connector thinks of it.
#[test]
fn a_connector_that_looks_at_no_deadline_has_one() {
    let (pool, log) = ready(&Gate::closed(), at_most(1));
    let deadline = Instant::now() + Duration::from_millis(30);
    let error = pool.check_out_before(deadline).unwrap_err();
    assert!(error.is_timeout() && Instant::now() >= deadline, "{error}");
    assert_eq!(pool.snapshot().pending, 0);
    assert_eq!(log.take_all(6)[4..], ["ConnectionClosed", "ConnectionCheckOutFailed"]);
    pool.close();
}

#[test]
fn every_way_to_check_out_knows_its_caller() {
    let (sender, reports) = std::sync::mpsc::channel();
    let options = at_most(1).with_leak_detection_threshold(Duration::from_millis(50));
    let pool = builder(&Gate::open(), options)
        .on_leak(move |report| sender.send(report.place).expect("somebody listens"))
        .build()
        .unwrap();
    pool.ready();
    // From now on whoever asks is served at once, and nobody has to be woken for it.
    assert_eq!(pool.warm_up(1).unwrap(), 1);
    let place = || {
        let place = reports.recv().unwrap().expect("known");
        assert!(place.file().ends_with("waiting.rs"), "{place}");
        place.line()
    };
    let later = Instant::now() + Duration::from_secs(60);
    let held = pool.check_out_before(later).unwrap();
    assert_eq!(place(), line!() - 1);
    drop(held);
    let held = pool.check_out_for(Purpose::Cursor, None).unwrap();
    assert_eq!(place(), line!() - 1);
    drop(held);
    let held = pool.try_check_out().unwrap();
    assert_eq!(place(), line!() - 1);
    drop(held);
    let told = pool.with_connection(|_| Ok::<_, PoolError>(place()));
    assert_eq!(told.unwrap(), line!() - 1);
}

#[test]
fn connections_are_made_before_they_are_needed() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(3).with_max_connecting(3));
    assert_eq!(pool.warm_up(2).unwrap(), 2);
    assert_eq!((pool.snapshot().available, pool.snapshot().in_use), (2, 0));
    assert_eq!(pool.warm_up(100).unwrap(), 3);
    assert_eq!(pool.snapshot().available, 3);
    // What fails is told, and nothing is lost.
    pool.clear(failure(), false);
    pool.ready();
    gate.refuse(5);
    assert_eq!(pool.warm_up(3).unwrap_err().name(), "ConnectionError");
    until(|| pool.snapshot().pending == 0);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
    pool.close();
    assert_eq!(gate.alive(), [0; 0]);
}

#[test]
fn scoped_use_gives_back_whatever_happens() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let number =
        pool.with_connection(|connection| Ok::<_, Box<dyn std::error::Error>>(connection.number));
    assert_eq!(number.unwrap(), 1);
    let failed = pool.with_connection(|connection| {
        connection.broken = true;
        Err::<(), Box<dyn std::error::Error>>("no".into())
    });
    assert_eq!(failed.unwrap_err().to_string(), "no");
    assert_eq!(pool.snapshot().total, 0, "it was found broken");
    until(|| gate.alive().is_empty());
}

/// Neither holds what the other waits for, however the pool's limits lie.
#[test]
fn several_who_warm_up_at_once_come_to_an_end() {
    for round in 0..1000 {
        let gate = Gate::open();
        let (max, connecting) = (2 + round % 3, 2 + round % 2);
        let (pool, _) = ready(&gate, at_most(max).with_max_connecting(connecting));
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    assert!(pool.warm_up(max).unwrap() <= max);
                });
            }
        });
        assert_eq!((pool.snapshot().in_use, pool.snapshot().waiting), (0, 0));
        pool.close();
    }
}
