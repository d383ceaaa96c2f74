use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote_core::connect::EstablishOptions;
use cenote_core::error::ConnectionError;
use cenote_core::monitor::{
    Action, Input, InvalidMonitorOptions, Monitor, MonitorOptions, ServerDescription,
};
use cenote_core::outbox::Outbox;
use cenote_core::pool::{self, Instant, PoolTypes};
use cenote_core::sdam::TopologyVersion;

/// The machine, its actions that are not performed yet, and its timer.
pub(super) struct MonitorInner {
    monitor: Monitor,
    outbox: Outbox<Action>,
    timer: Timer,
    is_closed: bool,
}

#[derive(Default)]
struct Timer {
    /// When it fires.
    armed: Option<Instant>,
    /// Of the task, while it sleeps.
    waker: Option<Waker>,
}

/// What to do for an input after the lock is released, besides the actions.
#[derive(Default)]
pub(super) struct Outcome {
    /// To be woken: it has to fire earlier.
    pub(super) timer: Option<Waker>,
    /// Callers that wait for a server look again.
    pub(super) is_news: bool,
}

impl MonitorInner {
    /// With the first check among the actions.
    pub(super) fn new(
        now: Instant,
        options: MonitorOptions,
        establish: Arc<EstablishOptions>,
    ) -> Result<Self, InvalidMonitorOptions> {
        let mut actions = VecDeque::new();
        let monitor = Monitor::new(now, options, establish, &mut actions)?;
        let timer = Timer::default();
        Ok(Self { monitor, outbox: Outbox::new(actions), timer, is_closed: false })
    }

    /// Feeds one input. What concerns the pool is fed to it at once; other actions wait until the lock is
    /// released.
    // SD-02, SD-40, SD-41.
    pub(super) fn handle<S: PoolTypes<Cause = ConnectionError>>(
        &mut self,
        now: Instant,
        input: Input,
        mut feed_pool: impl FnMut(pool::Input<S>),
    ) -> Outcome {
        self.is_closed |= matches!(input, Input::Close);
        let Self { monitor, outbox, .. } = self;
        let mut is_news = false;
        let mut sink = |action| match action {
            Action::MarkReady => feed_pool(pool::Input::Ready),
            Action::ClearPool { cause, interrupt } => {
                feed_pool(pool::Input::Clear { cause, interrupt, service: None });
            }
            Action::EmitEvent(ref event) => {
                is_news |= event.is_news();
                outbox.push(action);
            }
            Action::Open { .. } | Action::Send { .. } | Action::Close { .. } => outbox.push(action),
        };
        if let Err(misuse) = monitor.handle(now, input, &mut sink) {
            unreachable!("the shell breaks the contract of the monitor: {misuse}");
        }
        Outcome { timer: self.timer_if_due_earlier(), is_news }
    }

    /// Sets the timer to the machine's next deadline, and returns that.
    pub(super) fn arm_timer(&mut self) -> Option<Instant> {
        self.timer.armed = self.next_deadline();
        self.timer.armed
    }

    /// Ready when the timer is no longer set to `armed`.
    pub(super) fn poll_rearmed(&mut self, armed: Option<Instant>, cx: &Context<'_>) -> Poll<()> {
        if self.timer.armed != armed {
            return Poll::Ready(());
        }
        // The task polls with its own waker, so that dropping the old one never drops the task.
        self.timer.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) const fn description(&self) -> &Arc<ServerDescription> {
        self.monitor.description()
    }

    /// The least time of a round trip, as soon as it is known.
    pub(super) fn min_round_trip(&self) -> Option<Duration> {
        self.monitor.round_trip().map(|round_trip| round_trip.minimum)
    }

    pub(super) fn topology_version(&self) -> Option<TopologyVersion> {
        self.monitor.topology_version()
    }

    /// The actions to perform without the lock; `None` if another thread performs them.
    pub(super) fn claim_actions(&mut self) -> Option<VecDeque<Action>> {
        self.outbox.claim()
    }

    fn timer_if_due_earlier(&mut self) -> Option<Waker> {
        let due = self.next_deadline()?;
        if self.timer.armed.is_some_and(|armed| armed <= due) {
            return None;
        }
        self.timer.armed = Some(due);
        self.timer.waker.take()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.monitor.next_deadline().map(|deadline| deadline.at)
    }
}

impl AsMut<Outbox<Action>> for MonitorInner {
    fn as_mut(&mut self) -> &mut Outbox<Action> {
        &mut self.outbox
    }
}
