//! An application in a world: tasks that use a pool, some of them impatient, and a stand-in for the
//! monitor of the server.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bson::rawdoc;
use cenote_check::{Checker, Line};
use cenote_core::error::{ConnectionError, Kind, OperationError, Stage};
use cenote_core::pool::{CheckOutFailedReason, CloseReason, Event};
use cenote_core::sdam;
use cenote_shell::runtime::{CurrentRuntime as _, Runtime as _, timeout_at};
use cenote_tokio::{Builder, Pool, PooledConnection, Tokio};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use turmoil::net::TcpStream;

use crate::worlds::client_clock::ClientClock;
use crate::worlds::connector::{Alive, CONNECT_TIMEOUT, SOCKET_TIMEOUT, Simulated};
use crate::worlds::endpoint::{NAME, PORT};
use crate::worlds::impatient;
use crate::worlds::plan::{Plan, Rng};
use crate::worlds::recovery;

/// What is added to every limit for the steps in which the simulated time goes on.
pub(crate) const SLACK: Duration = Duration::from_millis(100);

/// What was heard and done in a world.
#[derive(Debug, Default)]
pub(crate) struct Log {
    checker: Checker,
    pub(crate) events: Vec<String>,
    pub(crate) kinds: Vec<&'static str>,
    /// Requests of the tasks: all of them, and those that got a connection.
    pub(crate) asked: u64,
    pub(crate) got: u64,
    pub(crate) failed_commands: u64,
    pub(crate) failure: Option<String>,
    /// Connections that must not be handed out again.
    spent: BTreeSet<u64>,
}

impl Log {
    fn hear(&mut self, event: &Event<ConnectionError>) {
        self.kinds.push(kind(event));
        if let Event::ConnectionCheckedOut { connection_id, .. } = event
            && self.spent.contains(connection_id)
        {
            let what = format!("{connection_id} was broken, and is handed out again");
            self.failure.get_or_insert(what);
        }
    }

    fn count(&self, kind: &str) -> u64 {
        self.kinds.iter().filter(|heard| **heard == kind).count() as u64
    }
}

pub(crate) type Shared = Arc<Mutex<Log>>;

/// Lives until the pool is closed and judged.
pub(crate) async fn live(plan: Plan, log: Shared, clock: ClientClock) -> Result<(), String> {
    let began = Instant::now();
    let connector = Simulated::new();
    let alive = connector.alive.clone();
    let pool = build(&plan, connector, &log);
    let mut rng = plan.rng.clone();
    let clock = spawn_local(clock.run()).abort_handle();
    let monitor = watch(pool.clone(), rng.fork(), plan.monitor_errs);
    let monitor = spawn_local(monitor).abort_handle();
    let mut tasks = JoinSet::new();
    for _ in 0..plan.tasks {
        let task = Task {
            grace: if plan.has_pauses() { 4 * SLACK } else { Duration::ZERO },
            pool: pool.clone(),
            rng: rng.fork(),
            log: Arc::clone(&log),
            wait: match plan.options.wait_queue_timeout {
                Some(wait) => wait,
                None => plan.active + CONNECT_TIMEOUT + plan.late_replies(),
            },
            keeps_late_replies: !plan.late_replies().is_zero(),
        };
        tasks.spawn_local(task.work(began + plan.active));
    }
    while let Some(task) = tasks.join_next().await {
        task.map_err(|stopped| stopped.to_string())??;
    }
    recovery::recover(&plan, &pool).await?;
    monitor.abort();
    clock.abort();
    end(&pool, &alive, &log).await
}

fn build(plan: &Plan, connector: Simulated, log: &Shared) -> Pool<Simulated> {
    let heard = Arc::clone(log);
    let began = Instant::now();
    let address = NAME.parse().expect("an address");
    let pool = Builder::new(address, connector)
        .replace_options(plan.options.clone())
        .on_event(move |event| {
            let mut log = heard.lock().expect("no panic");
            // The client's clock, which is ahead after pauses.
            let at = began.elapsed();
            log.events.push(format!("{at:?} {event}"));
            log.checker.tell(&Line::of(&event.event, &event.address, at));
            log.hear(&event.event);
        })
        .on_failure(|failure| {
            let verdict = sdam::verdict(&failure.context(None), failure.error());
            failure.clear(verdict.pool);
        })
        .build();
    pool.expect("good options")
}

