//! Executes the operations of a scenario.
//!
//! The threads of a scenario are lists of operations that this one thread executes. The format leaves
//! their order open; here it is always the same. A thread that can go on does so, the main thread
//! last, the others in the order in which they were started, one operation at a time. So a thread
//! executes an operation before the main thread's next one, unless it waits. When all threads wait,
//! so does the [`Pool`], until there is progress or the first time limit is reached.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use cenote_check::Line;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::Purpose;
use cenote_core::uri::ConnectionString;

use crate::expected::Played;
use crate::recorder::{Inbox, Outcome, Recorder};
use crate::request::CheckOutRequest;
use crate::scenario::extension::CheckOut;
use crate::scenario::operation::{MAIN, Operation, Task};
use crate::scenario::{Options, Scenario};
use crate::server::Server;
use crate::target::{Failure, Pool, Setup, Target};

/// A pool, the threads of the scenario, and the connections that they hold.
pub(crate) struct Player<'s, T: Target> {
    target: &'s T,
    scenario: &'s Scenario,
    uri: ConnectionString,
    /// The time limit of operations that have none of their own.
    limit: Duration,
    pool: T::Pool,
    recorder: Recorder,
    inbox: Inbox<Connection<T>>,
    check_outs: u64,
    /// Check-outs without an outcome that were not cancelled.
    open: BTreeSet<u64>,
    /// The main thread is the first.
    threads: Vec<Thread<T>>,
    labelled: BTreeMap<String, Connection<T>>,
    unlabelled: Vec<Connection<T>>,
    /// The connection that was last checked in under each label.
    returned: BTreeMap<String, Option<u64>>,
}

type Connection<T> = <<T as Target>::Pool as Pool>::Connection;

/// The number of a check-out, and the pool's own handle of it.
type StartedCheckOut<T> = (u64, <<T as Target>::Pool as Pool>::Waiter);

struct Thread<T: Target> {
    name: String,
    todo: VecDeque<Operation>,
    waits: Option<Wait<T>>,
    /// The error that has ended the thread.
    failure: Option<Failure>,
}

/// An operation that has begun and cannot end yet.
struct Wait<T: Target> {
    task: Task,
    limit: Duration,
    /// When it ends at the latest.
    until: Duration,
    check_out: Option<StartedCheckOut<T>>,
}

impl<'s, T: Target> Player<'s, T> {
    /// Creates the pool.
    ///
    /// # Errors
    ///
    /// Those of the target.
    pub(crate) fn new(
        target: &'s T,
        scenario: &'s Scenario,
        uri: ConnectionString,
        limit: Duration,
    ) -> Result<Self, String> {
        let recorder = Recorder::default();
        let pool = target.open(setup(scenario, &uri, &recorder))?;
        let main = Thread::new(MAIN.to_owned(), scenario.operations.clone().into());
        Ok(Self {
            target,
            scenario,
            uri,
            limit,
            pool,
            inbox: Inbox::new(&recorder),
            recorder,
            check_outs: 0,
            open: BTreeSet::new(),
            threads: vec![main],
            labelled: BTreeMap::new(),
            unlabelled: Vec::new(),
            returned: BTreeMap::new(),
        })
    }

    /// Executes the operations until the main thread ends, then closes the pool and checks that
    /// nothing is left.
    pub(crate) fn play(mut self, server: Option<&dyn Server>) -> Played {
        let mut failure = self.run();
        self.wait_for_silence();
        let events = self.recorder.events();
        let messages = match self.scenario.log() {
            Some(_) => self.pool.log_messages().unwrap_or_else(|error| {
                failure = Some(error.into());
                Vec::new()
            }),
            None => Vec::new(),
        };
        let is_virtual = self.pool.virtual_time().is_some();
        let address = setup(self.scenario, &self.uri, &self.recorder).address();
        let cleanup = self.clean_up(server);
        Played { failure, events, messages, cleanup, is_virtual, address }
    }

