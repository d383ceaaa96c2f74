//! A random run of the tokio shell in virtual time.

use std::sync::Mutex;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{Maintenance, PoolOptions, ServiceId};
use cenote_tokio::{Builder, Connector, Pool, Progress, Target};
use tokio::runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::chance::Chance;

/// What no trace may hold.
pub(crate) const SECRET: &str = "pencil, which is a secret";

/// Opens connections after a while, or not.
pub(crate) struct Moody {
    chance: Mutex<Chance>,
    is_balanced: bool,
}

/// A payload like any other.
pub(crate) struct Socket {
    secret: String,
    broken: bool,
}

impl Connector for Moody {
    type Connection = Socket;

    async fn connect(
        &self,
        _: Target,
        progress: Progress<Self>,
    ) -> Result<Socket, ConnectionError> {
        let (delay, fails, service) = {
            let mut chance = self.chance.lock().expect("no panic");
            (millis(chance.below(40)), chance.one_in(6), chance.below(3))
        };
        sleep(delay).await;
        if self.is_balanced {
            progress.handshaken(ServiceId([service as u8; 12]));
        }
        if fails {
            return Err(ConnectionError::network(Stage::Hello, "in a mood"));
        }
        Ok(Socket { secret: SECRET.to_owned(), broken: false })
    }

    fn fault(&self, socket: &Socket) -> Option<ConnectionError> {
        socket.broken.then(|| ConnectionError::network(Stage::Operation, "broken"))
    }
}

/// Lets five tasks and somebody in charge use a pool, which is made as `build` says.
pub(crate) fn run(
    seed: u64,
    build: impl FnOnce(Builder<Moody>) -> Builder<Moody>,
    end: impl AsyncFnOnce(&Pool<Moody>),
) {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let address = "db.example.com".parse().expect("an address");
        let options = options(&mut Chance::new(seed));
        let chance = Mutex::new(Chance::new(seed ^ 0xC0));
        let is_balanced = options.load_balanced.unwrap_or(false);
        let connector = Moody { chance, is_balanced };
        let pool = build(Builder::new(address, connector).options(options)).build();
        let pool = pool.expect("a pool");
        let tasks = (1..=5).map(|number| tokio::spawn(work(pool.clone(), seed ^ number << 32)));
        let tasks: Vec<_> = tasks.collect();
        govern(&pool, Chance::new(seed ^ 0xAB)).await;
        for task in tasks {
            task.await.expect("no panic");
        }
        pool.close().await;
        end(&pool).await;
    });
}

fn options(chance: &mut Chance) -> PoolOptions {
    let mut options = PoolOptions::default()
        .with_max_pool_size(1 + chance.below(4) as u32)
        .with_max_connecting(1 + chance.below(2) as u32);
    if chance.one_in(2) {
        options = options.with_wait_queue_timeout(millis(5 + chance.below(60)));
    }
    if chance.one_in(2) {
        options = options.with_max_idle_time(millis(20 + chance.below(60)));
    }
    if chance.one_in(3) {
        options = options.with_min_pool_size(1);
    }
    if chance.one_in(3) {
        options = options.with_maintenance(Maintenance::Never);
    }
    if chance.one_in(4) {
        options = options.with_load_balanced(true);
    }
    options
}

/// One of those who use the pool.
async fn work(pool: Pool<Moody>, seed: u64) {
    let mut chance = Chance::new(seed);
    for _ in 0..12 {
        sleep(millis(chance.below(30))).await;
        let patience = millis(1 + chance.below(50));
        let request = match chance.below(4) {
            0 => pool.try_check_out().ok().flatten(),
            1 => pool.check_out_before(Instant::now() + patience).await.ok(),
            // Gives up in the middle.
            2 => timeout(patience, pool.check_out()).await.ok().and_then(Result::ok),
            _ => pool.check_out().await.ok(),
        };
        let Some(mut connection) = request else { continue };
        assert_eq!(connection.secret, SECRET);
        sleep(millis(chance.below(25))).await;
        match chance.below(8) {
            0 => connection.broken = true,
            1 => connection.mark_errored(ConnectionError::network(Stage::Operation, "reset")),
            _ => {}
        }
    }
}

/// Whoever says ready and clear, and changes options.
async fn govern(pool: &Pool<Moody>, mut chance: Chance) {
    pool.ready();
    for _ in 0..10 {
        sleep(millis(10 + chance.below(60))).await;
        let cause = ConnectionError::network(Stage::Operation, "the server went away");
        let is_balanced = pool.options().load_balanced.unwrap_or(false);
        match chance.below(4) {
            0 if is_balanced => pool.clear_service(cause, ServiceId([chance.below(3) as u8; 12])),
            0 => {
                pool.clear(cause, chance.one_in(2));
                sleep(millis(chance.below(20))).await;
                pool.ready();
            }
            1 => {
                let most = 1 + chance.below(5) as u32;
                pool.set_options(pool.options().with_max_pool_size(most)).expect("good options");
            }
            _ => {}
        }
    }
    pool.ready();
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
