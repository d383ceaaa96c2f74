//! The threads of a file, in virtual time.
//!
//! The order is always the same, though the format leaves it open. Whoever can go on does: threads
//! before the main thread, in the order in which they were started, one operation at a time. So a
//! free thread carries out what it is handed before the main thread's next operation. Only when
//! nobody can go on does time move, to the next thing that happens in the [`World`] or to the
//! moment when somebody stops waiting, whichever is first; at the same moment, what happens in the
//! world comes first.

use std::collections::{BTreeMap, VecDeque};

use cenote_core::pool::{ConnId, Instant};

use super::world::{Outcome, Socket, World};
use crate::conform::cmap::extension::CheckOut;
use crate::conform::cmap::operation::{MAIN, Operation, Task};
use crate::conform::cmap::played::{Failure, nothing_held, nothing_to_abandon};

/// The main thread, the others, and what they hold.
pub(super) struct Script {
    world: World,
    /// The main thread is the first.
    threads: Vec<Thread>,
    labels: BTreeMap<String, (ConnId, Socket)>,
    unlabelled: Vec<(ConnId, Socket)>,
    /// What came back last under each name.
    returned: BTreeMap<String, ConnId>,
}

struct Thread {
    name: String,
    todo: VecDeque<Operation>,
    /// An operation that has begun and cannot end yet, and when it ends at the latest.
    waits: Option<(Task, Instant)>,
    /// What ended the thread early.
    failure: Option<Failure>,
}

impl Script {
    /// A main thread that has everything before it.
    pub(super) fn new(world: World, operations: Vec<Operation>) -> Self {
        let main = Thread::new(MAIN.to_owned(), operations.into());
        let (labels, returned) = (BTreeMap::new(), BTreeMap::new());
        Self { world, threads: vec![main], labels, unlabelled: Vec::new(), returned }
    }

    /// Plays until the main thread ends; with what it failed, if it did. Errors of threads that
    /// nobody waited for do not count (T-69).
    pub(super) fn play(&mut self) -> Option<Failure> {
        for _ in 0..Self::STEPS {
            if let Some(thread) = self.next_thread() {
                if let Err(failure) = self.go_on(thread) {
                    self.threads[thread].failure = Some(failure);
                }
            } else if self.threads[0].has_ended() {
                return self.threads[0].failure.take();
            } else {
                self.let_time_pass();
            }
        }
        Some(Failure::Script(format!("nothing came to rest within {} steps", Self::STEPS)))
    }

    /// The world as it is, and everything that is checked out of its pool.
    pub(super) fn into_parts(self) -> (World, Vec<(ConnId, Socket)>) {
        (self.world, self.labels.into_values().chain(self.unlabelled).collect())
    }

    fn next_thread(&self) -> Option<usize> {
        let main_last = (1..self.threads.len()).chain([0]);
        main_last.into_iter().find(|&thread| self.can_go_on(thread))
    }

    fn can_go_on(&self, thread: usize) -> bool {
        let Thread { todo, waits, failure, .. } = &self.threads[thread];
        match waits {
            _ if failure.is_some() => false,
            Some((task, until)) => self.is_over(thread, task) || *until <= self.world.now(),
            None => !todo.is_empty(),
        }
    }

