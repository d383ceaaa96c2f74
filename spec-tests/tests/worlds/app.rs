//! An application in a world: tasks that use a pool, some of them impatient, and a stand-in for the
//! monitor of the server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bson::rawdoc;
use cenote_check::{Checker, Line};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{CheckOutFailedReason, CloseReason, Event};
use cenote_core::sdam;
use cenote_tokio::{Builder, Pool, PooledConnection};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use turmoil::net::TcpStream;

use crate::connector::{Alive, CONNECT_TIMEOUT, SOCKET_TIMEOUT, Simulated};
use crate::endpoint::{NAME, PORT};
use crate::impatient;
use crate::ledger::Ledger;
use crate::plan::{Plan, Rng};
use crate::recovery;

/// What is added to every limit for the steps in which the simulated time goes on.
pub(crate) const SLACK: Duration = Duration::from_millis(100);

/// What was heard and done in a world.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) ledger: Ledger,
    checker: Checker,
    pub(crate) events: Vec<String>,
    pub(crate) kinds: Vec<&'static str>,
    /// Requests of the tasks: all of them, and those that got a connection.
    pub(crate) asked: u64,
    pub(crate) got: u64,
    pub(crate) failure: Option<String>,
    /// Connections that must not be handed out again.
    spent: BTreeSet<u64>,
}

impl Log {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            ledger: Ledger::new(plan.options.max_pool_size.unwrap_or(u32::MAX)),
            checker: Checker::default(),
            events: Vec::new(),
            kinds: Vec::new(),
            asked: 0,
            got: 0,
            failure: None,
            spent: BTreeSet::new(),
        }
    }

    fn hear(&mut self, event: &Event<ConnectionError>) -> Result<(), String> {
        self.kinds.push(kind(event));
        if let Event::ConnectionCheckedOut { connection_id, .. } = event {
            if self.spent.contains(connection_id) {
                return Err(format!("{connection_id} was broken, and is handed out again"));
            }
        }
        self.ledger.hear(event)
    }
}

pub(crate) type Shared = Arc<Mutex<Log>>;

/// Lives until the pool is closed and judged.
pub(crate) async fn live(plan: Plan, log: Shared) -> Result<(), String> {
    let began = Instant::now();
    let connector = Simulated::new();
    let alive = connector.alive.clone();
    let pool = build(&plan, connector, &log);
    let mut rng = plan.rng.clone();
    let monitor = spawn_local(watch(pool.clone(), rng.fork())).abort_handle();
    let mut tasks = JoinSet::new();
    for _ in 0..plan.tasks {
        let task = Task {
            pool: pool.clone(),
            rng: rng.fork(),
            log: Arc::clone(&log),
            wait: plan.options.wait_queue_timeout.unwrap_or(plan.active + CONNECT_TIMEOUT),
        };
        tasks.spawn_local(task.work(began + plan.active));
    }
    while let Some(task) = tasks.join_next().await {
        task.map_err(|stopped| stopped.to_string())??;
    }
    recovery::recover(&plan, &pool).await?;
    monitor.abort();
    end(&pool, &alive, &log).await
}

fn build(plan: &Plan, connector: Simulated, log: &Shared) -> Pool<Simulated> {
    let heard = Arc::clone(log);
    let address = NAME.parse().expect("an address");
    let pool = Builder::new(address, connector)
        .options(plan.options.clone())
        .on_event(move |event| {
            let mut log = heard.lock().expect("no panic");
            let at = turmoil::sim_elapsed().unwrap_or_default();
            log.events.push(format!("{at:?} {event}"));
            log.checker.tell(&Line::of(&event.event, &event.address, at));
            if let Err(failure) = log.hear(&event.event) {
                log.failure.get_or_insert(failure);
            }
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
        },
        Event::ConnectionCheckOutFailed { error, .. } => match error.reason() {
            CheckOutFailedReason::ConnectionError => "failed: connectionError",
            CheckOutFailedReason::PoolClosed => "failed: poolClosed",
            CheckOutFailedReason::Timeout => "failed: timeout",
        },
        Event::ConnectionPoolCreated { .. }
        | Event::ConnectionPoolReady
        | Event::ConnectionPoolCleared { .. }
        | Event::ConnectionPoolClosed
        | Event::ConnectionCreated { .. }
        | Event::ConnectionReady { .. }
        | Event::ConnectionCheckOutStarted
        | Event::ConnectionCheckedOut { .. }
        | Event::ConnectionCheckedIn { .. } => event.name(),
    }
}

/// Says ready when the server lets itself be connected to, and clear when it does not; and now and
/// then clear for no reason.
async fn watch(pool: Pool<Simulated>, mut rng: Rng) {
    loop {
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect((NAME, PORT))).await;
        let is_there = connected.is_ok_and(|outcome| outcome.is_ok());
        if !is_there || rng.chance(2) {
            let cause = ConnectionError::network(Stage::Hello, "the monitor says so");
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
        match timeout(patience.map_or(limit, |patience| patience.min(limit)), answer).await {
            Ok(outcome) => Ok(outcome.and_then(Result::ok)),
            Err(_) if patience.is_some() => Ok(None),
            Err(_) => Err(format!("a request was not answered in {limit:?}")),
        }
    }

    async fn use_it(&mut self, mut connection: PooledConnection<Simulated>) -> Result<(), String> {
        for _ in 0..self.rng.below(3) {
            let patience = self.rng.chance(20).then(|| self.rng.milliseconds(0, 100));
            let limit = 3 * SOCKET_TIMEOUT + SLACK;
            let answer = timeout(patience.unwrap_or(limit), ping(&mut connection)).await;
            if answer.is_err() && patience.is_none() {
                return Err(format!("a ping was not answered in {limit:?}"));
            }
            if !answer.unwrap_or(false) {
                // It failed or was abandoned: this connection must not be used again.
                self.log.lock().expect("no panic").spent.insert(connection.id());
                break;
            }
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

/// Whether it was answered well.
pub(crate) async fn ping(connection: &mut PooledConnection<Simulated>) -> bool {
    let command = rawdoc! { "ping": 1 };
    let ping = connection.run(|socket| socket.connection.command("admin", &command));
    ping.await.is_ok()
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
    log.ledger.end()?;
    let report = std::mem::take(&mut log.checker).finish();
    if !report.is_good() {
        return Err(format!("the events break rules: {report}"));
    }
    if log.ledger.started < log.asked || log.ledger.out < log.got {
        return Err(format!("events do not tell of every request: {:?}", log.ledger));
    }
    Ok(())
}
