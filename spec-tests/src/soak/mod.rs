//! Many tasks on the tokio shell with real sockets, while the server has one fault after another; and
//! as many threads [on the mio shell](on_mio).
//!
//! A thousand tasks share fifty connections, over TLS, logged in, compressed, to the endpoint in the
//! same process. They run commands, exchange messages and bytes, give up in the middle, and hold on
//! for too long, while the endpoint restarts, stalls, resets and garbles. A stand-in for a monitor
//! pings, and calls ready and clear. In the end no task may hang, the [events](cenote_check) must keep
//! every rule, and the operating system must count no more sockets than before.

pub(crate) mod chance;
pub(crate) mod event_checker;
pub(crate) mod monitor;
pub mod on_mio;
mod outcome;
pub mod sockets;
pub(crate) mod trouble;
mod work;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cenote_endpoint::{Endpoint, ListenOptions, ScramSettings, Settings, StartError, User};
use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
use cenote_tokio::Pool;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use self::chance::Chance;
use self::event_checker::{EventChecker, EventSender};
use self::monitor::Monitor;
use self::work::{Tally, Worker};

pub use self::outcome::{Outcome, WorkerKind};
pub use self::work::Counts;

/// The parameters of a soak.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long the tasks work and the server has faults.
    pub time: Duration,
    /// The number of tasks.
    pub tasks: usize,
    /// `maxPoolSize`.
    pub connections: u32,
    /// The seed of all random numbers. The scheduling of threads is not determined by it.
    pub seed: u64,
    /// The file for the events, one per line.
    pub events: Option<PathBuf>,
    /// The file for the trace of the pool.
    pub trace: Option<PathBuf>,
}

/// Longer than any wait may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// What stands in for a monitor: its limits, and how long it rests.
const MONITOR: &str = "connectTimeoutMS=1000&socketTimeoutMS=300";
const PAUSE: Duration = Duration::from_millis(20);

/// Works, and says what came of it. Needs a runtime with time and I/O.
///
/// # Errors
///
/// What keeps it from beginning: no endpoint, no file for the events or the trace. A trace that cannot
/// be written to its end.
pub async fn run(plan: &Plan) -> Result<Outcome, Box<dyn Error>> {
    let endpoint = Arc::new(server(Some(plan.seed))?);
    let (checker, ear) = EventChecker::new(plan.events.as_deref())?;
    let pool: Pool = pool(&endpoint, plan, ear)?;
    let began = Instant::now();
    let is_over = Arc::new(AtomicBool::new(false));

    let monitor = Monitor::new(&format!("{}&{MONITOR}", endpoint.uri()), PAUSE)?;
    let monitor = {
        let (pool, is_over) = (pool.clone(), Arc::clone(&is_over));
        let tell = move |seen| match seen {
            Ok(()) => pool.ready(),
            Err((error, interrupt)) => pool.clear(error, interrupt),
        };
        spawn_blocking(move || monitor.watch(&is_over, tell))
    };
    let chance = Chance::new(plan.seed);
    let trouble = trouble::make(Arc::clone(&endpoint), chance.of(0), Arc::clone(&is_over));
    let trouble = tokio::spawn(trouble);
    let tally = Arc::new(Tally::default());
    let workers: Vec<_> = (1..=plan.tasks as u64)
        .map(|number| Worker {
            pool: pool.clone(),
            chance: chance.of(number),
            tally: Arc::clone(&tally),
            is_over: Arc::clone(&is_over),
        })
        .map(|worker| tokio::spawn(worker.work()))
        .collect();

    sleep(plan.time).await;
    is_over.store(true, Ordering::Relaxed);
    let troubles = trouble.await?;
    let worked = began.elapsed();
    let mut hanging = 0;
    for mut worker in workers {
        match timeout(PATIENCE, &mut worker).await {
            Ok(outcome) => outcome?,
            Err(_) => {
                worker.abort();
                hanging += 1;
            }
        }
    }
    monitor.await?;
    let closed = timeout(PATIENCE, pool.close()).await.is_ok();
    let left = pool.snapshot().total;
    pool.end_recording().await?;
    drop(pool);
    let sockets = sockets::settle([&endpoint.address()], PATIENCE).await?;
    Ok(Outcome {
        plan: plan.clone(),
        worker_kind: WorkerKind::Tasks,
        worked,
        troubles,
        counts: tally.counts(),
        hanging,
        closed,
        connections: left,
        sockets,
        threads: None,
        report: checker.report()?,
    })
}

/// A mock server in this process, with TLS and one user and required authentication. Without a seed it
/// draws one from the operating system.
pub(crate) fn server(seed: Option<u64>) -> Result<Endpoint, StartError> {
    let settings = Settings {
        seed,
        auth: true,
        users: vec![User::new("app", "pencil")],
        // The least that clients accept (AU-33): a build without optimisation has work to do, too.
        scram: ScramSettings { sha256_iterations: 4096, ..ScramSettings::default() },
        ..Settings::default()
    };
    Endpoint::start(settings, ListenOptions::with_tls())
}

/// What they work on, of whichever shell.
fn pool<P: BuiltPool<Connector: FromUri>>(
    endpoint: &Endpoint,
    plan: &Plan,
    ear: EventSender,
) -> Result<P, BuildError> {
    let builder = Builder::from_uri(&uri(endpoint, plan.connections))?;
    let mut builder = builder.on_event(move |event| ear.hear(event)).on_failure(monitor::heed);
    if let Some(path) = &plan.trace {
        builder = builder.record(path.as_path());
    }
    builder.build()
}

/// With limits that are reached.
fn uri(endpoint: &Endpoint, connections: u32) -> String {
    let options = "compressors=zstd&minPoolSize=2&maxConnecting=4&maxIdleTimeMS=500\
                   &waitQueueTimeoutMS=3000&connectTimeoutMS=2000&socketTimeoutMS=1000";
    format!("{}&{options}&maxPoolSize={connections}", endpoint.uri())
}
