//! A client at work, whichever shell it is of.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::client::{ClientError, ClientStatus, Selector, ServerStatus, seen};
use cenote_core::error::OperationError;
use cenote_core::topology::TopologyDescription;
use cenote_shell::client::{BuiltClient, ClientBuilder};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::arguments::Plan;
use super::chaos::Chaos;
use super::deployment::Deployment;
use super::event_checker::{EventChecker, EventSender};
use super::pause::Pause;
use super::progress::Progress;
use super::record::Record;
use super::resources::{self, Meter};
use super::seen::Seen;
use super::server::{Server, is_alone};
use super::summary::{CheckOuts, Events, Left, Lives, Operations, Stopped, Summary};
use super::tally::Tally;
use super::timeline::Timeline;
use crate::command::Failure;
use crate::command::input::at;
use crate::command::signals::Signals;
use crate::sockets;

/// Longer than any wait at the end may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The longest time of an operation that does not hang.
const MOMENT: Duration = Duration::from_secs(1);
/// How long an idle thread of the runtime's blocking pool lives: it must be gone when threads are
/// counted.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Bytes of the flight recorder of a pool that can be inspected.
#[cfg(unix)]
const FLIGHT_RECORDER: usize = 1 << 20;
/// The interval of progress reports.
const TICK: Duration = Duration::from_millis(100);

/// A client of one of the shells.
pub(super) trait Client: BuiltClient {
    /// What its workers are: tasks or threads.
    const WORKERS: &'static str;

    /// Each server, with the state and the counts of its pool. Stays as it was when the client is closed.
    fn servers(&self) -> Vec<ServerStatus>;

    /// What is known of the deployment.
    fn topology(&self) -> Arc<TopologyDescription>;

    /// A connection that is checked out.
    type Connection;

    /// Checks a connection out of the pool of a server. A caller without patience does not wait for a server, because
    /// nothing tells whether it had asked a pool when it gave up: `None`.
    async fn check_out(
        &self,
        selector: &Selector,
        patience: Option<Duration>,
    ) -> Option<Result<Self::Connection, ClientError>>;

    /// Runs a command on the database `admin`. `None` if the caller gave up.
    async fn command(
        connection: &mut Self::Connection,
        command: &RawDocument,
        patience: Option<Duration>,
    ) -> Option<Result<RawDocumentBuf, OperationError>>;

    /// Starts `count` workers.
    fn employ(&self, count: u32, selector: &Selector, tally: &Arc<Tally>) -> JoinSet<()>;

    /// Closes the client, and finishes a recording. Returns whether all connections came back within [`PATIENCE`].
    async fn close(&self) -> Result<bool, Failure>;
}

pub(super) async fn play<C: Client>(plan: &Plan<'_>) -> Result<Summary, Failure> {
    let mut signals = Signals::expect()?;
    let mut meter = Meter::begin()?;
    let record = Record::begin(plan)?;
    let server = Server::start(plan, &mut signals).await?;
    let timeline = Arc::<Timeline>::default();
    let seen = Arc::new(Seen::new(Arc::clone(&timeline)));
    server.look(&mut signals).await?;
    // What is in the file stays until there is something to be written.
    let events = plan.arguments.events.as_deref();
    let told = at(events.unwrap_or(Path::new("")));
    let (checker, ear) = EventChecker::new(events).map_err(&told)?;
    let pause = Arc::new(Pause::default());
    let client: C = client(plan, &server, ear, &seen, &pause, record.as_ref())?;
    let tally = Arc::new(Tally::new(plan.arguments, Arc::clone(&timeline), pause));
    let progress = Arc::new(Progress::new(plan.goal));
    let max_pool_size = client.servers().first().and_then(|server| server.pool.max_pool_size);
    if server.endpoint.is_none() {
        progress.say(&format!("found {}", found(&client).await));
        let status = ClientStatus::of(&client.topology());
        if status.is_misconfigured() {
            // No work would be done.
            return Err(status.to_string().into());
        }
    }
    progress.say(&format!(
        "{} {} at work on {} for {}; Ctrl-C stops them",
        plan.arguments.tasks,
        C::WORKERS,
        server.name(),
        plan.goal
    ));
    let began = timeline.now();
    let chaos = server.endpoint.iter().zip(&server.proxy).map(|(endpoint, proxy)| Chaos {
        endpoint: Arc::clone(endpoint),
        proxy: Arc::clone(proxy),
        timeline: Arc::clone(&timeline),
        progress: Arc::clone(&progress),
        tally: Arc::clone(&tally),
        end: plan.goal.time.map(|time| began + time),
    });
    let helpers: JoinSet<_> = chaos.map(Chaos::reign).collect();
    let mut workers = client.employ(plan.arguments.tasks, &server.selector(), &tally);

    let look = || client.servers();
    let scene = Scene { plan, look, tally: &tally, progress: &progress, checker: &checker };
    let stopped = scene.play_on(&mut workers, &mut signals, &mut meter).await?;
    let memory = resources::memory()?;
    tally.is_over.store(true, Ordering::Relaxed);
    let worked = timeline.now().saturating_sub(began);
    let hanging = finish(workers, &mut signals).await?;
    helpers.join_all().await;
    progress.end();
    let deployment = Deployment::of(&client.topology(), &client.servers());
    let closed = client.close().await?;
    let servers = client.servers();
    let connections = servers.iter().map(|server| server.pool.total).sum();
    drop(client);
    let addresses = servers.iter().map(|server| &*server.address);
    let sockets = sockets::settle(addresses.chain(&server.uri.hosts), PATIENCE).await?;
    let (name, embedded) = (server.name(), server.endpoint.is_some());
    drop((server, progress));
    let recorded = record.map(|record| record.finish(&timeline)).transpose()?;
    let report = checker.report().map_err(&told)?;
    let growth = meter.end(memory, PATIENCE).await?;
    let [check_out_wait, operation_time] = tally.quantiles();
    let (establishment, lives) = seen.connections();
    let seconds = worked.as_secs_f64();
    let summary = Summary {
        good: true,
        server: name,
        deployment,
        embedded,
        shell: plan.arguments.shell.name(),
        tasks: plan.arguments.tasks,
        max_pool_size,
        stopped_by: stopped,
        seconds,
        operations: Operations::of(&tally, seconds),
        check_outs: CheckOuts::of(&tally),
        check_out_wait,
        operation_time,
        establishment,
        connections: Lives { created: report.connections, ..lives },
        failures: tally.reasons(),
        troubles: timeline.incidents(),
        events: Events::of(&report, plan.arguments.events.clone()),
        recorded,
        left: Left { tasks: hanging, closed, connections, sockets },
        growth,
    };
    Ok(summary.judged())
}

