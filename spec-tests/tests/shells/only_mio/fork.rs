//! A real `fork`: the child's pool goes on without a byte on the parent's
//! sockets, and the parent's pool as if nothing had been.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_check::EventGuard;
use cenote_core::pool::Purpose;
use cenote_core::trace::Replay;
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Script, Settings};
use cenote_mio::{
    Builder, MongoConnector, OperationError, Pool, PoolSource, PooledConnection, RequestId,
};
use cenote_test_runtimes::alone;
use fork::{Fork, fork};
use mio::{Events, Poll};

/// Longer than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Passes everything on, and counts what clients send on each connection; an end counts as a byte.
#[derive(Clone, Default)]
struct Relay {
    sent: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
}

impl Relay {
    fn start(&self, server: u16) -> io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let relay = self.clone();
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                relay.pass_on(client, server)?;
            }
            Ok::<(), io::Error>(())
        });
        Ok(port)
    }

    fn pass_on(&self, mut client: TcpStream, server: u16) -> io::Result<()> {
        let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
        let sent = Arc::<AtomicU64>::default();
        self.sent.lock().expect("no panic").push(Arc::clone(&sent));
        let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
        thread::spawn(move || io::copy(&mut from_server, &mut to_client));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let count = client.read(&mut buffer)?;
                sent.fetch_add(count.max(1) as u64, Ordering::SeqCst);
                if count == 0 {
                    return server.shutdown(Shutdown::Both);
                }
                server.write_all(&buffer[..count])?;
            }
        });
        Ok(())
    }

    fn counts(&self) -> Vec<u64> {
        let sent = self.sent.lock().expect("no panic");
        sent.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }
}

/// With a judge of its events, in the parent as in the child.
fn judged(builder: Builder<MongoConnector>) -> (Builder<MongoConnector>, Arc<EventGuard>) {
    let sentry = Arc::new(EventGuard::new());
    let ear = Arc::clone(&sentry);
    (builder.on_event(move |told| ear.hear(&told.event, &told.address)), sentry)
}

fn ping(connection: &mut PooledConnection<MongoConnector>) -> Result<(), OperationError> {
    connection.command("admin", &rawdoc! { "ping": 1 }).map(drop)
}

/// Forks, has the child act on what it inherits, and returns how that went. The parent has what it had.
fn in_a_child<T>(inherited: T, pool: impl Fn(&T) -> &Pool, act: impl FnOnce(T)) -> (String, T) {
    let (mut report, mut to_parent) = UnixStream::pair().expect("two sockets");
    if pool(&inherited).while_quiet(fork).expect("a child") == Fork::Child {
        let hangs = to_parent.try_clone().expect("the same socket");
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            let _ = (&hangs).write_all(b"it hangs");
            std::process::exit(0);
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| act(inherited)));
        let text = outcome.map_or_else(
            |panic| panic.downcast_ref::<String>().cloned().unwrap_or("a panic".to_owned()),
            |()| "well".to_owned(),
        );
        let _ = to_parent.write_all(text.as_bytes());
        std::process::exit(0);
    }
    drop(to_parent);
    let mut text = String::new();
    report.read_to_string(&mut text).expect("a report");
    (text, inherited)
}

/// What the child does; it has this thread and no other.
fn live_on(pool: &Pool, mut inherited: PooledConnection<MongoConnector>, sentry: &EventGuard) {
    // It is noticed, even if it was forgotten.
    assert!(matches!(ping(&mut inherited), Err(OperationError::Interrupted(_))));
    sentry.is_reset_after_fork(pool.address());
    pool.reset_after_fork().expect("a new loop");
    pool.reset_after_fork().expect("once is enough");
    // What the parent has is not to be touched.
    let error = ping(&mut inherited).expect_err("it is the parent's");
    assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
    inherited.set_purpose(Purpose::Cursor); // It has no pool any more; that must not panic.
    assert_eq!(pool.snapshot().total, 0);
    // The flight recorder goes on; the recording is the parent's, and has nothing to end here.
    let recorded = inputs(&pool.write_trace(Vec::new()).expect("memory"));
    assert_eq!(recorded.iter().filter(|name| **name == "ResetAfterFork").count(), 1);
    pool.end_recording().expect("nothing");
    let mut own = pool.check_out().expect("a connection of the child's own");
    ping(&mut own).expect("it works");
    assert!(own.id() > inherited.id());
    drop((inherited, own));
    pool.clear(
        cenote_core::error::ConnectionError::timeout(
            cenote_core::error::Stage::Hello,
            Duration::from_secs(1),
        ),
        true,
    );
    pool.ready();
    drop(pool.check_out().expect("another one"));
    pool.close();
}

