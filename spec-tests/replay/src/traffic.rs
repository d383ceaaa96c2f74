//! Simulated traffic from a seed, in virtual time, for realistic traces.

use std::collections::BTreeSet;
use std::time::Duration;

use cenote_core::pool::{
    Action, ActionSink, ConnId, Health, Input, Instant, PoolOptions, PoolState, PoolTypes, Purpose,
    Status, WaiterId,
};

use cenote_core::trace::CallerLocation;

use super::agenda::Agenda;
use super::random::SplitMix;

/// The parameters of the traffic.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The server.
    pub address: &'static str,
    /// The pool's options.
    pub options: PoolOptions,
    /// The number of tasks, each with one connection at a time.
    pub tasks: u64,
    /// The callers' deadline.
    pub patience: Option<Duration>,
    /// The average time that a task uses a connection.
    pub use_time: Duration,
    /// The average time between two check-outs of a task.
    pub pause: Duration,
    /// The average time of establishing a connection.
    pub establish_time: Duration,
    /// 1 in this many operations and establishments fails; 0: none.
    pub failure_every: u64,
    /// 1 in this many establishments fails because the server is overloaded; 0: none.
    pub overload_every: u64,
    /// 1 in this many check-outs is leaked; 0: none.
    pub leak_every: u64,
    /// Check-outs have places, and it is the ones with a multiple of `leak_every` that leak.
    pub has_places: bool,
    /// At the end, a connection is checked in twice.
    pub checks_in_twice: bool,
    /// Milliseconds since 1970 at the start; 0: unknown.
    pub origin: i64,
    /// The step of the client that clears follow.
    pub cleared_by: Option<u64>,
    /// What happens when, since the start.
    pub changes: Vec<(Duration, Change)>,
    /// The traffic ends then.
    pub duration: Option<Duration>,
}

/// What changes during the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This many tasks come in addition.
    MoreTasks(u64),
    /// The average time that a task uses a connection.
    UseTime(Duration),
    /// Every connection is closed by a clear that interrupts operations, because a monitor failed.
    MonitorFails(&'static str),
    /// A monitor marks the pool ready.
    MonitorSucceeds,
    /// The tasks go to another server.
    NoTasks,
    /// The server is no member of its set any more: the pool is closed.
    Removed,
}

/// The server, if no other is named.
pub(super) const ADDRESS: &str = "db.example.com:27017";

impl Scene {
    /// A service with at most `connections` connections and twice as many tasks.
    pub fn new(seed: u64, connections: u32) -> Self {
        let options = PoolOptions::default()
            .with_max_pool_size(connections)
            .with_min_pool_size(connections / 10)
            .with_max_idle_time(Duration::from_secs(10))
            .with_leak_detection_threshold(Duration::from_secs(2));
        Self {
            seed,
            address: ADDRESS,
            options,
            tasks: u64::from(connections) * 2,
            patience: Some(Duration::from_millis(100)),
            use_time: Duration::from_millis(4),
            pause: Duration::from_millis(3),
            establish_time: Duration::from_millis(8),
            failure_every: 20_000,
            overload_every: 0,
            leak_every: 0,
            has_places: false,
            checks_in_twice: false,
            origin: 0,
            cleared_by: None,
            changes: Vec::new(),
            duration: None,
        }
    }

    /// 2026-01-01 03:07:00 UTC, in milliseconds since 1970.
    pub const NIGHT: i64 = 1_767_236_820_000;

    /// A service that needs half of its ten connections, for the cases below: 40 tasks with a deadline of
    /// 200 ms. It begins on the first of January 2026 at 03:07:00 UTC.
    fn quiet(seed: u64) -> Self {
        Self {
            tasks: 40,
            pause: Duration::from_millis(30),
            patience: Some(Duration::from_millis(200)),
            failure_every: 0,
            has_places: true,
            origin: Self::NIGHT,
            duration: Some(Duration::from_secs(20)),
            ..Self::new(seed, 10)
        }
    }