    /// Whether what a thread waits for has come about.
    fn is_over(&self, thread: usize, task: &Task) -> bool {
        match task {
            Task::CheckOut(_) => self.world.has_outcome(thread),
            Task::WaitForThread { target } => self.thread(target).has_ended(),
            Task::WaitForEvent { event, count, .. } => self.seen(event.as_str()) >= *count,
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
        if let Some((task, _)) = self.threads[thread].waits.take() {
            return self.finish(thread, task);
        }
        let operation = self.threads[thread].todo.pop_front().expect("something to do");
        if let Some(other) = &operation.thread {
            let other = self.thread_mut(other);
            other.todo.push_back(Operation { thread: None, ..operation });
            return Ok(());
        }
        self.begin(thread, &operation.task)?;
        let until = self.world.now() + operation.task.limit();
        self.threads[thread].waits = Some((operation.task, until));
        Ok(())
    }

    fn begin(&mut self, thread: usize, task: &Task) -> Result<(), Failure> {
        match task {
            Task::Start { target } => {
                self.threads.push(Thread::new(target.clone(), VecDeque::new()));
            }
            Task::CheckOut(how) => self.world.check_out(thread, how),
            Task::CheckIn { connection, broken, says } => {
                let held = self.labels.remove(connection);
                let (id, socket) = held.ok_or_else(|| nothing_held(connection))?;
                self.returned.insert(connection.clone(), id);
                let error = broken.map(|broken| broken.error(says.as_deref()));
                self.world.check_in(id, socket, error);
            }
            Task::CheckInAgain { connection } => {
                let id = self.returned.get(connection).ok_or_else(|| nothing_held(connection))?;
                self.world.is_refused(*id)?;
            }
            Task::CheckInForeign {} => self.world.is_refused(World::FOREIGN)?,
            Task::Clear { interrupt_in_use_connections, service_of: None } => {
                self.world.clear(*interrupt_in_use_connections);
            }
            Task::Clear { service_of: Some(label), .. } => {
                let (id, _) = self.labels.get(label).ok_or_else(|| nothing_held(label))?;
                self.world.clear_service_of(*id)?;
            }
            Task::Close {} => self.world.close(),
            Task::Ready {} => self.world.ready(),
            Task::Abandon { target } => self.abandon(target)?,
            Task::AssertCounts(counts) => counts.judge(&self.world.snapshot())?,
            Task::SetOptions { options } => self.world.set_options(options)?,
            Task::ResetAfterFork {} => self.world.reset_after_fork(),
            Task::Wait { .. } | Task::WaitForThread { .. } | Task::WaitForEvent { .. } => {}
        }
        Ok(())
    }

    fn finish(&mut self, thread: usize, task: Task) -> Result<(), Failure> {
        if !self.is_over(thread, &task) && !matches!(task, Task::Wait { .. }) {
            let Thread { name, .. } = &self.threads[thread];
            return Err(Failure::Script(task.in_vain(name, |event| self.seen(event))));
        }
        match task {
            Task::CheckOut(CheckOut { label, .. }) => {
                let outcome = self.world.take_outcome(thread).expect("there is an outcome");
                self.checked_out(label, outcome)
            }
            Task::WaitForThread { target } => {
                self.thread(&target).failure.clone().map_or(Ok(()), Err)
            }
            Task::Start { .. }
            | Task::Wait { .. }
            | Task::WaitForEvent { .. }
            | Task::CheckIn { .. }
            | Task::Clear { .. }
            | Task::Close {}
            | Task::Ready {}
            | Task::Abandon { .. }
            | Task::AssertCounts(_)
            | Task::SetOptions { .. }
            | Task::CheckInForeign {}
            | Task::CheckInAgain { .. }
            | Task::ResetAfterFork {} => Ok(()),
        }
    }

    /// Whoever waits there goes away; what came for him at this very moment comes home in the end.
    fn abandon(&mut self, name: &str) -> Result<(), Failure> {
        let thread = self.threads.iter().position(|thread| thread.name == name);
        let thread = thread.expect("checked to be started");
        match self.threads[thread].waits.take() {
            Some((Task::CheckOut(_), _)) => {
                self.unlabelled.extend(self.world.abandon(thread));
                Ok(())
            }
            waits => {
                self.threads[thread].waits = waits;
                Err(nothing_to_abandon(name))
            }
        }
    }

    fn checked_out(&mut self, label: Option<String>, outcome: Outcome) -> Result<(), Failure> {
        let connection = outcome.map_err(Failure::Pool)?;
        let displaced = match label {
            Some(label) => self.labels.insert(label, connection),
            None => Some(connection),
        };
        self.unlabelled.extend(displaced);
        Ok(())
    }

    /// To the next thing that happens, or to the moment when the first of those who wait gives up.
    fn let_time_pass(&mut self) {
        let waiting = self.threads.iter().filter(|thread| thread.failure.is_none());
        let patience = waiting.filter_map(|thread| thread.waits.as_ref()).map(|&(_, until)| until);
        let patience = patience.min().expect("the main thread waits");
        match self.world.next() {
            Some(at) if at <= patience => self.world.happen(),
            Some(_) | None => self.world.sleep_until(patience),
        }
    }

    fn seen(&self, event: &str) -> usize {
        self.world.events().iter().filter(|seen| seen["type"] == event).count()
    }

    fn thread(&self, name: &str) -> &Thread {
        self.threads.iter().find(|thread| thread.name == name).expect("checked to be started")
    }

    fn thread_mut(&mut self, name: &str) -> &mut Thread {
        self.threads.iter_mut().find(|thread| thread.name == name).expect("checked to be started")
    }

    /// Far more than a file can need.
    const STEPS: u32 = 100_000;
}

impl Thread {
    const fn new(name: String, todo: VecDeque<Operation>) -> Self {
        Self { name, todo, waits: None, failure: None }
    }

    fn has_ended(&self) -> bool {
        self.failure.is_some() || (self.todo.is_empty() && self.waits.is_none())
    }
}
