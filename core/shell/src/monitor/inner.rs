//! What is under the lock: the monitor's machine, and what is to be done when the lock is given back.

use std::collections::VecDeque;
use std::sync::Arc;

use cenote_core::client::Candidate;
use cenote_core::connect::EstablishOptions;
use cenote_core::error::ConnectionError;
use cenote_core::monitor::{
    Action, Input, InvalidMonitorOptions, Monitor, MonitorOptions, ServerDescription,
};
use cenote_core::pool::{self, Instant, PoolTypes};
use cenote_core::sdam::TopologyVersion;

use crate::outbox::Outbox;

/// The machine under its lock. What becomes of the pool is fed to it under this lock, too, so that
/// description and pool change at once (SD-04, SD-05): this lock comes before the pool's.
#[derive(Debug)]
pub struct MonitorInner {
    monitor: Monitor,
    outbox: Outbox<Action>,
    /// When the timer rings, as it was told.
    armed: Option<Instant>,
    /// Since when the server has been what it is.
    since: Instant,
    is_closed: bool,
}

/// What becomes of the pool: to be fed to it at once.
#[derive(Debug)]
pub enum PoolChange {
    /// It is ready (SD-02).
    Ready,
    /// It is cleared (SD-40).
    Clear {
        /// Why the check failed.
        cause: ConnectionError,
        /// Whether connections in use are broken off (SD-41).
        interrupt: bool,
    },
}

impl PoolChange {
    /// The input that does it.
    #[must_use]
    pub fn into_input<S: PoolTypes<Cause = ConnectionError>>(self) -> pool::Input<S> {
        match self {
            Self::Ready => pool::Input::Ready,
            Self::Clear { cause, interrupt } => {
                pool::Input::Clear { cause, interrupt, service: None }
            }
        }
    }
}

/// What one input has brought about for others than the server and its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whoever waits for a server looks again.
    pub is_news: bool,
    /// The timer has to ring earlier than it was told.
    pub is_due_earlier: bool,
}

impl MonitorInner {
    /// Begins to watch. The first check is in the outbox.
    ///
    /// # Errors
    ///
    /// As [`Monitor::new`].
    pub fn new(
        now: Instant,
        options: MonitorOptions,
        establish: Arc<EstablishOptions>,
    ) -> Result<Self, InvalidMonitorOptions> {
        let mut actions = VecDeque::new();
        let monitor = Monitor::new(now, options, establish, &mut actions)?;
        Ok(Self {
            monitor,
            outbox: Outbox::new(actions),
            armed: None,
            since: now,
            is_closed: false,
        })
    }

    /// Feeds one input. What concerns the pool is done at once, by `pool`; the rest waits in the outbox
    /// until the lock is given back.
    ///
    /// # Panics
    ///
    /// When the shell has broken the machine's contract.
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input,
        mut pool: impl FnMut(PoolChange),
    ) -> Outcome {
        self.is_closed |= matches!(input, Input::Close);
        let Self { monitor, outbox, .. } = self;
        let before = monitor.description().kind();
        let mut is_news = false;
        let mut sink = |action| match action {
            Action::MarkReady => pool(PoolChange::Ready),
            Action::ClearPool { cause, interrupt } => pool(PoolChange::Clear { cause, interrupt }),
            Action::EmitEvent(ref event) => {
                is_news |= event.is_news();
                outbox.push(action);
            }
            Action::Open { .. } | Action::Send { .. } | Action::Close { .. } => outbox.push(action),
        };
        if let Err(misuse) = monitor.handle(now, input, &mut sink) {
            unreachable!("a contract between shell and machine is broken: {misuse}");
        }
        if monitor.description().kind() != before {
            self.since = now;
        }
        Outcome { is_news, is_due_earlier: self.is_due_earlier() }
    }

    /// When the timer is to ring. It counts as told, and is told again only of an earlier time.
    pub fn arm(&mut self) -> Option<Instant> {
        self.armed = self.monitor.next_deadline().map(|deadline| deadline.at);
        self.armed
    }

    /// Nothing will ever be due again.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What is known of the server.
    #[must_use]
    pub const fn description(&self) -> &Arc<ServerDescription> {
        self.monitor.description()
    }

    /// What SDAM has to know besides an error.
    #[must_use]
    pub fn topology_version(&self) -> Option<TopologyVersion> {
        self.monitor.topology_version()
    }

    /// What the server is now, for who chooses one.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        let is_direct = self.monitor.options().is_direct;
        Candidate { kind: self.description().kind(), since: self.since, is_direct }
    }

    /// What is to be done without the lock, unless somebody does so already.
    pub(super) fn claim(&mut self) -> Option<VecDeque<Action>> {
        self.outbox.claim()
    }

    fn is_due_earlier(&mut self) -> bool {
        let Some(due) = self.monitor.next_deadline().map(|deadline| deadline.at) else {
            return false;
        };
        let is_earlier = self.armed.is_none_or(|armed| due < armed);
        if is_earlier {
            self.armed = Some(due);
        }
        is_earlier
    }
}

impl AsMut<Outbox<Action>> for MonitorInner {
    fn as_mut(&mut self) -> &mut Outbox<Action> {
        &mut self.outbox
    }
}
