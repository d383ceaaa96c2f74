//! A thousand threads over 50 connections with TLS, while the server restarts, stalls and resets; in
//! a process of its own, whose sockets and threads are counted by the operating system.
//!
//! For three seconds, or as told:
//! `CENOTE_SOAK_SECONDS=60 cargo test --release -p cenote --test mio_soak -- --nocapture`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote::endpoint::{Endpoint, Fault, ListenOptions, Script, Server, Settings, User};
use cenote_core::pool::{Event, Status};
use cenote_core::sdam;
use cenote_mio::{Pool, PoolEvent};

const THREADS: u32 = 1000;
const CONNECTIONS: u32 = 50;

/// What the threads have seen.
#[derive(Default)]
struct Tally {
    out: AtomicU32,
    good: AtomicU32,
    refused: AtomicU32,
    failed: AtomicU32,
}

#[test]
fn a_thousand_threads_come_through() {
    let seconds = std::env::var("CENOTE_SOAK_SECONDS").ok().map(|text| text.parse().unwrap());
    let duration = Duration::from_secs(seconds.unwrap_or(3));
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).unwrap();
    let before = descriptors();

    let events = Arc::new(Mutex::new(Counts::default()));
    let pool = pool(&endpoint, &events);
    let tally = Tally::default();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            thread::Builder::new()
                .stack_size(256 * 1024)
                .spawn_scoped(scope, || work(&pool, &tally, &is_over))
                .unwrap();
        }
        scope.spawn(|| watch(&pool, &is_over));
        disturb(&endpoint, &tally, duration);
        is_over.store(true, Ordering::SeqCst);
    });
    let Tally { good, refused, failed, .. } = tally;
    println!("{good:?} pings, {failed:?} failed, {refused:?} check-outs failed");
    println!("{}", pool.snapshot());
    assert!(good.into_inner() > 100, "it goes on all the time");
    assert!(failed.into_inner() > 0, "it was disturbed");

    let left = pool.snapshot();
    assert_eq!((left.in_use, left.waiting), (0, 0), "{left}");
    pool.close();
    assert_eq!((threads("cenote-loop"), threads("cenote-helper")), (0, 0));
    events.lock().unwrap().judge();
    // The endpoint's ends go when it has noticed.
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let open = endpoint.with(|server, _| server.statistics()).open;
        if open == 0 && descriptors() <= before {
            break;
        }
        assert!(Instant::now() < patience, "{open} connections, {} of {before}", descriptors());
        thread::sleep(Duration::from_millis(1));
    }
}

fn pool(endpoint: &Endpoint, events: &Arc<Mutex<Counts>>) -> Pool {
    let limits = "connectTimeoutMS=2000&socketTimeoutMS=300&waitQueueTimeoutMS=2000";
    let size = format!("maxPoolSize={CONNECTIONS}&maxConnecting=10");
    let heard = Arc::clone(events);
    let builder = Pool::builder(&format!("{}&{limits}&{size}", endpoint.uri()));
    builder
        .expect("a connection string")
        .on_event(move |event| heard.lock().expect("no panic").count(event))
        .on_failure(|failure| {
            failure.clear(sdam::verdict(&failure.context(None), failure.error()).pool);
        })
        .build()
        .expect("good options")
}

fn work(pool: &Pool, tally: &Tally, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        let Ok(mut connection) = pool.check_out() else {
            tally.refused.fetch_add(1, Ordering::Relaxed);
            // Nobody asks a server that is not there as fast as possible.
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        assert!(tally.out.fetch_add(1, Ordering::SeqCst) < CONNECTIONS);
        let reply = connection.command("admin", &rawdoc! { "ping": 1 });
        tally.out.fetch_sub(1, Ordering::SeqCst);
        let outcome = if reply.is_ok() { &tally.good } else { &tally.failed };
        outcome.fetch_add(1, Ordering::Relaxed);
    }
}

/// In the place of a monitor: the server is believed to be there.
fn watch(pool: &Pool, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        if pool.snapshot().status == Status::Paused {
            pool.ready();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Something goes wrong, then there is peace for a while, and so on.
fn disturb(endpoint: &Endpoint, tally: &Tally, duration: Duration) {
    let began = Instant::now();
    let pause = Duration::from_millis(100);
    for round in 0_u32.. {
        let good = tally.good.load(Ordering::Relaxed);
        while tally.good.load(Ordering::Relaxed) < good + 50 {
            thread::yield_now();
        }
        if began.elapsed() > duration {
            return;
        }
        let (stall, reset) = (Script::new(Fault::Stall), Script::new(Fault::Reset));
        let fault = match round % 5 {
            0 => None,
            1 => Some(stall.at_command("ping", 0).times(5)),
            2 => Some(reset.at_command("ping", 0).times(5)),
            3 => Some(Script::new(Fault::Refuse)),
            _ => Some(stall.at_command("saslContinue", 0)),
        };
        let restarts = fault.as_ref().is_none_or(|fault| *fault == Script::new(Fault::Refuse));
        endpoint.with(|server, now| {
            if let Some(fault) = fault {
                server.set_fault(now, fault);
            }
            if restarts {
                server.restart(now);
            }
        });
        thread::sleep(pause);
        endpoint.with(Server::clear_faults);
    }
}

/// How often each event was told, and what it must come to in the end.
#[derive(Default)]
struct Counts {
    by_name: BTreeMap<&'static str, u64>,
    /// Connections that exist, and whether they are out.
    open: BTreeMap<u64, bool>,
}

impl Counts {
    fn count(&mut self, PoolEvent { event, .. }: &PoolEvent) {
        *self.by_name.entry(event.name()).or_default() += 1;
        match event {
            Event::ConnectionCreated { connection_id: id } => {
                assert_eq!(self.open.insert(*id, false), None);
                assert!(self.open.len() <= CONNECTIONS as usize);
            }
            Event::ConnectionClosed { connection_id: id, .. } => {
                assert_eq!(self.open.remove(id), Some(false));
            }
            Event::ConnectionCheckedOut { connection_id: id, .. } => {
                assert_eq!(self.open.insert(*id, true), Some(false));
            }
            Event::ConnectionCheckedIn { connection_id: id } => {
                assert_eq!(self.open.insert(*id, false), Some(true));
            }
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolReady
            | Event::ConnectionPoolCleared { .. }
            | Event::ConnectionPoolClosed
            | Event::ConnectionReady { .. }
            | Event::ConnectionCheckOutStarted
            | Event::ConnectionCheckOutFailed { .. } => {}
        }
    }

    fn judge(&self) {
        let count = |name| self.by_name.get(name).copied().unwrap_or(0);
        println!("{:?}", self.by_name);
        assert!(self.open.is_empty());
        let outcomes = count("ConnectionCheckedOut") + count("ConnectionCheckOutFailed");
        assert_eq!(count("ConnectionCheckOutStarted"), outcomes);
        assert_eq!(count("ConnectionCheckedOut"), count("ConnectionCheckedIn"));
        assert_eq!(count("ConnectionCreated"), count("ConnectionClosed"));
        assert_eq!(count("ConnectionPoolClosed"), 1);
    }
}

/// How many the process has, files and sockets and all.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("Linux").count()
}

fn threads(prefix: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}
