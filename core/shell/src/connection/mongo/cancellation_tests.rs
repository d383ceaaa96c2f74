//! A check-out and an operation on the connection, dropped after each of their polls, with a peer
//! in memory that transfers a few bytes at a time and answers early, in part, or late. Nothing is
//! lost, and a connection in the middle of an exchange is closed.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use bson::rawdoc;
use cenote_check::EventGuard;
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::pool::{Event, PoolOptions};
use cenote_core::wire::{Flags, Frame, Framer, Header, Ids, MessageLimit, MessageWriter};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Semaphore;
use tokio_util::compat::TokioAsyncReadCompatExt;

use super::limit::Limit;
use super::messages::Messages;
use super::test_runtime::TestRuntime;
use super::transport::Transport;
use crate::builder::Builder;
use crate::connection::operation::OperationLimit;
use crate::connection::transport_error::TransportError;
use crate::connection::{Connector, HandshakeReporter, Target};
use crate::pool::Pool;

/// How much of an answer comes before the future is dropped; the rest comes after.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Whole,
    Half,
    None,
}

/// When the connection is established.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Opened {
    /// Before the check-out.
    Before,
    /// While the check-out waits for it.
    InTime,
    /// After the future was dropped.
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Nothing,
    Command,
    /// A request with three replies.
    Exhaust,
    /// A request without a reply.
    Unacknowledged,
    /// Bytes of a lent connection.
    Raw,
}

const WHOLE_ANSWERS: usize = 10_000;

/// Makes connections in memory, `capacity` bytes wide.
struct Memory {
    capacity: usize,
    /// One for each connection that may be opened.
    admitted: Arc<Semaphore>,
    /// One for each byte that peers may answer.
    allowed: Arc<Semaphore>,
    /// Connections whose near end is there.
    alive: Arc<AtomicUsize>,
}

impl Connector<TestRuntime> for Memory {
    type Connection = Messages<TestRuntime>;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target<TestRuntime>,
        _reporter: HandshakeReporter,
    ) -> Result<Self::Connection, ConnectionError> {
        self.admitted.acquire().await.expect("never closed").forget();
        let (near, far) = duplex(self.capacity);
        let (alive, allowed) = (Arc::clone(&self.alive), Arc::clone(&self.allowed));
        alive.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            // Ends when the near end is dropped.
            let _ = serve(far, &allowed).await;
            alive.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(Messages { runtime: target.runtime, stream: near.compat(), transport: Transport::new() })
    }

    fn fault(&self, connection: &Self::Connection) -> Option<ConnectionError> {
        let reason = "in the middle of an exchange";
        (!connection.transport.is_reusable())
            .then(|| ConnectionError::protocol(Stage::Operation, reason))
    }
}

/// Answers as the flags of a request ask for.
async fn serve(mut stream: DuplexStream, allowed: &Semaphore) -> std::io::Result<()> {
    let mut framer = Framer::new(MessageLimit::DEFAULT);
    let mut number = 1000;
    loop {
        let count = stream.read(framer.spare()).await?;
        if count == 0 {
            return Ok(());
        }
        framer.filled(count);
        while let Some(frame) = framer.next_frame().expect("whole messages") {
            let mut answers = Vec::new();
            let mut response_to = frame.header().ids.request_id;
            for flags in answers_to(frame) {
                number += 1;
                let ids = Ids { request_id: number, response_to };
                MessageWriter::new(&mut answers, ids, flags, &rawdoc! { "ok": 1.0 })
                    .finish(MessageLimit::DEFAULT)
                    .expect("small");
                response_to = number;
            }
            for byte in answers {
                allowed.acquire().await.expect("never closed").forget();
                stream.write_all(&[byte]).await?;
            }
        }
    }
}

fn answers_to(request: Frame<'_>) -> Vec<Flags> {
    let flags = request.flags().expect("an OP_MSG");
    match (flags.more_to_come, flags.exhaust_allowed) {
        (true, _) => Vec::new(),
        (false, true) => vec![Flags::MORE_TO_COME, Flags::MORE_TO_COME, Flags::NONE],
        (false, false) => vec![Flags::NONE],
    }
}

