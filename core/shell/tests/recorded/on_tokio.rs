//! A random run of the tokio shell in virtual time.

use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_replay::random::SplitMix;
use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, Target, Tokio};
use tokio::runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::recorded::modes::{
    Order, RandomConnector, SECRET, Socket, UseEnd, gone, options, order, reset, use_end,
};

/// Time costs nothing here.
const UNIT: Duration = Duration::from_millis(1);

impl Connector<Tokio> for RandomConnector {
    type Connection = Socket;
    type Error = ConnectionError;

    async fn connect(
        &self,
        _: Target,
        progress: HandshakeReporter,
    ) -> Result<Socket, ConnectionError> {
        let plan = self.plan();
        sleep(plan.delay).await;
        if let Some(service) = plan.service {
            progress.handshaken(service);
        }
        plan.outcome
    }

    fn fault(&self, socket: &Socket) -> Option<ConnectionError> {
        Self::fault(socket)
    }
}

/// Lets five tasks and a controlling task use a pool that `build` makes.
pub(crate) fn run(
    seed: u64,
    build: impl FnOnce(Builder<RandomConnector>) -> Builder<RandomConnector>,
    end: impl AsyncFnOnce(&Pool<RandomConnector>),
) {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let address = "db.example.com".parse().expect("an address");
        let options = options(seed, UNIT);
        let connector = RandomConnector::new(seed, &options, UNIT);
        let pool = build(Builder::new(address, connector).replace_options(options)).build();
        let pool = pool.expect("a pool");
        let tasks = (1..=5).map(|number| tokio::spawn(work(pool.clone(), seed ^ number << 32)));
        let tasks: Vec<_> = tasks.collect();
        govern(&pool, SplitMix(seed ^ 0xAB)).await;
        for task in tasks {
            task.await.expect("no panic");
        }
        pool.close().await;
        end(&pool).await;
    });
}

/// One of the users of the pool.
async fn work(pool: Pool<RandomConnector>, seed: u64) {
    let mut random = SplitMix(seed);
    for _ in 0..12 {
        sleep(UNIT * random.below(30) as u32).await;
        let patience = UNIT * (1 + random.below(50) as u32);
        let request = match random.below(4) {
            0 => pool.try_check_out().ok().flatten(),
            1 => pool.check_out_before(Instant::now() + patience).await.ok(),
            // Gives up in the middle.
            2 => timeout(patience, pool.check_out()).await.ok().and_then(Result::ok),
            _ => pool.check_out().await.ok(),
        };
        let Some(mut connection) = request else { continue };
        assert_eq!(connection.secret, SECRET);
        sleep(UNIT * random.below(25) as u32).await;
        match use_end(&mut random) {
            UseEnd::Breaks => connection.broken = true,
            UseEnd::Marks => connection.mark_errored(reset()),
            UseEnd::Nothing => {}
        }
    }
}

/// Marks the pool ready, clears it, and changes options.
async fn govern(pool: &Pool<RandomConnector>, mut random: SplitMix) {
    pool.ready();
    for _ in 0..10 {
        sleep(UNIT * (10 + random.below(60) as u32)).await;
        match order(&mut random, &pool.options(), UNIT) {
            Order::Clear { interrupt, pause } => {
                pool.clear(gone(), interrupt);
                sleep(pause).await;
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
