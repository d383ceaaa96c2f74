//! The pool on tokio at work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cenote_tokio::{Client, Pool};
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Trouble;
use super::arguments::Plan;
use super::chaos::Chaos;
use super::progress::{Goal, Progress};
use super::record::Record;
use super::resources::{self, Meter};
use super::seen::Seen;
use super::server::Server;
use super::summary::{Left, Stopped, Summary, Told};
use super::tally::Tally;
use super::timeline::Timeline;
use super::work::work;
use crate::command::signals::Signals;
use crate::soak::sockets;
use crate::soak::witness::{Ear, Witness};

/// More than anything has to wait for at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a thread that helped out waits for more to do.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Between two looks at how it goes.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn run(plan: &Plan) -> Result<Summary, Trouble> {
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        // Threads that have nothing to do any more are not to be there when they are counted.
        .thread_keep_alive(KEEP_ALIVE)
        .build()?;
    let result = runtime.block_on(play(plan));
    // What hangs has been told, and is not waited for.
    runtime.shutdown_background();
    result
}

async fn play(plan: &Plan) -> Result<Summary, Trouble> {
    let mut signals = Signals::expect()?;
    let mut meter = Meter::begin()?;
    let told = |source| {
        let path = plan.events.clone().unwrap_or_default();
        Trouble::Events { path, source }
    };
    let (witness, ear) = Witness::new(plan.events.as_deref()).map_err(told)?;
    let record = Record::begin(plan)?;
    let server = Server::start(plan)?;
    let timeline = Arc::new(Timeline::new());
    let seen = Arc::new(Seen::new(Arc::clone(&timeline)));
    server.look(&mut signals).await?;
    let client = client(&server, ear, &seen, record.as_ref())?;
    let pool = client.pool(&server.address).cloned();
    let pool = pool.unwrap_or_else(|| unreachable!("the client has it from the same text"));
    let tally = Arc::new(Tally::new(plan.operations, Arc::clone(&timeline)));
    let goal = Goal { time: plan.time, operations: plan.operations };
    let progress = Arc::new(Progress::new(goal));

    progress.say(&format!(
        "{} tasks at work on {} for {goal}; Ctrl-C stops them",
        plan.tasks,
        pool.address()
    ));
    let began = timeline.now();
    let chaos = server.endpoint.iter().zip(&server.proxy).map(|(endpoint, proxy)| Chaos {
        endpoint: Arc::clone(endpoint),
        proxy: Arc::clone(proxy),
        timeline: Arc::clone(&timeline),
        progress: Arc::clone(&progress),
        is_over: Arc::clone(&tally.is_over),
        end: plan.time.map(|time| began + time),
    });
    let helpers: JoinSet<_> = chaos.map(Chaos::reign).collect();
    let mut workers: JoinSet<_> = (0..plan.tasks)
        .map(|task| work(client.clone(), server.selector(), Arc::clone(&tally), task))
        .collect();

    let scene = Scene { plan, pool: &pool, tally: &tally, progress: &progress, witness: &witness };
    let stopped = scene.play_on(&mut workers, &mut signals, &mut meter).await?;
    let memory = resources::memory()?;
    tally.is_over.store(true, Ordering::Relaxed);
    let worked = timeline.now().saturating_sub(began);
    let hanging = finish(&mut workers, &mut signals).await?;
    helpers.join_all().await;
    progress.end();
    let closed = timeout(PATIENCE, client.close()).await.is_ok();
    let (connections, max_pool_size) = (pool.snapshot().total, pool.snapshot().max_pool_size);
    pool.end_recording().await?;
    drop((pool, client));
    let sockets = sockets::settle(&server.address, PATIENCE).await?;
    let address = server.address.clone();
    let embedded = server.endpoint.is_some();
    drop((server, progress));
    let recorded = record.map(Record::finish).transpose()?;
    let report = witness.report().map_err(told)?;
    let growth = meter.end(memory, PATIENCE).await?;
    Ok(Summary::new(Told {
        plan,
        server: address.to_string(),
        embedded,
        max_pool_size,
        stopped,
        worked,
        tally: &tally,
        connections: seen.connections(),
        incidents: timeline.incidents(),
        left: Left { tasks: hanging, closed, connections, sockets },
        report,
        growth,
        recorded,
    }))
}

/// What there is while the work goes on.
struct Scene<'a> {
    plan: &'a Plan,
    pool: &'a Pool,
    tally: &'a Tally,
    progress: &'a Progress,
    witness: &'a Witness,
}

impl Scene<'_> {
    /// Shows how it goes, until there is a reason to stop.
    async fn play_on(
        &self,
        workers: &mut JoinSet<()>,
        signals: &mut Signals,
        meter: &mut Meter,
    ) -> Result<Stopped, Trouble> {
        let began = self.tally.timeline.now();
        let time = sleep(self.plan.time.unwrap_or(Duration::MAX));
        tokio::pin!(time);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = &mut time => return Ok(Stopped::Time),
                () = signals.come() => return Ok(Stopped::Signal),
                ended = workers.join_next() => match ended {
                    Some(ended) => ended.map_err(io::Error::from)?,
                    None => return Ok(Stopped::Operations),
                },
                _ = ticks.tick() => {
                    let now = self.tally.timeline.now();
                    let counts = self.tally.counts();
                    self.progress.show(now, counts, &self.pool.snapshot());
                    meter.look(self.plan.part_done(now.saturating_sub(began), counts.asked))?;
                    if self.witness.has_gone() {
                        // Its report says why.
                        return Ok(Stopped::Signal);
                    }
                }
            }
        }
    }
}

/// It watches the server, and makes the pool ready and clears it.
fn client(
    server: &Server,
    ear: Ear,
    seen: &Arc<Seen>,
    record: Option<&Record>,
) -> Result<Client, Trouble> {
    let (seen, address) = (Arc::clone(seen), server.address.clone());
    let mut builder = Client::builder(&server.uri)?.on_event(move |event| {
        // Other hosts have pools, too, which have nothing to do.
        if *event.address == address {
            seen.hear(&event.event);
            ear.hear(event);
        }
    });
    if let Some(record) = record {
        let (trace, address) = (record.trace().to_owned(), server.address.clone());
        builder = builder.prepare_pools(move |pool| {
            if *pool.address() == address { pool.record(trace.as_path()) } else { pool }
        });
    }
    Ok(builder.build()?)
}

/// Waits for those who work, but not for ever, and not if somebody insists. Says how many hang.
async fn finish(workers: &mut JoinSet<()>, signals: &mut Signals) -> Result<usize, Trouble> {
    let all = async {
        while let Some(ended) = workers.join_next().await {
            ended?;
        }
        io::Result::Ok(())
    };
    tokio::select! {
        ended = all => ended?,
        () = sleep(PATIENCE) => {}
        () = signals.come() => {}
    }
    let hanging = workers.len();
    workers.shutdown().await;
    Ok(hanging)
}