async fn act(
    messages: &mut Messages<TestRuntime>,
    operation: Operation,
) -> Result<(), TransportError> {
    let (ping, forever) = (rawdoc! { "ping": 1, "$db": "admin" }, Limit::each(None));
    match operation {
        Operation::Nothing => Ok(()),
        Operation::Command => {
            let (command, limit) = (rawdoc! { "ping": 1 }, OperationLimit::default());
            messages.exchange(&command, "admin", &limit).await.map(drop)
        }
        Operation::Unacknowledged => messages.send(&ping, None, Flags::MORE_TO_COME, forever).await,
        Operation::Exhaust => {
            messages.send(&ping, None, Flags::EXHAUST_ALLOWED, forever).await?;
            while messages.receive_message(forever).await?.flags().more_to_come {}
            Ok(())
        }
        Operation::Raw => {
            let mut bytes = Vec::new();
            let ids = Ids::request(messages.transport.next_request_id());
            MessageWriter::new(&mut bytes, ids, Flags::NONE, &ping)
                .finish(MessageLimit::DEFAULT)
                .expect("small");
            let (_, exchange) = messages.transport.lend()?;
            let stream = messages.stream.get_mut();
            stream.write_all(&bytes).await?;
            let mut header = [0; 16];
            stream.read_exact(&mut header).await?;
            let header = Header::parse(&header, MessageLimit::DEFAULT)?;
            let mut rest = vec![0; header.message_length as usize - 16];
            stream.read_exact(&mut rest).await?;
            exchange.take_back();
            Ok(())
        }
    }
}

/// How far the future came before it was dropped.
#[derive(Default)]
struct Progress {
    has_connection: AtomicBool,
    is_done: AtomicBool,
}

async fn check_out_and_act(
    pool: &Pool<TestRuntime, Memory>,
    operation: Operation,
    progress: &Progress,
) {
    let mut connection = pool.check_out().await.expect("the pool is ready");
    progress.has_connection.store(true, Ordering::Relaxed);
    let acted = connection.run(|messages| async move {
        act(messages, operation).await.map_err(|failure| failure.at(Stage::Operation))
    });
    let outcome: Result<(), OperationError> = acted.await;
    outcome.expect("the peer answers as it should");
    progress.is_done.store(true, Ordering::Relaxed);
}

/// Lets every task go as far as it can.
async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    operation: Operation,
    answer: Answer,
    opened: Opened,
    capacity: usize,
    polls: usize,
}

impl Case {
    /// Whether the future ended within these polls.
    async fn run(self) -> bool {
        let events = Arc::new(Mutex::new(Vec::new()));
        let memory = Memory {
            capacity: self.capacity,
            admitted: Arc::new(Semaphore::new(0)),
            allowed: Arc::new(Semaphore::new(0)),
            alive: Arc::default(),
        };
        let (admitted, allowed) = (Arc::clone(&memory.admitted), Arc::clone(&memory.allowed));
        let alive = Arc::clone(&memory.alive);
        let heard = Arc::clone(&events);
        let guard = EventGuard::without_clock();
        let pool = Builder::<Pool<TestRuntime, Memory>>::new(
            "db.example.com".parse().expect("an address"),
            memory,
        )
        .replace_options(PoolOptions::default().with_max_pool_size(1))
        .on_event(move |told| guard.hear(&told.event, &told.address))
        .on_event(move |event| heard.lock().expect("no panic").push(event.event.clone()))
        .build()
        .expect("good options");
        pool.ready();
        self.prepare(&pool, &admitted).await;
        allowed.add_permits(match self.answer {
            Answer::Whole => WHOLE_ANSWERS,
            Answer::Half => 30,
            Answer::None => 0,
        });

        let progress = Progress::default();
        self.poll(check_out_and_act(&pool, self.operation, &progress)).await;
        // It is dropped. What is late comes now.
        admitted.add_permits(10);
        allowed.add_permits(WHOLE_ANSWERS);
        settle().await;

        let is_done = progress.is_done.load(Ordering::Relaxed);
        let has_connection = progress.has_connection.load(Ordering::Relaxed);
        let snapshot = pool.snapshot();
        assert_eq!(
            (snapshot.in_use, snapshot.pending, snapshot.waiting),
            (0, 0, 0),
            "{self:?}: {snapshot}"
        );
        // An exchange that has begun and not ended costs the connection; nothing else does.
        let was_made = self.polls > 0 || self.opened == Opened::Before;
        let is_fit = was_made && (is_done || !has_connection);
        assert_eq!(snapshot.available, u32::from(is_fit), "{self:?}: {snapshot}");
        assert_eq!(alive.load(Ordering::Relaxed), usize::from(is_fit), "{self:?}");

        // The pool still serves, and replies belong to their commands.
        let again = Progress::default();
        check_out_and_act(&pool, Operation::Command, &again).await;
        pool.close().await;
        settle().await;
        assert_eq!(alive.load(Ordering::Relaxed), 0, "{self:?}");
        check(&events.lock().expect("no panic"), self);
        is_done
    }