/// The names of the inputs of a trace, which replays as it was recorded.
fn inputs(trace: &[u8]) -> Vec<&'static str> {
    let mut replay = Replay::new(trace).expect("a trace");
    let step = || replay.step(&mut |_| {}).expect("it goes the way it went");
    std::iter::from_fn(step).map(|step| step.input.name()).collect()
}

/// It has no thread to wait for, nor anything that would come home.
fn close_the_pool(pool: &Pool, inherited: PooledConnection<MongoConnector>) {
    drop(inherited);
    pool.close();
    assert_eq!(pool.check_out().expect_err("it is closed").name(), "PoolClosedError");
}

/// What is idle is refused where it is used, and nothing new can be had.
fn use_what_is_there(pool: &Pool, mut inherited: PooledConnection<MongoConnector>) {
    let mut idle = pool.check_out().expect("a connection");
    for connection in [&mut idle, &mut inherited] {
        assert!(matches!(ping(connection), Err(OperationError::Interrupted(_))));
        connection.set_purpose(Purpose::Cursor);
    }
    pool.check_out().expect_err("there is no thread to open one");
}

/// A child that does not call `reset_after_fork`, whatever it does, does no harm.
#[test]
fn a_child_that_does_not_go_on_does_no_harm() {
    alone(|| {
        let acts: [fn(Pool, PooledConnection<MongoConnector>); 3] = [
            |pool, inherited| drop((pool, inherited)),
            |pool, inherited| close_the_pool(&pool, inherited),
            |pool, inherited| use_what_is_there(&pool, inherited),
        ];
        for act in acts {
            let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).unwrap();
            let relay = Relay::default();
            let server = endpoint.address().port().expect("TCP");
            let port = relay.start(server).unwrap();
            let uri = endpoint.uri().replace(&format!(":{server}"), &format!(":{port}"));
            let pool = judged(Pool::builder(&uri).unwrap()).0.build().unwrap();
            pool.ready();
            let inherited = pool.check_out().unwrap();
            drop(pool.check_out().unwrap()); // Another one, which is idle.
            let before = relay.counts();
            let act = |(pool, inherited)| act(pool, inherited);
            let (text, (pool, mut inherited)) = in_a_child((pool, inherited), |it| &it.0, act);
            assert_eq!((text.as_str(), relay.counts()), ("well", before));
            ping(&mut inherited).unwrap();
            ping(&mut pool.check_out().unwrap()).unwrap();
            assert_eq!(pool.snapshot().connections_created, 2);
            drop(inherited);
            pool.close();
        }
    });
}