    /// Runs until the main thread ends; returns the error that ended it. Errors of threads that are
    /// not waited for do not count.
    // T-69
    fn run(&mut self) -> Option<Failure> {
        for _ in 0..Self::STEPS {
            let progress = self.recorder.progress();
            if let Some(thread) = self.next_thread() {
                match self.go_on(thread) {
                    Ok(()) => {}
                    Err(unsupported @ Failure::Unsupported(_)) => return Some(unsupported),
                    Err(failure) => self.threads[thread].failure = Some(failure),
                }
                self.pool.flush();
            } else if self.threads[0].has_ended() {
                return self.threads[0].failure.take();
            } else {
                let waiting = self.threads.iter().filter(|thread| thread.failure.is_none());
                let limits = waiting.filter_map(|thread| thread.waits.as_ref());
                let until = limits.map(|wait| wait.until).min().expect("the main thread waits");
                self.pool.wait(&progress, until.saturating_sub(self.now()));
                self.pool.flush();
            }
        }
        Some(Failure::Script(format!("the scenario has not ended after {} steps", Self::STEPS)))
    }

    fn now(&self) -> Duration {
        self.pool.virtual_time().unwrap_or_else(|| self.recorder.elapsed())
    }

    fn next_thread(&self) -> Option<usize> {
        let main_last = (1..self.threads.len()).chain([0]);
        main_last.into_iter().find(|&thread| self.can_go_on(thread))
    }

    fn can_go_on(&self, thread: usize) -> bool {
        let Thread { todo, waits, failure, .. } = &self.threads[thread];
        match waits {
            _ if failure.is_some() => false,
            Some(wait) => self.is_over(wait) || wait.until <= self.now(),
            None => !todo.is_empty(),
        }
    }

    /// Whether what a thread waits for has happened.
    fn is_over(&self, wait: &Wait<T>) -> bool {
        match &wait.task {
            Task::CheckOut(_) => {
                wait.check_out.as_ref().is_some_and(|(number, _)| self.inbox.has(*number))
            }
            Task::WaitForThread { target } => self.thread(target).has_ended(),
            Task::WaitForEvent { event, count, .. } => {
                self.recorder.count(event.as_str()) >= *count
            }
            Task::Wait { .. } => false,
            Task::Start { .. }
            | Task::CheckIn { .. }
            | Task::Clear { .. }
            | Task::Close {}
            | Task::Ready {}
            | Task::Abandon { .. }
            | Task::AssertCounts(_)
            | Task::SetOptions { .. }
            | Task::CheckInForeign {}
            | Task::CheckInAgain { .. }
            | Task::ResetAfterFork {} => true,
        }
    }

    /// Ends what a thread waits for, or begins its next operation.
    fn go_on(&mut self, thread: usize) -> Result<(), Failure> {
        if let Some(wait) = self.threads[thread].waits.take() {
            return self.finish(thread, wait);
        }
        let operation = self.threads[thread].todo.pop_front().expect("something to do");
        if let Some(other) = &operation.thread {
            let other = self.thread_mut(other);
            other.todo.push_back(Operation { thread: None, ..operation });
            return Ok(());
        }
        let task = operation.task;
        let limit = task.limit(self.limit);
        let mut until = self.now() + limit;
        if matches!(task, Task::WaitForEvent { .. }) && self.pool.virtual_time().is_none() {
            until += Self::GRACE;
        }
        let check_out = self.begin(&task)?;
        self.threads[thread].waits = Some(Wait { task, limit, until, check_out });
        Ok(())
    }

    fn begin(&mut self, task: &Task) -> Result<Option<StartedCheckOut<T>>, Failure> {
        match task {
            Task::Start { target } => {
                self.threads.push(Thread::new(target.clone(), VecDeque::new()));
            }
            Task::CheckOut(how) => {
                let number = self.check_outs;
                self.check_outs += 1;
                self.open.insert(number);
                let waiter = self.pool.check_out(how.request(), self.inbox.reply(number));
                return Ok(Some((number, waiter)));
            }
            Task::CheckIn { connection: label, broken, says } => {
                let connection = self.labelled.remove(label);
                let connection = connection.ok_or_else(|| not_checked_out(label))?;
                self.returned.insert(label.clone(), self.pool.connection_id(&connection));
                let error = broken.map(|broken| broken.error(says.as_deref()));
                self.pool.check_in(connection, error);
            }
            Task::CheckInAgain { connection: label } => {
                let returned = self.returned.get(label).ok_or_else(|| not_checked_out(label))?;
                self.pool.check_in_again(returned.unwrap_or_default())?;
            }
            Task::CheckInForeign {} => self.check_in_foreign()?,
            Task::Clear { interrupt_in_use_connections, service_of: None } => {
                self.pool.clear(cleared_by_file(), *interrupt_in_use_connections);
            }
            Task::Clear { service_of: Some(label), .. } => {
                let connection = self.labelled.get(label).ok_or_else(|| not_checked_out(label))?;
                let service = self.pool.service_id(connection)?.ok_or_else(no_service)?;
                self.pool.clear_service(cleared_by_file(), service)?;
            }
            Task::Close {} => self.pool.close(),
            Task::Ready {} => self.pool.ready(),
            Task::Abandon { target } => self.cancel(target)?,
            Task::AssertCounts(expected) => {
                expected.compare(&self.pool.counts()?).map_err(Failure::Script)?;
            }
            Task::SetOptions { options } => self.set_options(options)?,
            Task::ResetAfterFork {} => {
                let address = setup(self.scenario, &self.uri, &self.recorder).address();
                self.recorder.note(&Line::reset_after_fork(&address, self.now()));
                self.pool.reset_after_fork()?;
            }
            Task::Wait { .. } | Task::WaitForThread { .. } | Task::WaitForEvent { .. } => {}
        }
        Ok(None)
    }