    /// From 03:07:12 on, sixteen times as many tasks need a connection.
    pub fn too_small(seed: u64) -> Self {
        let changes = vec![(Duration::from_secs(12), Change::MoreTasks(600))];
        let duration = Some(Duration::from_secs(15));
        Self { changes, duration, ..Self::quiet(seed) }
    }

    /// The same for tasks without a deadline, in a pool that sheds and lets at most 500 requests wait.
    pub fn shedding(seed: u64) -> Self {
        let too_small = Self::too_small(seed);
        let options = too_small.options.clone().with_max_wait_queue_size(500);
        let options = options.with_codel_target(PoolOptions::DEFAULT_CODEL_TARGET);
        Self { options, patience: None, ..too_small }
    }

    /// One check-out in 1,400 is never checked in, all of them in the same place.
    pub fn leak(seed: u64) -> Self {
        Self { leak_every: 1_400, ..Self::quiet(seed) }
    }

    /// At 03:07:12, 300 more tasks begin at once, in a pool for 200 connections that has some 30; to
    /// establish a connection takes 60 ms.
    pub fn storm(seed: u64) -> Self {
        let quiet = Self::quiet(seed);
        Self {
            options: quiet.options.clone().with_max_pool_size(200),
            establish_time: Duration::from_millis(60),
            use_time: Duration::from_millis(40),
            changes: vec![(Duration::from_secs(12), Change::MoreTasks(300))],
            duration: Some(Duration::from_secs(15)),
            ..quiet
        }
    }

    /// The same at an overloaded server, which refuses each third connection, in a pool that backs off and adapts.
    pub fn overloaded(seed: u64) -> Self {
        let storm = Self::storm(seed);
        let options = storm.options.clone().with_adaptive_connecting(true);
        let options = options.with_overload_backoff(Duration::from_millis(500));
        Self { options, overload_every: 3, ..storm }
    }

    /// From 03:07:10 to 03:07:13 the server takes sixty times as long.
    pub fn slow_server(seed: u64) -> Self {
        let quiet = Self::quiet(seed);
        let changes = vec![
            (Duration::from_secs(10), Change::UseTime(quiet.use_time * 60)),
            (Duration::from_secs(13), Change::UseTime(quiet.use_time)),
        ];
        Self { changes, ..quiet }
    }

    /// At 03:07:12 a monitor fails and clears the pool; three seconds later it succeeds.
    pub fn cleared(seed: u64) -> Self {
        let reason = "hello: timed out after 10s";
        let changes = vec![
            (Duration::from_secs(12), Change::MonitorFails(reason)),
            (Duration::from_secs(15), Change::MonitorSucceeds),
        ];
        Self { changes, ..Self::quiet(seed) }
    }

    /// The pool of a primary that is lost at 03:07:12, and comes back three seconds later as a secondary.
    pub fn lost_primary(seed: u64) -> Self {
        let mut scene = Self::cleared(seed);
        scene.changes.push((Duration::from_millis(12_050), Change::NoTasks));
        // The step of the topology's trace that says so.
        Self { cleared_by: Some(19), ..scene }
    }

    /// The pool of the member that is elected 600 ms after that, with its connections still to be established and
    /// without anything in its caches.
    pub fn new_primary(seed: u64) -> Self {
        let (quiet, elected) = (Self::quiet(seed), Duration::from_millis(12_600));
        let changes = vec![
            (elected, Change::UseTime(20 * quiet.use_time)),
            (elected, Change::MoreTasks(40)),
            (Duration::from_secs(14), Change::UseTime(quiet.use_time)),
        ];
        Self { tasks: 0, establish_time: Duration::from_millis(60), changes, ..quiet }
    }

    /// The pool of a secondary that is removed from its set at 03:07:17.
    pub fn removed(seed: u64) -> Self {
        let (left, removed) = (Duration::from_millis(16_900), Duration::from_secs(17));
        let changes = vec![(left, Change::NoTasks), (removed, Change::Removed)];
        Self { tasks: 4, changes, ..Self::quiet(seed) }
    }
}