    /// Opens the connection if it has to be there before.
    async fn prepare(self, pool: &Pool<TestRuntime, Memory>, admitted: &Semaphore) {
        match self.opened {
            Opened::Before => {
                admitted.add_permits(1);
                drop(pool.check_out().await.expect("the pool is ready"));
            }
            Opened::InTime => admitted.add_permits(1),
            Opened::Late => {}
        }
    }

    async fn poll(self, future: impl Future) {
        let mut future = pin!(future);
        for _ in 0..self.polls {
            if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                return;
            }
            settle().await;
        }
    }
}

/// Each check-out has one outcome, each connection one end.
fn check(events: &[Event<ConnectionError>], case: Case) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut open = Vec::new();
    for event in events {
        *counts.entry(event.name()).or_default() += 1;
        if let Event::ConnectionCreated { connection_id } = event {
            open.push(*connection_id);
        }
        if let Event::ConnectionClosed { connection_id, .. } = event {
            let before = open.len();
            open.retain(|id| id != connection_id);
            assert_eq!(open.len() + 1, before, "{case:?}: {connection_id} was closed once");
        }
    }
    let count = |name| counts.get(name).copied().unwrap_or_default();
    assert!(open.is_empty(), "{case:?}: {open:?}");
    let outcomes = count("ConnectionCheckedOut") + count("ConnectionCheckOutFailed");
    assert_eq!(count("ConnectionCheckOutStarted"), outcomes, "{case:?}");
    assert_eq!(count("ConnectionCheckedOut"), count("ConnectionCheckedIn"), "{case:?}");
}

// CO-19
#[tokio::test(start_paused = true)]
async fn operations_dropped_after_every_poll() {
    let operations = [
        Operation::Nothing,
        Operation::Command,
        Operation::Exhaust,
        Operation::Unacknowledged,
        Operation::Raw,
    ];
    let mut runs = 0;
    for operation in operations {
        for capacity in [1, 16, 4096] {
            for opened in [Opened::Before, Opened::InTime, Opened::Late] {
                for answer in [Answer::Whole, Answer::Half, Answer::None] {
                    runs += run_all(operation, answer, opened, capacity).await;
                }
            }
        }
    }
    assert!(runs > 1000, "{runs}");
}

/// After no poll, after one, … until the future ends, or gets no further.
async fn run_all(operation: Operation, answer: Answer, opened: Opened, capacity: usize) -> usize {
    // Without an answer it gets no further after it has written.
    let bound = match (opened, answer, operation) {
        (Opened::Late, ..) => 4,
        (_, Answer::Whole, _) | (_, _, Operation::Nothing | Operation::Unacknowledged) => 10_000,
        (_, Answer::Half | Answer::None, _) => 60 / capacity.min(60) + 50,
    };
    for polls in 0..bound {
        if (Case { operation, answer, opened, capacity, polls }).run().await {
            return polls;
        }
    }
    assert!(bound < 10_000, "{operation:?} never ends");
    bound
}
