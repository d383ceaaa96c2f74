//! The pool in an event loop of the test's own, over TLS, which is as unkind to it as a loop can be:
//! it turns for nothing, forgets to, and tells of sockets that are long closed.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll as Progress;
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{ConnectionError, Stage};
use cenote_endpoint::{self as endpoint, Endpoint, Fault, Settings};
use cenote_mio::{
    AccessToken, Builder, MongoConnector, OperationError, Pool, PoolSource, PooledConnection,
    TokenRequest,
};
use mio::{Events, Interest, Poll, Token, Waker};

use super::world::checked;
use crate::world::{at, set, tls, with};

const WAKER: Token = Token(0);
const POOL: Range<usize> = 1000..1400;

/// An application with one thread, and commands under way by the number of their connection.
struct Application {
    poll: Poll,
    source: PoolSource,
    busy: BTreeMap<u64, PooledConnection<MongoConnector>>,
    outcomes: Vec<Result<(), OperationError>>,
    refused: Vec<&'static str>,
    /// How often the loop turns for nothing in between.
    spurious: u32,
    command: RawDocumentBuf,
}

impl Application {
    fn new(uri: &str, spurious: u32) -> Self {
        Self::of(Pool::builder(uri).expect("a connection string"), spurious)
    }

    fn of(builder: Builder, spurious: u32) -> Self {
        Self::with_tokens(POOL, builder, spurious)
    }

    fn with_tokens(tokens: Range<usize>, builder: Builder, spurious: u32) -> Self {
        let poll = Poll::new().expect("a poll");
        let waker = Waker::new(poll.registry(), WAKER).expect("a waker");
        let wake = move || waker.wake().expect("it wakes");
        let builder = checked(builder);
        let source = PoolSource::new(builder, poll.registry(), tokens, wake).expect("it works");
        source.pool().ready();
        let (busy, outcomes, refused) = (BTreeMap::new(), Vec::new(), Vec::new());
        let command = rawdoc! { "ping": 1 };
        Self { poll, source, busy, outcomes, refused, spurious, command }
    }

    /// One round, which waits if there is nothing to do.
    fn round(&mut self) {
        let mut events = Events::with_capacity(16);
        let timeout = self.source.next_timeout().unwrap_or(Duration::from_secs(1));
        let timeout = timeout.min(Duration::from_secs(1));
        self.poll.poll(&mut events, Some(timeout)).expect("events");
        for event in &events {
            if !self.source.handle_event(event) && event.token() != WAKER {
                self.advance(event.token().0 as u64);
            }
        }
        for _ in 0..=self.spurious {
            self.source.turn();
            // Nothing has happened to any of them.
            let busy: Vec<_> = self.busy.keys().copied().collect();
            busy.into_iter().for_each(|number| self.advance(number));
        }
        while let Some((_, outcome)) = self.source.next_ready() {
            match outcome {
                Ok(connection) => self.begin(connection),
                Err(error) => self.refused.push(error.name()),
            }
        }
    }

    fn begin(&mut self, mut connection: PooledConnection<MongoConnector>) {
        let number = connection.id();
        let (token, both) = (Token(number as usize), Interest::READABLE | Interest::WRITABLE);
        self.poll.registry().register(&mut *connection, token, both).expect("it is watched");
        connection.begin("admin", &self.command).expect("its turn");
        self.busy.insert(number, connection);
        self.advance(number);
    }

    fn advance(&mut self, number: u64) {
        let Some(connection) = self.busy.get_mut(&number) else { return };
        if let Progress::Ready(outcome) = connection.advance() {
            self.outcomes.push(outcome.map(drop));
            let connection = self.busy.remove(&number);
            self.forget(connection.expect("it was there")).expect("it was watched");
        }
    }

    fn forget(&self, mut connection: PooledConnection<MongoConnector>) -> io::Result<()> {
        self.poll.registry().deregister(&mut *connection)
    }

    /// So many pings, all at once as far as the pool has connections.
    fn ping(&mut self, pings: usize) {
        for _ in 0..pings {
            self.source.check_out();
        }
        let all = self.outcomes.len() + pings;
        while self.outcomes.len() < all {
            self.round();
        }
    }
}

/// With no more tokens than maxConnecting.
#[test]
fn turned_for_nothing_it_does_nothing() {
    let endpoint = tls(Settings::default());
    let builder = Pool::builder(&with(&endpoint.uri(), "maxPoolSize=3"));
    let builder = builder.expect("a connection string");
    let mut application = Application::with_tokens(1000..1002, builder, 20);
    application.ping(50);
    assert!(application.outcomes.iter().all(Result::is_ok), "{:?}", application.outcomes);
    assert_eq!(endpoint.with(|server, _| server.statistics()).commands["ping"], 50);
    assert_eq!(application.source.pool().snapshot().connections_created, 3);
}

