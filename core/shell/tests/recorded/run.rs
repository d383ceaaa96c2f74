//! A random run: five threads and a controlling one, and time as it is.

use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{Maintenance, PoolOptions, ServiceId};
use cenote_replay::random::SplitMix;
use cenote_shell::builder::Builder;
use cenote_shell::connection::{Connector, HandshakeReporter, Target};
use cenote_shell::runtime::Runtime;
use cenote_shell::trace::Recording;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime};
use crate::pool::world::failure;

/// What no trace may hold.
pub(crate) const SECRET: &str = "pencil, which is a secret";

/// Long enough for threads to meet each other.
const UNIT: Duration = Duration::from_micros(20);

/// Opens connections after a while, or not.
pub(crate) struct RandomConnector {
    random: Mutex<SplitMix>,
    is_balanced: bool,
}

/// A payload like any other.
pub(crate) struct Socket {
    secret: String,
    broken: bool,
}

impl<R: Runtime> Connector<R> for RandomConnector {
    type Connection = Socket;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target<R>,
        progress: HandshakeReporter,
    ) -> Result<Socket, ConnectionError> {
        let [delay, fate, service] = {
            let mut random = self.random.lock().expect("no panic");
            [40, 6, 3].map(|below| random.below(below))
        };
        target.runtime.sleep_until(R::now() + UNIT * delay as u32).await;
        if self.is_balanced {
            progress.handshaken(ServiceId([service as u8; 12]));
        }
        if fate == 0 {
            Err(failure())
        } else {
            Ok(Socket { secret: SECRET.to_owned(), broken: false })
        }
    }

    fn fault(&self, socket: &Socket) -> Option<ConnectionError> {
        socket.broken.then(failure)
    }
}

/// Until the recording is written.
pub(crate) fn run<R: TestRuntime>(seed: u64, recording: Recording) {
    let options = options(seed);
    let is_balanced = options.load_balanced.unwrap_or(false);
    let connector = RandomConnector { random: Mutex::new(SplitMix(seed ^ 0xC0)), is_balanced };
    let builder = Builder::new("db.example.com".parse().expect("an address"), connector);
    let builder = builder.replace_options(options).record(recording);
    let pool: R::Pool<RandomConnector> = builder.build().expect("a pool");
    thread::scope(|scope| {
        for number in 1..=5 {
            let pool = &pool;
            scope.spawn(move || work::<R>(pool, SplitMix(seed ^ number << 32)));
        }
        govern::<R>(&pool, SplitMix(seed ^ 0xAB));
    });
    pool.close();
    pool.end_recording().expect("writing to memory succeeds");
}

fn options(seed: u64) -> PoolOptions {
    let random = &mut SplitMix(seed);
    let mut options = PoolOptions::default()
        .with_max_pool_size(1 + random.below(4) as u32)
        .with_max_connecting(1 + random.below(2) as u32);
    if random.one_in(2) {
        options = options.with_wait_queue_timeout(UNIT * (5 + random.below(60) as u32));
    }
    if random.one_in(2) {
        options = options.with_max_idle_time(UNIT * (20 + random.below(60) as u32));
    }
    if random.one_in(3) {
        options = options.with_min_pool_size(1);
    }
    if random.one_in(3) {
        options = options.with_maintenance(Maintenance::Never);
    }
    if random.one_in(4) {
        options = options.with_load_balanced(true);
    }
    options
}

/// One of the users of the pool.
fn work<R: TestRuntime>(pool: &R::Pool<RandomConnector>, mut random: SplitMix) {
    for _ in 0..12 {
        sleep(UNIT * random.below(30) as u32);
        let patience = UNIT * (1 + random.below(50) as u32);
        let answer = match random.below(4) {
            0 => pool.try_check_out().ok().flatten(),
            1 => pool.check_out_before(Instant::now() + patience).ok(),
            2 => R::check_out_or_give_up(pool, patience).and_then(Result::ok),
            _ => pool.check_out().ok(),
        };
        let Some(mut connection) = answer else { continue };
        assert_eq!(connection.secret, SECRET);
        sleep(UNIT * random.below(25) as u32);
        match random.below(8) {
            0 => connection.broken = true,
            1 => connection.mark_errored(failure()),
            _ => {}
        }
    }
}

/// Marks the pool ready, clears it, and changes options.
fn govern<R: TestRuntime>(pool: &R::Pool<RandomConnector>, mut random: SplitMix) {
    let is_balanced = pool.options().load_balanced.unwrap_or(false);
    pool.ready();
    for _ in 0..10 {
        sleep(UNIT * (10 + random.below(60) as u32));
        match random.below(4) {
            0 if is_balanced => {
                pool.clear_service(failure(), ServiceId([random.below(3) as u8; 12]));
            }
            0 => {
                pool.clear(failure(), random.one_in(2));
                sleep(UNIT * random.below(20) as u32);
                pool.ready();
            }
            1 => {
                let most = 1 + random.below(5) as u32;
                let options = pool.options().with_max_pool_size(most);
                pool.set_options(options).expect("good options");
            }
            _ => {}
        }
    }
    pool.ready();
}
