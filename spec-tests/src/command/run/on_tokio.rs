//! The pool on tokio at work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cenote_tokio::Pool;
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Trouble;
use super::arguments::Plan;
use super::chaos::Chaos;
use super::progress::{Goal, Progress};
use super::seen::Seen;
use super::server::Server;
use super::summary::{Left, Stopped, Summary, Told};
use super::tally::Tally;
use super::timeline::Timeline;
use super::work::work;
use crate::command::signals::Signals;
use crate::soak::monitor::{self, Monitor};
use crate::soak::sockets;
use crate::soak::witness::{Ear, Witness};

/// More than anything has to wait for at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at how it goes.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn run(plan: &Plan) -> Result<Summary, Trouble> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(play(plan));
    // What hangs has been told, and is not waited for.
    runtime.shutdown_background();
    result
}

async fn play(plan: &Plan) -> Result<Summary, Trouble> {
    let mut signals = Signals::expect()?;
    let told = |source| {
        let path = plan.events.clone().unwrap_or_default();
        Trouble::Events { path, source }
    };
    let (witness, ear) = Witness::new(plan.events.as_deref()).map_err(told)?;
    let server = Server::start(&plan.target)?;
    let timeline = Arc::new(Timeline::new());
    let seen = Arc::new(Seen::new(Arc::clone(&timeline)));
    let pool = pool(&server, ear, &seen)?;
    let tally = Arc::new(Tally::new(plan.operations, Arc::clone(&timeline)));
    let goal = Goal { time: plan.time, operations: plan.operations };
    let progress = Arc::new(Progress::new(goal));

    let monitor = watch(&server, &pool, &tally, &mut signals).await?;
    progress.say(&format!(
        "{} tasks at work on {} for {goal}; Ctrl-C stops them",
        plan.tasks,
        pool.address()
    ));
    let began = timeline.now();
    let chaos = server.endpoint.iter().filter(|_| plan.chaos).map(|endpoint| Chaos {
        endpoint: Arc::clone(endpoint),
        timeline: Arc::clone(&timeline),
        progress: Arc::clone(&progress),
        is_over: Arc::clone(&tally.is_over),
        end: plan.time.map(|time| began + time),
    });
    let helpers: JoinSet<_> = chaos.map(Chaos::reign).collect();
    let mut workers: JoinSet<_> =
        (0..plan.tasks).map(|task| work(pool.clone(), Arc::clone(&tally), task)).collect();

    let scene = Scene { plan, pool: &pool, tally: &tally, progress: &progress, witness: &witness };
    let stopped = scene.play_on(&mut workers, &mut signals).await?;
    tally.is_over.store(true, Ordering::Relaxed);
    let worked = timeline.now().saturating_sub(began);
    let hanging = finish(&mut workers, &mut signals).await?;
    helpers.join_all().await;
    if let Some(monitor) = monitor {
        monitor.abort();
        // Cancelled, as it was told.
        let _ = monitor.await;
    }
    progress.end();
    let closed = timeout(PATIENCE, pool.close()).await.is_ok();
    let (address, connections) = (pool.address().clone(), pool.snapshot().total);
    let max_pool_size = pool.snapshot().max_pool_size;
    drop(pool);
    let sockets = sockets::settle(&address, PATIENCE).await?;
    let embedded = server.endpoint.is_some();
    drop(server);
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
        report: witness.report().map_err(told)?,
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
    ) -> Result<Stopped, Trouble> {
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
                    self.progress.show(now, self.tally.counts(), &self.pool.snapshot());
                    if self.witness.has_gone() {
                        // Its report says why.
                        return Ok(Stopped::Signal);
                    }
                }
            }
        }
    }
}

fn pool(server: &Server, ear: Ear, seen: &Arc<Seen>) -> Result<Pool, Trouble> {
    let seen = Arc::clone(seen);
    let builder = Pool::builder(&server.uri)?.on_failure(monitor::heed).on_event(move |event| {
        seen.hear(&event.event);
        ear.hear(event);
    });
    Ok(builder.build()?)
}

/// Has the server watched, once it has answered.
async fn watch(
    server: &Server,
    pool: &Pool,
    tally: &Tally,
    signals: &mut Signals,
) -> Result<Option<tokio::task::JoinHandle<()>>, Trouble> {
    if pool.options().load_balanced == Some(true) {
        // Nobody watches a load balancer (LB-20).
        pool.ready();
        return Ok(None);
    }
    let monitor = Monitor::new(&server.monitor, server.pause)?;
    let name = || pool.address().to_string();
    tokio::select! {
        answer = monitor.ping() => {
            answer.map_err(|source| Trouble::Unreachable { server: name(), source })?;
        }
        () = signals.come() => return Err(Trouble::Stopped { server: name() }),
    }
    pool.ready();
    Ok(Some(tokio::spawn(monitor.watch(pool.clone(), Arc::clone(&tally.is_over)))))
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