/// The callback runs in the loop, and a command that was begun is refused when the token has expired.
#[test]
fn access_tokens_in_the_loop() {
    let accept = |text| vec![endpoint::AccessToken::new(text, "robot")];
    let endpoint =
        tls(Settings { auth: true, access_tokens: accept("first"), ..Settings::default() });
    let uri = with(&endpoint.uri(), "maxPoolSize=1&authMechanism=MONGODB-OIDC");
    let (own, calls) = (thread::current().id(), Arc::new(AtomicUsize::new(0)));
    let called = Arc::clone(&calls);
    let callback = move |_: &TokenRequest| {
        assert_eq!(thread::current().id(), own);
        let tokens = ["first", "second"];
        Ok(AccessToken::new(tokens[called.fetch_add(1, Ordering::Relaxed)]))
    };
    let builder = Pool::builder(&uri).expect("a connection string").oidc_callback(callback);
    let mut application = Application::of(builder, 0);
    application.command = rawdoc! { "count": "birds" };
    application.ping(2);
    endpoint.with(|server, _| server.set_access_tokens(accept("second")));
    application.ping(1);
    let refused = application.outcomes.pop().expect("the last one").expect_err("it has expired");
    assert!(refused.to_string().contains("code 391"), "{refused}");
    assert!(application.outcomes.iter().all(Result::is_ok), "{:?}", application.outcomes);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    application.source.check_out();
    let mut connection =
        application.source.next_ready().expect("it is idle").1.expect("it is well");
    connection.reauthenticate().expect("there is a new token");
    drop(connection);
    application.ping(1);
    assert!(application.outcomes.iter().all(Result::is_ok), "{:?}", application.outcomes);
    let snapshot = application.source.pool().snapshot();
    assert_eq!((calls.load(Ordering::Relaxed), snapshot.connections_created), (2, 1));
}

/// Another thread sees to its own timeout meanwhile, and everything that was under way goes on.
#[test]
fn late_by_a_second_it_goes_on() {
    let endpoint = tls(Settings::default());
    let mut application = Application::new(&with(&endpoint.uri(), "maxPoolSize=2"), 0);
    application.ping(1);
    // In the middle of a command, whose reply takes its time, and on the way to another.
    set(&endpoint, at(Fault::Drip { bytes: 1, every: Duration::from_millis(10) }, "ping"));
    let requests = [(); 2].map(|()| application.source.check_out());
    application.round();
    assert!(application.outcomes.len() < 3 && requests[0] < requests[1]);
    late_by_a_second(&application);
    while application.outcomes.len() < 3 {
        application.round();
    }
    assert!(application.outcomes.iter().all(Result::is_ok), "{:?}", application.outcomes);
    assert_eq!(application.source.pool().snapshot().connections_created, 2);
}

/// The same where the lateness is more than a connection may take to be opened.
#[test]
fn late_by_a_second_a_limit_is_over() {
    let endpoint = tls(Settings::default());
    set(&endpoint, at(Fault::Stall, "isMaster"));
    let uri = with(&endpoint.uri(), "maxPoolSize=1&connectTimeoutMS=200");
    let mut application = Application::new(&uri, 0);
    application.source.check_out();
    application.round();
    late_by_a_second(&application);
    while application.refused.is_empty() {
        application.round();
    }
    assert_eq!(application.refused, ["ConnectionError"]);
    assert_eq!(application.source.pool().snapshot().total, 0);
}

/// The loop is not turned while this thread waits for another one, for which a second passes.
fn late_by_a_second(application: &Application) {
    let pool = application.source.pool().clone();
    let deadline = Instant::now() + Duration::from_secs(1);
    let waiting = thread::spawn(move || pool.check_out_before(deadline).map(drop));
    let outcome = waiting.join().expect("no panic");
    // What is idle may be had without the loop.
    assert!(outcome.is_err_and(|error| error.is_timeout()) && Instant::now() >= deadline);
}

#[test]
fn an_interrupt_and_a_close_in_the_middle_of_everything() {
    let endpoint = tls(Settings::default());
    set(&endpoint, at(Fault::Stall, "ping"));
    let options = "maxPoolSize=100&maxConnecting=100";
    let mut application = Application::new(&with(&endpoint.uri(), options), 0);
    let first = [(); 20].map(|()| application.source.check_out());
    while application.busy.len() < first.len() {
        application.round();
    }
    // The sockets are readable then, and the loop hears of it.
    let pool = application.source.pool().clone();
    pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(1)), true);
    while application.outcomes.len() < first.len() {
        application.round();
    }
    let is_interrupted = |outcome: &Result<(), _>| matches!(outcome, Err(error @ OperationError::Interrupted(_)) if error.is_retryable());
    assert!(application.outcomes.iter().all(is_interrupted), "{:?}", application.outcomes);
    pool.ready();
    for _ in 0..20 {
        application.source.check_out();
    }
    while application.busy.is_empty() {
        application.round();
    }
    let asked = [(); 100].map(|()| application.source.check_out());
    drop(application);
    assert_eq!(asked.len(), 100);
    pool.close();
    assert_eq!(pool.snapshot().total, 0);
    is_gone(&endpoint);
}

/// The endpoint's ends go when it has noticed.
fn is_gone(endpoint: &Endpoint) {
    while endpoint.with(|server, _| server.statistics()).open > 0 {
        thread::yield_now();
    }
}