/// The pool's payload types; causes are texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulated {}

impl PoolTypes for Simulated {
    type Conn = ();
    type Waiter = WaiterId;
    type Cause = &'static str;
}

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Ready,
    Ask,
    Established(ConnId),
    Done(ConnId),
    Change(usize),
}

/// Generates one input after the other, according to the state of the pool.
#[derive(Debug)]
pub struct Traffic {
    scene: Scene,
    random: SplitMix,
    due: Agenda<Due>,
    requests: u64,
    now: Instant,
    /// Inputs that are due before time advances.
    at_once: Vec<Input<Simulated>>,
    /// Aborted connections.
    aborted: BTreeSet<ConnId>,
    has_tasks: bool,
}

impl Traffic {
    /// Starts the traffic.
    pub fn new(scene: Scene) -> Self {
        let mut traffic = Self {
            random: SplitMix(scene.seed),
            due: Agenda::default(),
            requests: 0,
            now: Instant::ORIGIN,
            at_once: Vec::new(),
            aborted: BTreeSet::new(),
            has_tasks: true,
            scene,
        };
        traffic.later(Duration::from_millis(1), Due::Ready);
        traffic.begin_tasks(traffic.scene.tasks);
        for index in 0..traffic.scene.changes.len() {
            let (at, _) = traffic.scene.changes[index];
            traffic.later(at, Due::Change(index));
        }
        traffic
    }

    fn begin_tasks(&mut self, tasks: u64) {
        for _ in 0..tasks {
            let pause = self.around(self.scene.pause);
            self.later(pause, Due::Ask);
        }
    }

    /// Where in the service a request is called, if the scene has places.
    pub fn place(&self, WaiterId(number): WaiterId) -> Option<CallerLocation> {
        let place = match number % 10 {
            0 => CallerLocation::new("src/report.rs", 88, 27),
            1..6 => CallerLocation::new("src/orders.rs", 41, 32),
            _ => CallerLocation::new("src/stock.rs", 19, 24),
        };
        self.scene.has_places.then_some(place)
    }

    /// The next input and its time; `None` if nothing is scheduled, or the traffic is over.
    pub fn next(&mut self, pool: &PoolState<Simulated>) -> Option<(Instant, Input<Simulated>)> {
        let end = self.scene.duration.map(|duration| Instant::ORIGIN + duration);
        let next = self.next_at_all(pool);
        next.filter(|&(at, _)| end.is_none_or(|end| at <= end))
    }

    fn next_at_all(&mut self, pool: &PoolState<Simulated>) -> Option<(Instant, Input<Simulated>)> {
        if let Some(input) = self.at_once.pop() {
            return Some((self.now, input));
        }
        loop {
            let timer = pool.next_deadline().map(|deadline| deadline.at.max(self.now));
            let next = self.due.next_time();
            if let Some(at) = timer.filter(|&at| next.is_none_or(|next| at < next)) {
                self.now = at;
                return Some((at, Input::Timer));
            }
            let (at, due) = self.due.pop()?;
            self.now = at;
            if let Some(input) = self.happen(due, pool) {
                return Some((at, input));
            }
        }
    }

    /// Schedules the consequences of an action.
    pub fn act(&mut self, action: &Action<Simulated>) {
        if let Action::StartEstablish { id, .. } = action {
            let time = self.around(self.scene.establish_time);
            self.later(time, Due::Established(*id));
        } else if let Action::AbortEstablish { id } = action {
            self.aborted.insert(*id);
        } else if let Action::Deliver { waiter, outcome: Ok((id, ())) } = action {
            let leaks = self.leaks(*waiter);
            let time = self.around(self.scene.use_time);
            if !leaks {
                self.later(time, Due::Done(*id));
            }
        } else if let Action::Deliver { outcome: Err(_), .. } = action {
            let pause = self.around(self.scene.pause);
            self.later(pause, Due::Ask);
        }
    }

