//! What is under the lock: the machine, the callers that wait, and what is to be done after the lock is
//! released.

use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use cenote_core::outbox::Outbox;
use cenote_core::pool::{Action, ConnId, Input, Instant, Misuse, Purpose, Status, WaiterId};

use super::clear_report::{BeforeClear, ClearReport};
use super::collector::{ActionCollector, Pending};
use super::rest;
use super::types::{CheckOutResult, FailedCheckOut, Types};
use super::waiters::{WaiterKey, Waiters};
use crate::connection::Connector;
use crate::connection::interrupt::Interrupt;
use crate::event::Notification;
use crate::runtime::Runtime;
use crate::runtime::wake_list::WakeList;
use crate::trace::RecordedPool;

pub(super) struct PoolInner<R: Runtime, K: Connector<R>> {
    pub(super) state: RecordedPool<Types<R, K>>,
    /// The number of the last check-out.
    pub(super) check_outs: u64,
    /// There is a socket at which the pool can be inspected. Only then its clears are counted.
    pub(super) is_inspected: bool,
    /// How often the pool, or one of its services, was cleared.
    pub(super) clears: u64,
    pub(super) last_clear: Option<ClearReport>,
    /// Where the last check-out that is recorded was called.
    place: Option<&'static Location<'static>>,
    pub(super) waiters: Waiters<R, K>,
    pub(super) pending: Pending<R, K>,
    pub(super) timer: TimerState,
    /// The tasks that open connections, read late replies or do what callers have left, until they end.
    pub(super) tasks: BTreeMap<TaskKey, ConnectionTask<R>>,
    /// The number of the last of them.
    pub(super) last_task: u64,
    /// Connections that are open.
    pub(super) interrupts: BTreeMap<ConnId, Arc<Interrupt>>,
}

/// A connection, and the number of one of its tasks. A connection may have several tasks at once: one whose result
/// the pool has, and that still runs subscribers, does not delay the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskKey {
    pub(super) id: ConnId,
    pub(super) number: u64,
}

/// A task that opens a connection or reads its late reply.
pub(super) struct ConnectionTask<R: Runtime> {
    /// There as soon as the task was spawned.
    pub(super) task: Option<R::Task>,
    /// The pool does not want the connection any more.
    pub(super) is_aborted: bool,
    /// Its socket may be open.
    pub(super) is_open: bool,
}

/// When the timer fires, and how it hears of an earlier time.
#[derive(Default)]
pub(super) struct TimerState {
    pub(super) armed: Option<Instant>,
    pub(super) waker: Option<Waker>,
    /// Which timer counts: a pool that was reset after a fork has another one.
    pub(super) number: u32,
}

/// What a caller asks for.
#[derive(Clone, Copy)]
pub(super) struct CheckOutArgs {
    pub(super) deadline: Option<Instant>,
    pub(super) purpose: Purpose,
}

impl<R: Runtime, K: Connector<R>> PoolInner<R, K> {
    /// `first` are the machine's actions when it was made, and `event_queue` is how many notifications may be
    /// queued.
    pub(super) fn new(
        state: RecordedPool<Types<R, K>>,
        first: VecDeque<Action<Types<R, K>>>,
        event_queue: usize,
    ) -> Self {
        let mut pending = Pending::new(event_queue);
        first.into_iter().for_each(|action| pending.push(action));
        Self {
            state,
            check_outs: 0,
            place: None,
            is_inspected: false,
            clears: 0,
            last_clear: None,
            waiters: Waiters::new(),
            pending,
            timer: TimerState::default(),
            tasks: BTreeMap::new(),
            last_task: 0,
            interrupts: BTreeMap::new(),
        }
    }

    /// Since when the request waits that has waited longest.
    pub(super) fn oldest_request(&self) -> Option<Instant> {
        // Requests that own a connection come first, the oldest of them and of the others first.
        let owners = usize::try_from(self.state.snapshot().owners).unwrap_or(usize::MAX);
        let mut waiters = self.state.waiters().map(|waiter| waiter.started);
        let first = waiters.next();
        let second = owners.checked_sub(1).and_then(|rest| waiters.nth(rest));
        first.into_iter().chain(second).min()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.snapshot().status == Status::Closed
    }

    /// Whether the pool is closed and empty: everything was checked in, and every socket that was open is
    /// closed.
    pub(super) fn is_empty(&self) -> bool {
        // The cheap test first: it tells almost always, and is implied by the others.
        if !self.interrupts.is_empty() {
            return false;
        }
        let snapshot = self.state.snapshot();
        snapshot.status == Status::Closed && snapshot.total == 0 && self.pending.closing == 0
    }