    fn finish(&mut self, thread: usize, wait: Wait<T>) -> Result<(), Failure> {
        if !self.is_over(&wait) && !matches!(wait.task, Task::Wait { .. }) {
            let Thread { name, .. } = &self.threads[thread];
            let seen = |event: &str| self.recorder.count(event);
            return Err(Failure::Script(wait.task.timed_out(name, wait.limit, seen)));
        }
        match (wait.task, wait.check_out) {
            (Task::CheckOut(CheckOut { label, .. }), Some((number, _))) => {
                let outcome = self.inbox.take(number).expect("there is an outcome");
                self.checked_out(number, label, outcome)
            }
            (Task::WaitForThread { target }, _) => {
                self.thread(&target).failure.clone().map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    fn checked_out(
        &mut self,
        number: u64,
        label: Option<String>,
        outcome: Outcome<Connection<T>>,
    ) -> Result<(), Failure> {
        self.open.remove(&number);
        let lost = || Failure::Script("the pool dropped a check-out without an outcome".to_owned());
        let connection = outcome.ok_or_else(lost)?.map_err(Failure::Pool)?;
        let displaced = match label {
            Some(label) => self.labelled.insert(label, connection),
            None => Some(connection),
        };
        self.unlabelled.extend(displaced);
        Ok(())
    }

    /// Cancels what a thread waits for; a connection that arrives nevertheless is held until the end.
    fn cancel(&mut self, name: &str) -> Result<(), Failure> {
        let thread = self.thread_mut(name);
        match thread.waits.take() {
            Some(Wait { check_out: Some((number, waiter)), .. }) => {
                self.open.remove(&number);
                self.pool.cancel(waiter)?;
                Ok(())
            }
            waits => {
                thread.waits = waits;
                Err(Failure::Script(format!("{name} does not wait for a connection")))
            }
        }
    }

    fn set_options(&mut self, options: &Options) -> Result<(), Failure> {
        let options = options.to_pool_options().map_err(Failure::Script)?;
        let address = setup(self.scenario, &self.uri, &self.recorder).address();
        self.recorder.note(&Line::options_changed(&options, &address, self.now()));
        Ok(self.pool.set_options(options)?)
    }

    /// Checks in a connection of a second pool: it must go there, and nothing must change here.
    fn check_in_foreign(&mut self) -> Result<(), Failure> {
        let before = self.pool.counts()?;
        let recorder = Recorder::default();
        let other = self.target.open(setup(self.scenario, &self.uri, &recorder));
        let mut other = other.map_err(Failure::Script)?;
        other.ready();
        let inbox = Inbox::new(&recorder);
        let request = CheckOutRequest::new(Purpose::Other, None);
        let _waiter = other.check_out(request, inbox.reply(0));
        let outcome = loop {
            let progress = recorder.progress();
            match inbox.take(0) {
                Some(outcome) => break outcome,
                None if recorder.elapsed() > self.limit => break None,
                None => other.wait(&progress, self.limit),
            }
        };
        let no_outcome = || Failure::Script("the other pool gave no connection".to_owned());
        let connection = outcome.ok_or_else(no_outcome)?.map_err(Failure::Pool)?;
        if let Some(connection) = self.pool.check_in_foreign(connection)? {
            other.check_in(connection, None);
        }
        let (after, its) = (self.pool.counts()?, other.counts()?);
        other.close();
        other.finish().map_err(Failure::Script)?;
        if after == before && (its.available, its.in_use) == (1, 0) {
            return Ok(());
        }
        let what = "a connection of another pool was checked in";
        Err(Failure::Script(format!("{what}: this pool has {after}, the other one {its}")))
    }

    /// In real time, another thread of the pool can record an event a little later.
    fn wait_for_silence(&mut self) {
        while self.pool.virtual_time().is_none() {
            let before = self.recorder.events().len();
            self.wait(Self::SILENCE, |_| false);
            self.pool.flush();
            if self.recorder.events().len() == before {
                break;
            }
        }
    }

    /// Waits until something is so; returns whether it is.
    fn wait(&mut self, limit: Duration, mut is_so: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now() + limit;
        loop {
            let progress = self.recorder.progress();
            if is_so(self) {
                return true;
            }
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                return false;
            }
            self.pool.wait(&progress, left);
        }
    }

    /// Closes the pool and checks in all connections. Returns what is left, here or on the server.
    fn clean_up(mut self, server: Option<&dyn Server>) -> Result<(), String> {
        self.pool.close();
        let held = std::mem::take(&mut self.labelled).into_values();
        for connection in held.chain(std::mem::take(&mut self.unlabelled)).collect::<Vec<_>>() {
            self.pool.check_in(connection, None);
        }
        let mut complaints = Vec::new();
        let has_outcomes = |player: &mut Self| {
            for (number, outcome) in player.inbox.take_all() {
                player.open.remove(&number);
                if let Some(Ok(connection)) = outcome {
                    player.pool.check_in(connection, None);
                }
            }
            player.open.is_empty()
        };
        if !self.wait(Self::CLEANUP_LIMIT, has_outcomes) {
            complaints.push("a check-out never had an outcome".to_owned());
        }
        complaints.extend(self.pool.finish().err());
        let open = || server.and_then(Server::open_connections).unwrap_or_default();
        // The server takes a moment to notice that a socket was closed.
        let until = self.recorder.elapsed() + Self::CLEANUP_LIMIT;
        while open() > 0 && self.recorder.elapsed() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        match open() {
            0 => {}
            open => complaints.push(format!("the server still has {open} connections")),
        }
        if self.recorder.count("ConnectionPoolClosed") == 0 {
            complaints.push("there was no ConnectionPoolClosed".to_owned());
        }
        let report = self.recorder.finish();
        complaints.extend(report.findings.iter().map(|it| format!("the events, {it}")));
        if complaints.is_empty() {
            return Ok(());
        }
        Err(format!("after the pool was closed: {}", complaints.join("; ")))
    }

    fn thread(&self, name: &str) -> &Thread<T> {
        self.threads.iter().find(|thread| thread.name == name).expect("checked to be started")
    }

    fn thread_mut(&mut self, name: &str) -> &mut Thread<T> {
        self.threads.iter_mut().find(|thread| thread.name == name).expect("checked to be started")
    }

    /// Far more than a file can need.
    const STEPS: u32 = 100_000;

    /// How much later than it happens an event can be recorded in real time.
    const GRACE: Duration = Duration::from_secs(2);

    /// After this time without an event there are no more.
    const SILENCE: Duration = Duration::from_millis(50);

    /// How long closing may take: more than any machine needs.
    const CLEANUP_LIMIT: Duration = Duration::from_secs(20);
}

impl<T: Target> Thread<T> {
    const fn new(name: String, todo: VecDeque<Operation>) -> Self {
        Self { name, todo, waits: None, failure: None }
    }

    fn has_ended(&self) -> bool {
        self.failure.is_some() || (self.todo.is_empty() && self.waits.is_none())
    }
}

/// What a pool is created with to play a scenario.
pub(crate) fn setup(scenario: &Scenario, uri: &ConnectionString, recorder: &Recorder) -> Setup {
    let mut uri = uri.clone();
    uri.app_name = scenario.app_name().map(str::to_owned);
    let (fail_point, log) = (scenario.fail_point().cloned(), scenario.log().cloned());
    Setup::new(scenario.pool_options(), uri, fail_point, log, recorder.clone())
}

/// The error of `clear`: as if an operation had failed.
fn cleared_by_file() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "clear was called by the test")
}

fn no_service() -> Failure {
    Failure::Script("the connection has no service: poolOptions.loadBalanced is not set".to_owned())
}

fn not_checked_out(label: &str) -> Failure {
    Failure::Script(format!("nothing is checked out as {label} at present"))
}
