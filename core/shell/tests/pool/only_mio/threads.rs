//! Callers that are threads: which of them wake up, and what delays them.

#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, Stage};
use cenote_mio::{Builder, Connector, EventLoop, HandshakeReporter, Pool, Target};

use crate::pool::world::{Gate, at_most, builder, checked, failure, ready, until};

/// Much longer than these tests take.
const LONG: Duration = Duration::from_secs(20);

/// A check-in wakes one thread: the operating system counts how often it schedules each.
#[cfg(target_os = "linux")]
#[test]
fn exactly_one_thread_is_woken() {
    const WAITING: u64 = 20;
    let gate = Gate::open();
    let (pool, _) = ready::<EventLoop>(&gate, at_most(1));
    let first = pool.check_out().unwrap();
    let (served, has_come) = channel();
    let threads: Vec<_> = (0..WAITING)
        .map(|number| {
            let (own, served) = (pool.clone(), served.clone());
            let (tell, told) = channel();
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
    // All of them sleep.
    until(|| {
        let earlier = std::mem::replace(&mut before, switches());
        before == earlier && before.iter().all(Option::is_some)
    });
    drop(first);
    let (number, second) = has_come.recv().unwrap();
    assert_eq!(number, 0, "the oldest");
    assert_eq!(switches()[1..], before[1..], "no other thread was scheduled");
    drop(second);
    for next in 1..WAITING {
        assert_eq!(has_come.recv().unwrap().0, next);
    }
    threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
}

/// How often a thread was scheduled, if it sleeps.
#[cfg(target_os = "linux")]
fn switches(folder: &Path) -> Option<Vec<String>> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    let is_asleep = status.lines().any(|line| line.starts_with("State:\tS"));
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    is_asleep.then(|| counts.map(str::to_owned).collect())
}

/// A caller that waits handles its timeout itself. Here a subscriber blocks the thread of the event loop.
#[test]
fn a_blocked_event_loop_does_not_delay_timeouts() {
    let gate = Gate::closed();
    let (stuck, is_stuck) = channel::<()>();
    let (blocked, resume) = (Mutex::new(Some(stuck)), Mutex::new(None));
    let (release, released) = channel::<()>();
    *resume.lock().unwrap() = Some(released);
    let pool = builder::<EventLoop>(&gate, at_most(1).with_max_connecting(1))
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
    let held = thread::scope(|scope| {
        let first = scope.spawn(|| pool.check_out().unwrap());
        until(|| pool.snapshot().pending == 1);
        // The caller has reported its events by then, and waits: the loop reports the next one.
        thread::sleep(Duration::from_millis(500));
        gate.admit(1);
        first.join().unwrap()
    });
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

/// Which does not wait for itself.
#[test]
fn a_subscriber_may_close_the_pool() {
    for name in ["ConnectionReady", "ConnectionCheckedIn", "ConnectionCheckedOut"] {
        let gate = Gate::open();
        let own: Arc<OnceLock<Pool<Gate>>> = Arc::default();
        let inside = Arc::clone(&own);
        let pool = builder::<EventLoop>(&gate, at_most(1))
            .on_event(move |event| {
                if event.event.name() == name {
                    inside.get().into_iter().for_each(Pool::close);
                }
            })
            .build()
            .unwrap();
        let _ = own.set(pool.clone());
        pool.ready();
        drop(pool.check_out());
        pool.close();
        assert_eq!(gate.alive(), [0; 0], "{name}");
    }
}

/// The check-out is given up, but not the work for it.
#[test]
fn close_waits_for_the_threads_of_the_pool() {
    struct Slow {
        begins: Sender<()>,
        /// The work goes on for as long as the other end is there.
        may_end: Arc<Mutex<Receiver<()>>>,
        ended: Arc<AtomicU32>,
    }

    impl Connector<EventLoop> for Slow {
        type Connection = ();
        type Error = ConnectionError;

        async fn connect(
            &self,
            target: Target,
            _: HandshakeReporter,
        ) -> Result<(), ConnectionError> {
            let (begins, ended) = (self.begins.clone(), Arc::clone(&self.ended));
            let may_end = Arc::clone(&self.may_end);
            let work = move || {
                begins.send(()).expect("the test is there");
                let _ = may_end.lock().unwrap().recv();
                if target.connection_id == 1 {
                    thread::sleep(Duration::from_millis(100)); // The last one to end.
                }
                ended.fetch_add(1, Ordering::Relaxed);
            };
            let worked = target.runtime.on_thread(work).await;
            worked.map_err(|error| ConnectionError::network(Stage::Tcp, error))
        }
    }

    let (begins, begun) = channel();
    let (end, may_end) = channel();
    let ended = Arc::new(AtomicU32::new(0));
    let may_end = Arc::new(Mutex::new(may_end));
    let connector = Slow { begins, may_end, ended: Arc::clone(&ended) };
    let builder = Builder::new("db.example.com".parse().unwrap(), connector);
    let pool = checked(builder).build().unwrap();
    pool.ready();
    thread::scope(|scope| {
        let given_up = [(); 2].map(|()| scope.spawn(|| pool.check_out().is_err()));
        given_up.iter().for_each(|_| begun.recv().unwrap());
        pool.close_before(Instant::now()).unwrap();
        assert_eq!(ended.load(Ordering::Relaxed), 0, "its deadline has passed");
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(100));
            drop(end);
        });
        pool.close();
        assert_eq!(ended.load(Ordering::Relaxed), 2);
        assert!(given_up.into_iter().all(|it| it.join().unwrap()));
    });
}

