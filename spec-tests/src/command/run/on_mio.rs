//! The pool on mio at work: each task is a thread.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cenote_mio::{Client, Pool};
use tokio::runtime;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{JoinSet, spawn_blocking};
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
use super::work::work_blocking;
use crate::command::signals::Signals;
use crate::soak::on_mio::spawn;
use crate::soak::sockets;
use crate::soak::witness::{Ear, Witness};

/// More than anything has to wait for at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a thread that helped out waits for more to do.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Between two looks at how it goes.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn run(plan: &Plan) -> Result<Summary, Trouble> {
    // For signals, time and the troubles of the server. The pool knows nothing of it.
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
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
        "{} threads at work on {} for {goal}; Ctrl-C stops them",
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
    let mut workers = Threads::start("cenote-worker", plan.tasks, |task| {
        let (client, selector) = (client.clone(), server.selector());
        let tally = Arc::clone(&tally);
        move || work_blocking(&client, &selector, &tally, task)
    })?;

    let scene = Scene { plan, pool: &pool, tally: &tally, progress: &progress, witness: &witness };
    let stopped = scene.play_on(&mut workers, &mut signals, &mut meter).await?;
    let memory = resources::memory()?;
    tally.is_over.store(true, Ordering::Relaxed);
    let worked = timeline.now().saturating_sub(began);
    let hanging = workers.finish(&mut signals).await?;
    helpers.join_all().await;
    progress.end();
    let (closing, recorded) = (client.clone(), pool.clone());
    let closed = spawn_blocking(move || {
        let closed = closing.close_before(Instant::now() + PATIENCE).is_ok();
        recorded.end_recording().map(|()| closed)
    });
    let closed = closed.await.map_err(io::Error::from)??;
    let (connections, max_pool_size) = (pool.snapshot().total, pool.snapshot().max_pool_size);
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
        workers: &mut Threads,
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
                () = workers.end() => return Ok(Stopped::Operations),
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

/// Threads that end by themselves.
struct Threads {
    threads: Vec<JoinHandle<()>>,
    /// Says when the last one has ended: each of them has the other end.
    alive: Receiver<Infallible>,
}

impl Threads {
    fn start<W: FnOnce() + Send + 'static>(
        name: &str,
        count: u32,
        work: impl Fn(u32) -> W,
    ) -> io::Result<Self> {
        let (alive, ended) = channel(1);
        let start = |number| {
            let (work, alive) = (work(number), alive.clone());
            spawn(name, move || {
                work();
                drop(alive);
            })
        };
        let threads = (0..count).map(start).collect::<Result<_, _>>()?;
        Ok(Self { threads, alive: ended })
    }

    /// Until all of them have come to their end.
    async fn end(&mut self) {
        while self.alive.recv().await.is_some() {}
    }

    /// Waits for them, but not for ever, and not if somebody insists. Says how many hang.
    async fn finish(mut self, signals: &mut Signals) -> io::Result<usize> {
        tokio::select! {
            ended = timeout(PATIENCE, self.end()) => {
                if ended.is_ok() {
                    return join(self.threads).map(|()| 0);
                }
            }
            () = signals.come() => {}
        }
        let (ended, hanging): (Vec<_>, Vec<_>) =
            self.threads.into_iter().partition(JoinHandle::is_finished);
        join(ended)?;
        Ok(hanging.len())
    }
}

/// None of them has more to do.
fn join(threads: Vec<JoinHandle<()>>) -> io::Result<()> {
    let panicked = |_| io::Error::other("a thread panicked");
    threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked))
}