    fn happen(&mut self, due: Due, pool: &PoolState<Simulated>) -> Option<Input<Simulated>> {
        match due {
            Due::Ready if pool.snapshot().status == Status::Paused => Some(Input::Ready),
            Due::Ready => None,
            Due::Ask => self.has_tasks.then(|| self.ask()),
            Due::Change(index) => self.change(index),
            Due::Established(id) if self.aborted.remove(&id) => None,
            Due::Established(id) if self.one_of(self.scene.failure_every) => {
                let cause = "connection refused";
                Some(Input::EstablishFailed { id, cause, overloaded: false })
            }
            Due::Established(id) if self.one_of(self.scene.overload_every) => {
                let cause = "connection reset during the TLS handshake";
                Some(Input::EstablishFailed { id, cause, overloaded: true })
            }
            Due::Established(id) => Some(Input::EstablishSucceeded { id, conn: () }),
            Due::Done(id) => {
                let pause = self.around(self.scene.pause);
                self.later(pause, Due::Ask);
                let failed = self.one_of(self.scene.failure_every);
                Some(if failed { self.fail(id, pool) } else { returned(id, Health::Healthy) })
            }
        }
    }

    fn ask(&mut self) -> Input<Simulated> {
        self.requests += 1;
        let id = WaiterId(self.requests);
        let deadline = self.scene.patience.map(|patience| self.now + patience);
        Input::CheckOutRequested { id, waiter: id, deadline, purpose: Purpose::Other }
    }

    fn change(&mut self, index: usize) -> Option<Input<Simulated>> {
        match self.scene.changes[index].1 {
            Change::MoreTasks(tasks) => self.begin_tasks(tasks),
            Change::UseTime(time) => self.scene.use_time = time,
            Change::MonitorFails(cause) => {
                return Some(Input::Clear { cause, interrupt: true, service: None });
            }
            Change::MonitorSucceeds => return Some(Input::Ready),
            Change::NoTasks => self.has_tasks = false,
            Change::Removed => return Some(Input::Close),
        }
        None
    }

    /// The failure clears the pool first, and a monitor marks it ready again.
    fn fail(&mut self, id: ConnId, pool: &PoolState<Simulated>) -> Input<Simulated> {
        let cause = "connection reset by peer";
        let check_in = returned(id, Health::Errored(cause));
        if pool.is_stale(id) {
            return check_in;
        }
        self.at_once.push(check_in);
        self.later(Duration::from_millis(20), Due::Ready);
        Input::Clear { cause, interrupt: false, service: None }
    }

    fn later(&mut self, after: Duration, due: Due) {
        self.due.plan(self.now + after, due);
    }

    /// Between 20 % and 180 % of the average, and 1 in 50 ten times as long.
    fn around(&mut self, average: Duration) -> Duration {
        let share = 20 + u32::try_from(self.random.below(160)).expect("a small number");
        let slow = if self.random.below(50) == 0 { 10 } else { 1 };
        average * share * slow / 100
    }

    fn leaks(&mut self, WaiterId(number): WaiterId) -> bool {
        let every = self.scene.leak_every;
        if self.scene.has_places { every != 0 && number % every == 0 } else { self.one_of(every) }
    }

    fn one_of(&mut self, every: u64) -> bool {
        every != 0 && self.random.below(every) == 0
    }
}

/// A check-in.
pub fn returned(id: ConnId, health: Health<&'static str>) -> Input<Simulated> {
    Input::CheckedIn { id, conn: (), health }
}

/// A sink that passes actions to the traffic.
#[derive(Debug)]
pub struct Watched<'a>(pub &'a mut Traffic);

impl ActionSink<Simulated> for Watched<'_> {
    fn act(&mut self, action: Action<Simulated>) {
        self.0.act(&action);
    }

    fn wants_events(&self) -> bool {
        false
    }
}