/// A subscriber that waits on the same thread may consume the wake-up of the check-out that it is told of.
#[test]
fn a_subscriber_may_check_out_of_another_pool() {
    let (gate, other_gate) = (Gate::closed(), Gate::closed());
    let (other, _) = ready::<EventLoop>(&other_gate, at_most(1));
    let pool = builder::<EventLoop>(&gate, at_most(1))
        .on_event(move |event| {
            if event.event.name() == "ConnectionCheckOutStarted" {
                drop(other.check_out().unwrap());
            }
        })
        .build()
        .unwrap();
    pool.ready();
    thread::scope(|scope| {
        let checked_out = scope.spawn(|| pool.check_out().map(drop));
        // The outer check-out is answered first, while the subscriber waits for the other pool.
        gate.admit(1);
        until(|| pool.snapshot().in_use == 1);
        other_gate.admit(1);
        assert!(checked_out.join().unwrap().is_ok());
    });
    pool.close();
}

/// The machine gets its answer also when the connector panics after it has connected.
#[test]
fn an_interrupter_that_cannot_be_made_fails_the_check_out() {
    struct Panics;

    impl Connector<EventLoop> for Panics {
        type Connection = ();
        type Error = ConnectionError;

        async fn connect(&self, _: Target, _: HandshakeReporter) -> Result<(), ConnectionError> {
            Ok(())
        }

        fn interrupter(&self, (): &()) -> Option<cenote_mio::Interrupter> {
            // Quietly: a panic with a payload and no message.
            std::panic::resume_unwind(Box::new("on purpose"))
        }
    }

    let pool = Builder::new("db.example.com".parse().unwrap(), Panics).build().unwrap();
    pool.ready();
    for _ in 0..3 {
        assert!(pool.check_out().is_err());
    }
    assert_eq!(pool.snapshot().total, 0);
    pool.close();
}

/// It runs on the thread of the event loop, or of the caller, and does not wait for either.
#[test]
fn a_failure_handler_may_close_the_pool() {
    let gate = Gate::closed();
    gate.refuse(1);
    let own: Arc<OnceLock<Pool<Gate>>> = Arc::default();
    let inside = Arc::clone(&own);
    let pool = builder::<EventLoop>(&gate, at_most(1))
        .on_failure(move |_| inside.get().into_iter().for_each(Pool::close))
        .build()
        .unwrap();
    pool.ready();
    let _ = own.set(pool.clone());
    gate.admit(1);
    assert!(pool.check_out().is_err());
    pool.close();
}

/// Within a subscriber of the first pool: `close` would wait for that.
#[test]
fn a_subscriber_of_another_pool_may_close_the_pool() {
    let own: Arc<OnceLock<Pool<Gate>>> = Arc::default();
    let inside = Arc::clone(&own);
    let other = builder::<EventLoop>(&Gate::open(), at_most(1))
        .on_event(move |event| {
            if event.event.name() == "ConnectionPoolCleared" {
                inside.get().into_iter().for_each(Pool::close);
            }
        })
        .build()
        .unwrap();
    other.ready();
    let clears = other.clone();
    let pool = builder::<EventLoop>(&Gate::open(), at_most(1))
        .on_event(move |event| {
            if event.event.name() == "ConnectionCheckedIn" {
                clears.clear(failure(), false);
            }
        })
        .build()
        .unwrap();
    pool.ready();
    let _ = own.set(pool.clone());
    let began = Instant::now();
    drop(pool.check_out().unwrap());
    pool.close();
    assert!(began.elapsed() < cenote_shell::pool::CLOSE_GRACE, "it waited for itself");
    other.close();
}

/// The loop waits for events without a limit then, and after its end there is none.
#[test]
fn other_threads_may_sleep_on_the_event_loop() {
    struct Tells(Mutex<Sender<EventLoop>>);

    impl Connector<EventLoop> for Tells {
        type Connection = ();
        type Error = ConnectionError;

        async fn connect(
            &self,
            target: Target,
            _: HandshakeReporter,
        ) -> Result<(), ConnectionError> {
            self.0.lock().unwrap().send(target.runtime).unwrap();
            Ok(())
        }
    }

    let (tells, told) = channel();
    let connector = Tells(Mutex::new(tells));
    let pool = Builder::new("db.example.com".parse().unwrap(), connector).build().unwrap();
    pool.ready();
    drop(pool.check_out().unwrap());
    let event_loop = told.recv().unwrap();
    // It waits for events by then.
    thread::sleep(Duration::from_millis(20));
    let at = Instant::now() + Duration::from_millis(20);
    let (slept, has_slept) = channel();
    thread::spawn(move || {
        smol::block_on(event_loop.sleep_until(at));
        slept.send(()).unwrap();
        smol::block_on(event_loop.sleep_until(at + LONG));
        slept.send(()).unwrap();
    });
    has_slept.recv_timeout(LONG).expect("the loop is woken for it");
    assert!(Instant::now() >= at);
    pool.close();
    has_slept.recv_timeout(LONG).expect("the loop has ended");
}

/// What a connector panics with at its first attempt.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        if !thread::panicking() {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
}

struct PanicsOnce(AtomicU32);

impl Connector<EventLoop> for PanicsOnce {
    type Connection = ();
    type Error = ConnectionError;

    async fn connect(&self, _: Target, _: HandshakeReporter) -> Result<(), ConnectionError> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            std::panic::resume_unwind(Box::new(PanicsWhenDropped));
        }
        Ok(())
    }
}

/// Otherwise the pool would be closed.
#[test]
fn a_panic_whose_payload_panics_too_does_not_end_the_loop() {
    let connector = PanicsOnce(AtomicU32::new(0));
    let builder = Builder::new("db.example.com".parse().expect("an address"), connector);
    let pool: Pool<_> = checked(builder).build().expect("good options");
    pool.ready();
    assert!(pool.check_out().is_err());
    drop(pool.check_out().expect("a connection"));
    pool.close();
}
