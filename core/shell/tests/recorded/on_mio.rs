//! A random run of the mio shell: threads, and time as it is. In every other run the pool has a thread
//! of its own; otherwise it is in the loop of a thread that checks out, too, and sometimes gives up.

use std::io::ErrorKind;
use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, PoolError};
use cenote_mio::{
    Builder, Connector, EventLoop, HandshakeReporter, Pool, PoolSource, PooledConnection, Target,
};
use cenote_replay::random::SplitMix;
use mio::{Events, Poll, Token, Waker};

use crate::recorded::modes::{
    Order, RandomConnector, SECRET, Socket, UseEnd, gone, options, order, reset, use_end,
};

/// Long enough for threads to meet each other.
const UNIT: Duration = Duration::from_micros(20);

const WAKER: Token = Token(0);

impl Connector<EventLoop> for RandomConnector {
    type Connection = Socket;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target,
        progress: HandshakeReporter,
    ) -> Result<Socket, ConnectionError> {
        let plan = self.plan();
        target.runtime.sleep_until(Instant::now() + plan.delay).await;
        if let Some(service) = plan.service {
            progress.handshaken(service);
        }
        plan.outcome
    }

    fn fault(&self, socket: &Socket) -> Option<ConnectionError> {
        Self::fault(socket)
    }
}

/// Lets threads and a controlling thread use a pool that `build` makes.
pub(crate) fn run(
    seed: u64,
    build: impl FnOnce(Builder<RandomConnector>) -> Builder<RandomConnector>,
    end: impl FnOnce(&Pool<RandomConnector>),
) {
    let address = "db.example.com".parse().expect("an address");
    let options = options(seed, UNIT);
    let connector = RandomConnector::new(seed, &options, UNIT);
    let builder = build(Builder::new(address, connector).replace_options(options));
    let pool = if seed % 2 == 0 {
        let pool = builder.build().expect("a pool");
        thread::scope(|scope| {
            for number in 1..=5 {
                let pool = &pool;
                scope.spawn(move || work(pool, seed ^ number << 32));
            }
            govern(&pool, SplitMix(seed ^ 0xAB));
        });
        pool
    } else {
        embedded(seed, builder)
    };
    pool.close();
    end(&pool);
}

/// One of the users of the pool.
fn work(pool: &Pool<RandomConnector>, seed: u64) {
    let mut random = SplitMix(seed);
    for _ in 0..12 {
        sleep(UNIT * random.below(30) as u32);
        let patience = UNIT * (1 + random.below(50) as u32);
        let request = match random.below(3) {
            0 => pool.try_check_out().ok().flatten(),
            1 => pool.check_out_before(Instant::now() + patience).ok(),
            _ => pool.check_out().ok(),
        };
        let Some(connection) = request else { continue };
        sleep(UNIT * random.below(25) as u32);
        give_back(connection, &mut random);
    }
}

fn give_back(mut connection: PooledConnection<RandomConnector>, random: &mut SplitMix) {
    assert_eq!(connection.secret, SECRET);
    match use_end(random) {
        UseEnd::Breaks => connection.broken = true,
        UseEnd::Marks => connection.mark_errored(reset()),
        UseEnd::Nothing => {}
    }
}

/// Marks the pool ready, clears it, and changes options.
fn govern(pool: &Pool<RandomConnector>, mut random: SplitMix) {
    pool.ready();
    for _ in 0..10 {
        sleep(UNIT * (10 + random.below(60) as u32));
        match order(&mut random, &pool.options(), UNIT) {
            Order::Clear { interrupt, pause } => {
                pool.clear(gone(), interrupt);
                sleep(pause);
                pool.ready();
            }
            Order::ClearService(service) => pool.clear_service(gone(), service),
            Order::SetMost(most) => {
                pool.set_options(pool.options().with_max_pool_size(most)).expect("good options");
            }
            Order::Nothing => {}
        }
    }
    pool.ready();
}

/// Turns the loop until all threads are done, and asks for connections besides.
fn embedded(seed: u64, builder: Builder<RandomConnector>) -> Pool<RandomConnector> {
    let mut poll = Poll::new().expect("a poll");
    let waker = Arc::new(Waker::new(poll.registry(), WAKER).expect("a waker"));
    let wake = move || drop(waker.wake());
    let source = PoolSource::new(builder, poll.registry(), 1..64, wake).expect("an embedded pool");
    let pool = source.pool().clone();
    let random = SplitMix(seed ^ 0xEB);
    let shared = &pool;
    thread::scope(|scope| {
        // Dropped with this on failure, so that no thread waits for a loop that is not turned.
        let (mut source, mut random) = (source, random);
        let worker = |number: u64| {
            let pool = shared;
            scope.spawn(move || work(pool, seed ^ number << 32))
        };
        let mut threads: Vec<_> = (1..=3).map(worker).collect();
        threads.push(scope.spawn(|| govern(shared, SplitMix(seed ^ 0xAB))));
        let mut asked = Vec::new();
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            turn(&mut poll, &mut source);
            match random.below(4) {
                0 if asked.len() < 4 => asked.push(source.check_out()),
                1 if !asked.is_empty() => {
                    let index = random.below(asked.len() as u64) as usize;
                    source.cancel(asked.swap_remove(index));
                }
                _ => {}
            }
            while let Some((request, outcome)) = source.next_ready() {
                asked.retain(|it| *it != request);
                take(outcome, &mut random);
            }
        }
        source.close();
        turn(&mut poll, &mut source);
    });
    pool
}

fn turn(poll: &mut Poll, source: &mut PoolSource<RandomConnector>) {
    // A thread may have finished meanwhile.
    let timeout = source.next_timeout().unwrap_or(UNIT).min(UNIT);
    let mut events = Events::with_capacity(16);
    match poll.poll(&mut events, Some(timeout)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => panic!("{error}"),
    }
    for event in &events {
        source.handle_event(event);
    }
    source.turn();
}

fn take(outcome: Result<PooledConnection<RandomConnector>, PoolError>, random: &mut SplitMix) {
    if let Ok(connection) = outcome {
        give_back(connection, random);
    }
}