    /// Whether it is [empty](Self::is_empty), no task has a connection, and subscribers were told of all that.
    pub(super) fn is_drained(&self) -> bool {
        let is_rest = |key: &TaskKey| key.id == rest::NO_CONNECTION;
        self.is_empty() && self.tasks.keys().all(is_rest) && self.pending.notifications.is_idle()
    }

    /// Whether a task that was added before this one, and aborted, may have its socket open.
    pub(super) fn has_aborted_before(&self, key: TaskKey) -> bool {
        let open = self.tasks.iter().filter(|(_, task)| task.is_aborted && task.is_open);
        open.map(|(earlier, _)| earlier).any(|earlier| earlier.number < key.number)
    }

    /// Feeds one input. Callers that get an answer by it are put into `wakes`.
    ///
    /// # Panics
    ///
    /// When the shell broke the machine's contract.
    // Inlined, as the machine's own `handle` is, into callers that know which input they feed.
    #[inline(always)]
    pub(super) fn handle(
        &mut self,
        now: Instant,
        input: Input<Types<R, K>>,
        wants_events: bool,
        wakes: &mut WakeList<R::Waiter>,
    ) {
        let mut collector = ActionCollector {
            pending: &mut self.pending,
            waiters: &mut self.waiters,
            wakes,
            wants_events,
            caller: None,
            answer: None,
        };
        if let Err(misuse) = self.state.handle(now, input, &mut collector) {
            contract_broken(&misuse);
        }
    }

    /// What is to be known before an input is fed that clears a pool that is inspected.
    #[inline(always)]
    pub(super) fn before_clear(&self, input: &Input<Types<R, K>>) -> Option<Box<BeforeClear>> {
        let Input::Clear { cause, interrupt, service } = input else { return None };
        if !self.is_inspected {
            return None;
        }
        BeforeClear::new(&self.state, cause, *interrupt, *service)
    }

    /// Notes what that input has done.
    #[cold]
    #[inline(never)]
    pub(super) fn after_clear(&mut self, before: &BeforeClear, at: Instant) {
        if let Some(report) = before.report(&self.state, at) {
            self.clears += 1;
            self.last_clear = Some(report);
        }
    }

    /// Records where the next check-out is called.
    pub(super) fn set_place(&mut self, caller: &'static Location<'static>) {
        if !self.place.is_some_and(|known| ptr::eq(known, caller)) {
            self.place = Some(caller);
            self.state.set_place(Some(caller.into()));
        }
    }

    /// Feeds a check-out. Returns the answer if there is one at once; otherwise the key of a slot, into
    /// which the caller's waiter has to be [parked](Waiters::park). `clock` is read in that case only.
    #[inline(always)]
    pub(super) fn check_out(
        &mut self,
        now: Instant,
        CheckOutArgs { deadline, purpose }: CheckOutArgs,
        clock: impl FnOnce() -> std::time::Instant,
        wants_events: bool,
        wakes: &mut WakeList<R::Waiter>,
    ) -> Result<CheckOutResult<R, K>, WaiterKey> {
        self.check_outs += 1;
        let id = WaiterId(self.check_outs);
        let slot = self.waiters.next_slot();
        let input = Input::CheckOutRequested { id, waiter: slot, deadline, purpose };
        let mut collector = ActionCollector {
            pending: &mut self.pending,
            waiters: &mut self.waiters,
            wakes,
            wants_events,
            caller: Some(slot),
            answer: None,
        };
        if let Err(misuse) = self.state.handle(now, input, &mut collector) {
            contract_broken(&misuse);
        }
        if let Some(answer) = collector.answer {
            return Ok(answer.map_err(|error| FailedCheckOut { error, request: id }));
        }
        self.waiters.add();
        Err(WaiterKey { slot, id, since: clock() })
    }
}

impl<R: Runtime, K: Connector<R>> AsMut<Outbox<Action<Types<R, K>>>> for PoolInner<R, K> {
    fn as_mut(&mut self) -> &mut Outbox<Action<Types<R, K>>> {
        &mut self.pending.work
    }
}

impl<R: Runtime, K: Connector<R>> AsMut<Outbox<Notification>> for PoolInner<R, K> {
    fn as_mut(&mut self) -> &mut Outbox<Notification> {
        self.pending.notifications.as_mut()
    }
}

/// A defect of the shell.
#[cold]
fn contract_broken<R: Runtime, K: Connector<R>>(misuse: &Misuse<Types<R, K>>) -> ! {
    panic!("the contract between shell and machine is broken: {misuse}");
}