/// The name, and how a connection or a request ended.
fn kind(event: &Event<ConnectionError>) -> &'static str {
    match event {
        Event::ConnectionPoolCleared { interrupt_in_use_connections: true, .. } => "interrupted",
        Event::ConnectionClosed { reason, .. } => match reason {
            CloseReason::Error => "closed: error",
            CloseReason::Idle => "closed: idle",
            CloseReason::PoolClosed => "closed: poolClosed",
            CloseReason::Stale => "closed: stale",
            _ => event.name(),
        },
        Event::ConnectionCheckOutFailed { error, .. } => match error.reason() {
            CheckOutFailedReason::ConnectionError => "failed: connectionError",
            CheckOutFailedReason::PoolClosed => "failed: poolClosed",
            CheckOutFailedReason::Timeout => "failed: timeout",
            _ => event.name(),
        },
        Event::ConnectionPoolCreated { .. }
        | Event::ConnectionPoolReady
        | Event::ConnectionPoolCleared { .. }
        | Event::ConnectionPoolClosed
        | Event::ConnectionCreated { .. }
        | Event::ConnectionReady { .. }
        | Event::ConnectionCheckOutStarted { .. }
        | Event::ConnectionCheckedOut { .. }
        | Event::ConnectionCheckedIn { .. }
        | _ => event.name(),
    }
}

/// Says ready when the server lets itself be connected to, and clear when it does not; and now and
/// then clear for no reason.
async fn watch(pool: Pool<Simulated>, mut rng: Rng, errs: bool) {
    loop {
        let limit = Tokio::now() + CONNECT_TIMEOUT;
        let connecting = TcpStream::connect((NAME, PORT));
        let connected = timeout_at(&Tokio::current(), limit, pin!(connecting)).await;
        let is_late = connected.is_none();
        let is_there = connected.is_some_and(|outcome| outcome.is_ok());
        if !is_there || (rng.chance(2) && errs) {
            let reason = if is_late { "the monitor timed out" } else { "the monitor says so" };
            let cause = ConnectionError::network(Stage::Hello, reason);
            pool.clear(cause, rng.chance(50));
        }
        if is_there {
            pool.ready();
        }
        sleep(rng.milliseconds(20, 150)).await;
    }
}

struct Task {
    pool: Pool<Simulated>,
    rng: Rng,
    log: Shared,
    /// How long a request may wait for its turn.
    wait: Duration,
    /// What is added to limits that may pass in a jump of the clock.
    grace: Duration,
    /// Whether a connection whose command has timed out may be handed out again.
    keeps_late_replies: bool,
}

/// What a command was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its own reply, which may be a refusal.
    Own,
    /// None yet.
    Late,
    /// None: the connection is broken.
    Broken,
}

impl Task {
    async fn work(mut self, until: Instant) -> Result<(), String> {
        while Instant::now() < until {
            self.log.lock().expect("no panic").asked += 1;
            let Some(connection) = self.ask().await? else {
                sleep(self.rng.milliseconds(20, 300)).await;
                continue;
            };
            self.log.lock().expect("no panic").got += 1;
            self.use_it(connection).await?;
            sleep(self.rng.milliseconds(0, 60)).await;
        }
        Ok(())
    }

    /// A connection, if there was one in time; an answer there must be in any case, unless the
    /// task itself gives up first.
    async fn ask(&mut self) -> Result<Option<PooledConnection<Simulated>>, String> {
        let own = self.rng.chance(40).then(|| self.rng.milliseconds(0, 900));
        let patience = self.rng.chance(30).then(|| self.rng.milliseconds(0, 500));
        let pool = self.pool.clone();
        let answer = async move {
            match own {
                Some(own) => pool.check_out_before(Instant::now() + own).await,
                None => pool.check_out().await,
            }
        };
        let limit = own.unwrap_or(self.wait) + CONNECT_TIMEOUT + SLACK;
        let looks = self.rng.chance(15).then(|| 1 + self.rng.below(2));
        let answer = impatient::looks(answer, looks);
        let answer = match patience {
            Some(patience) => timeout(patience.min(limit), answer).await.ok(),
            None => self.within(limit, answer).await,
        };
        match answer {
            Some(outcome) => Ok(outcome.and_then(Result::ok)),
            None if patience.is_some() => Ok(None),
            None => Err(format!("a request was not answered in {limit:?}")),
        }
    }

