//! A random run of the tokio shell in virtual time.

use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_simulation::replay::random::SplitMix;
use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, Target, Tokio};
use tokio::runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::moods::{
    Decree, Farewell, Moody, SECRET, Socket, decree, farewell, gone, options, reset,
};

/// Time costs nothing here.
const UNIT: Duration = Duration::from_millis(1);

impl Connector<Tokio> for Moody {
    type Connection = Socket;
    type Error = ConnectionError;

    async fn connect(
        &self,
        _: Target,
        progress: HandshakeReporter,
    ) -> Result<Socket, ConnectionError> {
        let mood = self.mood();
        sleep(mood.delay).await;
        if let Some(service) = mood.service {
            progress.handshaken(service);
        }
        mood.outcome
    }

    fn fault(&self, socket: &Socket) -> Option<ConnectionError> {
        Self::fault(socket)
    }
}

/// Lets five tasks and a controlling task use a pool that `build` makes.
pub(crate) fn run(
    seed: u64,
    build: impl FnOnce(Builder<Moody>) -> Builder<Moody>,
    end: impl AsyncFnOnce(&Pool<Moody>),
) {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let address = "db.example.com".parse().expect("an address");
        let options = options(seed, UNIT);
        let connector = Moody::new(seed, &options, UNIT);
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
async fn work(pool: Pool<Moody>, seed: u64) {
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
        match farewell(&mut random) {
            Farewell::Breaks => connection.broken = true,
            Farewell::Marks => connection.mark_errored(reset()),
            Farewell::Nothing => {}
        }
    }
}

/// Marks the pool ready, clears it, and changes options.
async fn govern(pool: &Pool<Moody>, mut random: SplitMix) {
    pool.ready();
    for _ in 0..10 {
        sleep(UNIT * (10 + random.below(60) as u32)).await;
        match decree(&mut random, &pool.options(), UNIT) {
            Decree::Clear { interrupt, pause } => {
                pool.clear(gone(), interrupt);
                sleep(pause).await;
                pool.ready();
            }
            Decree::ClearService(service) => pool.clear_service(gone(), service),
            Decree::SetMost(most) => {
                pool.set_options(pool.options().with_max_pool_size(most)).expect("good options");
            }
            Decree::Nothing => {}
        }
    }
    pool.ready();
}