/// What there is while the work goes on.
struct Scene<'a, L> {
    plan: &'a Plan<'a>,
    look: L,
    tally: &'a Tally,
    progress: &'a Progress,
    checker: &'a EventChecker,
}

impl<L: Fn() -> Vec<ServerStatus>> Scene<'_, L> {
    /// Shows how it goes, until there is a reason to stop.
    async fn play_on(
        &self,
        workers: &mut JoinSet<()>,
        signals: &mut Signals,
        meter: &mut Meter,
    ) -> Result<Stopped, Failure> {
        let began = self.tally.timeline.now();
        let time = sleep(self.plan.goal.time.unwrap_or(Duration::MAX));
        tokio::pin!(time);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = &mut time => return Ok(Stopped::Time),
                () = signals.come() => return Ok(Stopped::Signal),
                ended = ended(workers) => {
                    ended?;
                    return Ok(Stopped::Operations);
                }
                _ = ticks.tick() => {
                    let now = self.tally.timeline.now();
                    let counts = self.tally.counts();
                    self.progress.show(now, counts, &(self.look)());
                    meter.look(self.plan.goal.part(now.saturating_sub(began), counts.asked))?;
                    if self.checker.has_gone() {
                        // Its report says why.
                        return Ok(Stopped::Signal);
                    }
                }
            }
        }
    }
}

/// What the client has found, once each server has answered or failed, or has not for a [`MOMENT`].
async fn found<C: Client>(client: &C) -> String {
    let is_over = |topology: &TopologyDescription| {
        topology.servers().all(|(_, server)| server.is_known() || server.error.is_some())
    };
    let over = async {
        while !is_over(&client.topology()) {
            sleep(TICK).await;
        }
    };
    let _ = timeout(MOMENT, over).await;
    seen(&client.topology(), client.servers())
}

/// It watches the servers, and makes their pools ready and clears them.
fn client<C: Client>(
    plan: &Plan<'_>,
    server: &Server,
    ear: EventSender,
    seen: &Arc<Seen>,
    pause: &Arc<Pause>,
    record: Option<&Record>,
) -> Result<C, Failure> {
    let (seen, stopped) = (Arc::clone(seen), Arc::clone(pause));
    let mut builder =
        ClientBuilder::from_connection_string(server.uri.clone())?.on_event(move |event| {
            seen.hear(&event.event);
            ear.hear(event);
            stopped.wait_for_end();
        });
    let stopped = Arc::clone(pause);
    builder = builder.on_heartbeat(move |_| stopped.wait_for_end());
    if let Some(record) = record {
        let trace = record.trace().to_owned();
        builder = if is_alone(&server.uri) {
            builder.prepare_pools(move |pool| pool.record(trace.as_path()))
        } else {
            builder.record_into(trace)
        };
    }
    #[cfg(unix)]
    if let Some(path) = &plan.arguments.inspect {
        builder = builder.inspect(path).flight_recorder(FLIGHT_RECORDER);
    }
    Ok(builder.build()?)
}

/// Waits for the workers, until [`PATIENCE`] or another signal ends it. Returns how many hang.
async fn finish(mut workers: JoinSet<()>, signals: &mut Signals) -> Result<usize, Failure> {
    let insisted = async {
        signals.come().await;
        // The signal may come at once, while operations are still under way without hanging.
        sleep(MOMENT).await;
    };
    tokio::select! {
        outcome = timeout(PATIENCE, ended(&mut workers)) => outcome.unwrap_or(Ok(()))?,
        () = insisted => {}
    }
    while workers.try_join_next().is_some() {}
    let hanging = workers.len();
    // A task gives its connection back before the pool is closed; a thread that hangs is left alone.
    workers.abort_all();
    let _ = timeout(MOMENT, async { while workers.join_next().await.is_some() {} }).await;
    workers.detach_all();
    Ok(hanging)
}

/// Waits until all of them have ended. Cancel-safe.
async fn ended(workers: &mut JoinSet<()>) -> Result<(), JoinError> {
    while let Some(ended) = workers.join_next().await {
        ended?;
    }
    Ok(())
}
