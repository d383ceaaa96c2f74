//! Takes the machine's actions, under the lock.

use cenote_core::error::ConnectionError;
use cenote_core::outbox::Outbox;
use cenote_core::pool::{Action, ActionSink, CheckOutError, Event, FailedRequests};

use super::failing::Failing;
use super::types::{Delivery, Types};
use super::waiters::Waiters;
use crate::connection::Connector;
use crate::event::Notification;
use crate::notifications::NotificationQueue;
use crate::runtime::Runtime;
use crate::runtime::wake_list::WakeList;

/// Actions that wait for the lock to be released.
pub(super) struct Pending<R: Runtime, K: Connector<R>> {
    /// Sockets to open, interrupt and close, in the machine's order. No subscriber delays them.
    pub(super) work: Outbox<Action<Types<R, K>>>,
    /// Events and reports, in the machine's order.
    pub(super) notifications: NotificationQueue<Notification>,
    /// How many sockets are to be closed: in `work`, and on their way out of it.
    pub(super) closing: usize,
    /// A task performs what a caller has left of `work`.
    pub(super) has_work_task: bool,
    /// A check-out timed out since this was last read.
    pub(super) has_timed_out: bool,
    /// Callers that fail with many others.
    pub(super) failing: Failing,
    /// Callers that were answered while another lock was held.
    pub(super) wakes: WakeList<R::Waiter>,
}

impl<R: Runtime, K: Connector<R>> Pending<R, K> {
    pub(super) fn new(notifications_max: usize) -> Self {
        Self {
            work: Outbox::default(),
            notifications: NotificationQueue::new(notifications_max),
            closing: 0,
            has_work_task: false,
            has_timed_out: false,
            failing: Failing::default(),
            wakes: WakeList::default(),
        }
    }

    /// Whether there is nothing to do after the lock is released.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.work.queued() == 0 && self.notifications.queued() == 0 && self.failing.is_empty()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, action: Action<Types<R, K>>) {
        match action {
            Action::EmitEvent(event) => self.notifications.push(Notification::Event(event)),
            Action::ReportLeak { id, held } => {
                self.notifications.push(Notification::Leak { id, held });
            }
            Action::ReportUnanswered { id, pending } => {
                self.notifications.push(Notification::Unanswered { id, pending });
            }
            Action::CloseSocket { .. } => {
                self.closing += 1;
                self.work.push(action);
            }
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::Interrupt { .. } => self.work.push(action),
            Action::Deliver { .. } => unreachable!("delivered under the lock"),
        }
    }
}

/// The sink of one input: answers go into their slots, everything else waits.
pub(super) struct ActionCollector<'a, R: Runtime, K: Connector<R>> {
    pub(super) pending: &'a mut Pending<R, K>,
    pub(super) waiters: &'a mut Waiters<R, K>,
    pub(super) wakes: &'a mut WakeList<R::Waiter>,
    pub(super) wants_events: bool,
    /// The slot of the caller that is checking out, and the answer if there is one at once.
    pub(super) caller: Option<u32>,
    pub(super) answer: Option<Delivery<R, K>>,
}

/// The sink of an input that is handled at once, which has no other action than events, and these are not wanted.
pub(super) struct NoEvents;

impl<R: Runtime, K: Connector<R>> ActionSink<Types<R, K>> for NoEvents {
    fn act(&mut self, _: Action<Types<R, K>>) {
        unreachable!("there is nothing but events");
    }

    #[inline(always)]
    fn wants_events(&self) -> bool {
        false
    }
}

/// The events of an input that is handled at once, two at most: they need no queue where they are told next.
#[derive(Default)]
pub(super) struct FewEvents {
    first: Option<Event<ConnectionError>>,
    second: Option<Event<ConnectionError>>,
}

impl FewEvents {
    /// Gives each to `tell`, in their order.
    #[inline(always)]
    pub(super) fn take(&mut self, mut tell: impl FnMut(Event<ConnectionError>)) {
        self.first.take().into_iter().for_each(&mut tell);
        self.second.take().into_iter().for_each(tell);
    }
}

impl<R: Runtime, K: Connector<R>> ActionSink<Types<R, K>> for FewEvents {
    #[inline(always)]
    fn act(&mut self, action: Action<Types<R, K>>) {
        let Action::EmitEvent(event) = action else { unreachable!("there is nothing but events") };
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.second = Some(event);
        }
    }
}

impl<R: Runtime, K: Connector<R>> ActionSink<Types<R, K>> for ActionCollector<'_, R, K> {
    #[inline(always)]
    fn act(&mut self, action: Action<Types<R, K>>) {
        match action {
            Action::Deliver { waiter, outcome } if self.caller == Some(waiter) => {
                self.answer = Some(outcome.map(|(_, conn)| conn));
            }
            Action::Deliver { waiter, outcome } => {
                self.deliver(waiter, outcome.map(|(_, conn)| conn));
            }
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => self.pending.push(action),
        }
    }

    #[inline]
    fn wants_events(&self) -> bool {
        self.wants_events
    }

    fn fail_all(&mut self, slots: FailedRequests<u32>, error: &CheckOutError<ConnectionError>) {
        self.pending.failing.push(slots, error.clone());
    }
}

impl<R: Runtime, K: Connector<R>> ActionCollector<'_, R, K> {
    #[inline(never)]
    fn deliver(&mut self, slot: u32, outcome: Delivery<R, K>) {
        // A caller that cancelled does not come for an answer.
        if matches!(outcome, Err(CheckOutError::Cancelled)) {
            self.waiters.remove(slot);
            return;
        }
        let timed_out = matches!(outcome, Err(CheckOutError::WaitQueueTimeout { .. }));
        self.pending.has_timed_out |= timed_out;
        if let Some(waiter) = self.waiters.answer(slot, outcome) {
            self.wakes.push(waiter);
        }
    }
}