    /// Waits for something that has to be done in time; `None` if it is not.
    async fn within<F: Future>(&self, limit: Duration, work: F) -> Option<F::Output> {
        let mut work = std::pin::pin!(work);
        match timeout(limit, &mut work).await {
            Ok(done) => Some(done),
            Err(_) => timeout(self.grace, work).await.ok(),
        }
    }

    async fn use_it(&mut self, mut connection: PooledConnection<Simulated>) -> Result<(), String> {
        for _ in 0..self.rng.below(3) {
            let patience = self.rng.chance(20).then(|| self.rng.milliseconds(0, 100));
            let limit = 3 * SOCKET_TIMEOUT + SLACK;
            let ask = ask_back(&mut connection);
            let answer = match patience {
                Some(patience) => timeout(patience, ask).await.ok(),
                None => self.within(limit, ask).await,
            };
            if answer.is_none() && patience.is_none() {
                return Err(format!("a command was not answered in {limit:?}"));
            }
            if answer == Some(Answer::Own) {
                continue;
            }
            let mut log = self.log.lock().expect("no panic");
            log.failed_commands += u64::from(answer.is_some());
            let may_answer = matches!(answer, None | Some(Answer::Late));
            if !may_answer || !self.keeps_late_replies {
                // It failed, or was abandoned for good: this connection must not be used again.
                log.spent.insert(connection.id());
            }
            break;
        }
        if self.rng.chance(30) {
            sleep(self.rng.milliseconds(0, 200)).await;
        }
        if self.rng.chance(2) {
            connection.mark_errored(ConnectionError::network(Stage::Operation, "says the task"));
        }
        Ok(())
    }
}

/// The reply to another connection must not be an answer.
pub(crate) async fn ask_back(connection: &mut PooledConnection<Simulated>) -> Answer {
    let command = rawdoc! { "whatsmyuri": 1 };
    let reply = connection.run(|socket| socket.connection.command("admin", &command)).await;
    match reply {
        Ok(reply) => {
            let you = reply.get_str("you").expect("an address");
            assert_eq!(you, connection.address, "the reply to another connection");
            Answer::Own
        }
        Err(OperationError::Connection(error)) => match error.kind() {
            Kind::Command(_) => Answer::Own,
            Kind::NetworkTimeout { .. } => Answer::Late,
            Kind::Network
            | Kind::NotSent { .. }
            | Kind::Protocol
            | Kind::Configuration
            | Kind::Local
            | _ => Answer::Broken,
        },
        Err(_) => Answer::Broken,
    }
}

/// Closes, and counts.
async fn end(pool: &Pool<Simulated>, alive: &Alive, log: &Shared) -> Result<(), String> {
    let closed = timeout(SLACK, pool.close()).await;
    closed.map_err(|_| "close waits though nothing is checked out".to_owned())?;
    // Those that were being opened are dropped by the tasks that did so, in their next step.
    tokio::task::yield_now().await;
    sleep(Duration::from_millis(1)).await;
    if alive.count_now() != 0 {
        return Err(format!("{} sockets are still there", alive.count_now()));
    }
    let mut log = log.lock().expect("no panic");
    if let Some(failure) = log.failure.take() {
        return Err(failure);
    }
    let report = std::mem::take(&mut log.checker).finish();
    if !report.is_good() {
        return Err(format!("the events break rules: {report}"));
    }
    let told = ["ConnectionCheckOutStarted", "ConnectionCheckedOut"].map(|kind| log.count(kind));
    if told[0] < log.asked || told[1] < log.got {
        return Err(format!("events tell of {told:?} requests of {:?}", (log.asked, log.got)));
    }
    Ok(())
}
