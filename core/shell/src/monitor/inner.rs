use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote_core::connect::EstablishOptions;
use cenote_core::error::ConnectionError;
use cenote_core::monitor::{
    Action, Event, Input, InvalidMonitorOptions, Monitor, MonitorOptions, ServerDescription,
};
use cenote_core::outbox::Outbox;
use cenote_core::pool::{self, Instant, PoolTypes};

/// The machine, its actions that are not performed yet, and its timer.
pub(super) struct MonitorInner {
    monitor: Monitor,
    /// The start of the first check, until the monitor starts.
    first: Vec<Event>,
    /// Sockets to open, to use and to close. No subscriber of another server delays them.
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

/// The events of one input, of which the change of the description is somewhere in the middle.
#[derive(Default)]
pub(super) struct Events {
    pub(super) before: Vec<Event>,
    pub(super) after: Vec<Event>,
    is_described: bool,
}

impl MonitorInner {
    /// With the first check among the actions.
    pub(super) fn new(
        now: Instant,
        options: MonitorOptions,
        establish: Arc<EstablishOptions>,
    ) -> Result<Self, InvalidMonitorOptions> {
        let (mut first, mut outbox) = (Vec::new(), Outbox::default());
        let mut sink = |action| match action {
            Action::EmitEvent(event) => first.push(event),
            Action::Open { .. }
            | Action::Send { .. }
            | Action::Close { .. }
            // PRD-05
            | Action::MarkReady
            | Action::ClearPool { .. } => outbox.push(action),
        };
        let monitor = Monitor::new(now, options, establish, &mut sink)?;
        let timer = Timer::default();
        Ok(Self { monitor, first, outbox, timer, is_closed: false })
    }

    /// The start of the first check. There is none the next time.
    pub(super) fn take_first(&mut self) -> Vec<Event> {
        mem::take(&mut self.first)
    }

    /// Feeds one input. What concerns the pool is fed to it at once, and events are put into `events`; other actions wait
    /// until the lock is released.
    // SD-02, SD-40, SD-41.
    pub(super) fn handle<S: PoolTypes<Cause = ConnectionError>>(
        &mut self,
        now: Instant,
        input: Input,
        events: &mut Events,
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
            Action::EmitEvent(event) => {
                is_news |= event.is_news();
                events.push(event);
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

impl Events {
    fn push(&mut self, event: Event) {
        match event {
            // The topology tells of it.
            Event::ServerDescriptionChanged { .. } => self.is_described = true,
            // The next check comes after what the last one has found, be it nothing new.
            Event::ServerHeartbeatStarted { .. } => self.after.push(event),
            Event::ServerHeartbeatSucceeded { .. } | Event::ServerHeartbeatFailed { .. } | _ => {
                let part = if self.is_described { &mut self.after } else { &mut self.before };
                part.push(event);
            }
        }
    }
}

impl AsMut<Outbox<Action>> for MonitorInner {
    fn as_mut(&mut self) -> &mut Outbox<Action> {
        &mut self.outbox
    }
}
