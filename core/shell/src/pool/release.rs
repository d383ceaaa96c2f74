//! The lock is released; then callers are woken, actions performed and subscribers notified.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use cenote_core::outbox::drain_some;
use cenote_core::pool::Action;

use super::collector::FewEvents;
use super::driver::{InnerGuard, PoolDriver};
use super::inner::PoolInner;
use super::types::{InputContext, Types};
use super::{drain as late_reply, establish, rest};
use crate::connection::Connector;
use crate::connection::interrupt::Interrupt;
use crate::event::Notification;
use crate::log;
use crate::runtime::reentrancy::ReentrancyGuard;
use crate::runtime::wake_list::WakeList;
use crate::runtime::{Runtime, contain};

/// How many actions a caller or a task performs of those that come while it performs what it has claimed; and how many
/// notifications it tells: connectors and subscribers may take long.
pub(super) const TURN: usize = 256;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    #[inline(always)]
    pub(super) fn release_at_once(mut inner: InnerGuard<'_, R, K>) {
        let is_timed = inner.state.needs_now_at_once();
        let timer = if is_timed { inner.arm_at_once() } else { None };
        Self::release_and_wake(inner, timer);
    }

    /// [`release_at_once`](Self::release_at_once), after which subscribers are told. The events are queued only behind others.
    #[inline(always)]
    pub(super) fn release_and_tell(
        self: &Arc<Self>,
        mut inner: InnerGuard<'_, R, K>,
        mut events: FewEvents,
    ) {
        let is_timed = inner.state.needs_now_at_once();
        let timer = if is_timed { inner.arm_at_once() } else { None };
        let pending = &mut inner.pending;
        if pending.work.queued() > 0 || !pending.notifications.claim_idle() {
            events.take(|event| pending.notifications.push(Notification::Event(event)));
            return self.release_and_perform(inner, WakeList::default(), timer);
        }
        Self::release_and_wake(inner, timer);
        let here = self.enter();
        contain(|| events.take(|event| self.subscribers.tell(&self.address, event)));
        drop(here);
        let mut inner = self.lock();
        match inner.pending.notifications.claim_more() {
            None => self.notify_if_empty(inner),
            more => {
                drop(inner);
                self.run_notifications(more);
            }
        }
    }

    #[inline(always)]
    pub(super) fn release_and_wake(inner: InnerGuard<'_, R, K>, timer: Option<Waker>) {
        drop(inner);
        if let Some(timer) = timer {
            timer.wake();
        }
    }

    /// Releases the lock; then wakes callers, performs actions and tells subscribers, unless another
    /// thread is doing that already. Subscribers come last, because they may take long.
    #[inline(always)]
    pub(super) fn release_and_run(
        self: &Arc<Self>,
        mut inner: InnerGuard<'_, R, K>,
        context: InputContext,
        wakes: WakeList<R::Waiter>,
    ) {
        let timer = self.prepare_release(&mut inner, context);
        if inner.pending.is_empty() && wakes.is_empty() && timer.is_none() {
            // The usual case, in which not even the drop of nothing is worth its instructions.
            mem::forget((wakes, timer));
        } else {
            self.release_and_perform(inner, wakes, timer);
        }
    }

    #[inline(always)]
    fn release_and_perform(
        self: &Arc<Self>,
        mut inner: InnerGuard<'_, R, K>,
        wakes: WakeList<R::Waiter>,
        timer: Option<Waker>,
    ) {
        let pending = &mut inner.pending;
        let (work, notifications) = (pending.work.claim(), pending.notifications.claim());
        let has_overflowed = pending.notifications.take_overflow();
        let is_failing = !pending.failing.is_empty();
        drop(inner);
        if has_overflowed {
            log::events_dropped(&self.address);
        }
        if is_failing {
            self.fail_in_turns();
        }
        self.run_work(wakes, timer, work);
        self.run_notifications(notifications);
    }

    /// Arms the timer and wakes the writer of a trace, if that is necessary. Returns the timer's waker.
    #[inline(always)]
    pub(super) fn prepare_release(
        &self,
        inner: &mut PoolInner<R, K>,
        context: InputContext,
    ) -> Option<Waker> {
        let timer = match context {
            InputContext { is_timed: false, .. } => None,
            InputContext { is_use: true, .. } => inner.arm_after_use(),
            InputContext { is_use: false, .. } => inner.arm(),
        };
        if inner.state.wants_writer(inner.pending.has_timed_out) {
            let has_timed_out = mem::take(&mut inner.pending.has_timed_out);
            inner.state.call_writer(has_timed_out, &self.traces);
        }
        timer
    }

    #[inline(always)]
    pub(super) fn run_work(
        self: &Arc<Self>,
        wakes: WakeList<R::Waiter>,
        timer: Option<Waker>,
        work: Option<VecDeque<Action<Types<R, K>>>>,
    ) {
        if wakes.is_empty() && timer.is_none() {
            mem::forget((wakes, timer));
        } else {
            Self::wake_all(wakes, timer);
        }
        if let Some(work) = work {
            self.perform_some(work);
        }
    }

    /// Performs what was claimed, which others may have left, and some of what they bring about meanwhile; all of that where
    /// no task may come to the rest.
    // Apart from the check-outs and check-ins that need none of it.
    #[inline(never)]
    fn perform_some(self: &Arc<Self>, mut work: VecDeque<Action<Types<R, K>>>) {
        let _here = self.enter();
        loop {
            let most = work.len() + TURN;
            let mut inner = drain_some(most, || self.lock(), work, |action| self.perform(action));
            if inner.pending.work.queued() == 0 {
                return;
            }
            // The runtime of a closed pool may have ended, and a child process has that of its parent.
            if !inner.is_closed() && !self.is_inherited() {
                inner.pending.work.hand_over();
                return rest::leave_work(self, inner);
            }
            work = inner.pending.work.claim_rest(usize::MAX);
        }
    }

    /// Performs more of what was left. Returns whether something may still be.
    pub(super) fn perform_rest(self: &Arc<Self>) -> bool {
        let mut inner = self.lock();
        let rest = inner.pending.work.claim();
        inner.pending.has_work_task = rest.is_some();
        drop(inner);
        let is_any = rest.is_some();
        rest.into_iter().for_each(|rest| self.perform_some(rest));
        is_any
    }

    #[inline(always)]
    pub(super) fn run_notifications(
        self: &Arc<Self>,
        notifications: Option<VecDeque<Notification>>,
    ) {
        if let Some(notifications) = notifications
            && self.notify_some(TURN, notifications)
        {
            rest::start(self, Self::notify_rest);
        }
    }

    /// Tells one more turn of what was left. Returns whether something still is.
    fn notify_rest(self: &Arc<Self>) -> bool {
        let rest = self.lock().pending.notifications.claim_rest(TURN);
        self.notify_some(TURN, rest)
    }

    /// Returns whether something is left.
    // Apart from the check-outs and check-ins that need none of it.
    #[inline(never)]
    pub(super) fn notify_some(
        self: &Arc<Self>,
        most: usize,
        notifications: VecDeque<Notification>,
    ) -> bool {
        let _here = self.enter();
        let inner = drain_some(most, || self.lock(), notifications, |it| self.notify(it));
        let is_left = inner.pending.notifications.queued() > 0;
        self.notify_if_empty(inner);
        is_left
    }

    #[inline(never)]
    fn wake_all(wakes: WakeList<R::Waiter>, timer: Option<Waker>) {
        wakes.wake(Self::wake);
        timer.into_iter().for_each(Waker::wake);
    }

    /// A waker of a foreign executor that panics must not keep the other callers waiting, nor end a check-in.
    pub(super) fn wake(waiter: R::Waiter) {
        contain(|| R::wake(waiter));
    }

    pub(super) fn enter(self: &Arc<Self>) -> Option<ReentrancyGuard> {
        R::CALLERS_BLOCK.then(|| ReentrancyGuard::enter(self))
    }

    // Apart from the check-outs and check-ins that need none of it.
    #[inline(never)]
    fn perform(self: &Arc<Self>, action: Action<Types<R, K>>) {
        match action {
            // The deadline of the request ends its wait, and not the establishment.
            Action::StartEstablish { id, owner, deadline, generation: _ } => {
                establish::start(self, id, owner, deadline.is_some());
            }
            Action::AbortEstablish { id } => self.abort_task(id),
            Action::CloseSocket { id, conn } => {
                // A connection whose drop panics is closed all the same.
                contain(|| drop(conn));
                self.socket_closed(id);
            }
            Action::StartDrain { id, conn } => late_reply::start(self, id, conn),
            Action::AbortDrain { id } => self.abort_task(id),
            Action::Interrupt { id } => {
                let interrupt = self.lock().interrupts.get(&id).cloned();
                // A shutdown in a child process would shut down the parent's socket.
                let stop = if self.runtime.is_inherited() {
                    Interrupt::renounce
                } else {
                    Interrupt::interrupt
                };
                interrupt.as_deref().into_iter().for_each(stop);
            }
            Action::EmitEvent(_) | Action::ReportLeak { .. } | Action::ReportUnanswered { .. } => {
                unreachable!("told, not performed")
            }
            Action::Deliver { .. } => unreachable!("delivered under the lock"),
        }
    }

    pub(super) fn notify(&self, notification: Notification) {
        match notification {
            Notification::Event(event) => self.subscribers.tell(&self.address, event),
            Notification::Leak { id, held } => self.leak_detector.report(&self.address, id, held),
            Notification::Unanswered { id, pending } => {
                log::unanswered(&self.address, id.number(), pending);
            }
        }
    }
}