// PS-04, FK-01, FK-02, FK-03, FK-04
#[test]
fn a_child_goes_on_without_its_parents_sockets() {
    alone(|| {
        for options in [ListenOptions::default(), ListenOptions::with_tls()] {
            let endpoint = Endpoint::start(Settings::default(), options).unwrap();
            let relay = Relay::default();
            let server = endpoint.address().port().expect("TCP");
            let port = relay.start(server).unwrap();
            let uri = endpoint.uri().replace(&format!(":{server}"), &format!(":{port}"));
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("pool.bson");
            let (builder, sentry) = judged(Pool::builder(&uri).unwrap().flight_recorder(64 << 10));
            let pool = builder.record(file.as_path()).build().unwrap();
            pool.ready();
            let mut held = pool.check_out().unwrap();
            drop(pool.check_out().unwrap()); // Another one, which is idle.
            let inherited = pool.check_out().unwrap();
            assert_eq!(inherited.id(), 2);
            // A third one is being opened at the fork, slowly, and its last byte comes after it.
            let slowly = Fault::Drip { bytes: 5, every: Duration::from_millis(10) };
            endpoint.with(|server, now| {
                server.set_fault(now, Script::new(slowly).at_command("isMaster", 0))
            });
            let opening = thread::spawn({
                let pool = pool.clone();
                move || {
                    pool.check_out().map(|mut connection| {
                        ping(&mut connection).map_err(|error| error.to_string())
                    })
                }
            });
            let seen =
                || endpoint.with(|server, _| server.statistics()).commands.get("isMaster").copied();
            while seen() < Some(3) {
                thread::yield_now();
            }
            let before = relay.counts();
            let act = |(pool, inherited): (Pool, _)| live_on(&pool, inherited, &sentry);
            let (text, (pool, mut inherited)) = in_a_child((pool, inherited), |it| &it.0, act);
            assert_eq!(text, "well");
            assert_eq!(relay.counts()[..2], before[..2], "not a byte, and no end");
            assert_eq!(relay.counts().len(), 5, "two of the child's own");
            // Whatever the child has done to its loop was not done to the parent's; and a byte too much
            // would have broken the third connection.
            assert_eq!(opening.join().unwrap().unwrap(), Ok(()));
            for connection in [&mut held, &mut inherited] {
                ping(connection).unwrap();
            }
            assert_eq!(pool.snapshot().connections_created, 3);
            pool.reset_after_fork().unwrap(); // Not here.
            drop((held, inherited));
            pool.close();
            // Of what the child did nothing is in the parent's file.
            pool.end_recording().unwrap();
            let recorded = inputs(&std::fs::read(&file).unwrap());
            assert!(!recorded.contains(&"ResetAfterFork"), "{recorded:?}");
            assert_eq!(recorded.last(), Some(&"Close"));
        }
    });
}

/// A pool in an event loop of the application, and that loop.
struct Embedded {
    source: PoolSource,
    poll: Poll,
}

impl Embedded {
    const TOKENS: Range<usize> = 0..8;

    /// Turns the loop until this request has its answer.
    fn connection(&mut self, request: RequestId) -> PooledConnection<MongoConnector> {
        let mut events = Events::with_capacity(8);
        loop {
            if let Some((answered, outcome)) = self.source.next_ready() {
                assert_eq!(answered, request);
                return outcome.expect("a connection");
            }
            self.poll.poll(&mut events, self.source.next_timeout()).expect("events");
            for event in &events {
                self.source.handle_event(event);
            }
            self.source.turn();
        }
    }

    /// In the child: another loop, in which the pool has nothing of the parent's.
    fn live_on(mut self, asked: RequestId) {
        self.poll = Poll::new().expect("a poll");
        let registry = self.poll.registry();
        for _ in 0..2 {
            // The second time does nothing.
            self.source.reset_after_fork(registry, Self::TOKENS, || {}).expect("a new loop");
        }
        assert_eq!(self.source.pool().snapshot().total, 0);
        self.source.cancel(asked); // It was the parent's.
        let request = self.source.check_out();
        ping(&mut self.connection(request)).expect("it works");
    }
}

#[test]
fn an_embedded_pool_goes_on_in_a_child() {
    alone(|| {
        for options in [ListenOptions::default(), ListenOptions::with_tls()] {
            let endpoint = Endpoint::start(Settings::default(), options).unwrap();
            let poll = Poll::new().unwrap();
            let (builder, sentry) = judged(Pool::builder(&endpoint.uri()).unwrap());
            let tokens = Embedded::TOKENS;
            let source = PoolSource::new(builder, poll.registry(), tokens, || {}).unwrap();
            source.pool().ready();
            let mut parent = Embedded { source, poll };
            let request = parent.source.check_out();
            drop(parent.connection(request));
            let request = parent.source.check_out();
            let mut held = parent.connection(request);
            // This one is being opened at the fork.
            let opening = parent.source.check_out();
            let address = parent.source.pool().address().clone();
            let (text, mut parent) = in_a_child(
                parent,
                |it| it.source.pool(),
                |child| {
                    sentry.is_reset_after_fork(&address);
                    child.live_on(opening);
                },
            );
            assert_eq!(text, "well");
            ping(&mut held).unwrap();
            ping(&mut parent.connection(opening)).unwrap();
            assert_eq!(parent.source.pool().snapshot().connections_created, 2);
        }
    });
}
