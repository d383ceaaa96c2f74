//! The machine: what it remembers, and how an input finds its transition.

use std::sync::Arc;

use super::action::{Action, ActionSink, Line, SocketId};
use super::check::Check;
use super::measure::Measure;
use super::round_trip::RoundTrips;
use super::{
    Deadline, Event, Input, InvalidMonitorOptions, Misuse, MonitorOptions, RoundTrip,
    ServerDescription,
};
use crate::connect::{ConnectionDescription, EstablishOptions};
use crate::pool::Instant;
use crate::sdam::TopologyVersion;

/// Monitors one server: when it is checked, its description, and what that means for its pool.
///
/// As with the pool, the same options, times and inputs always give the same actions. Nothing here
/// blocks or panics, whatever is fed. A check allocates the command and the description.
#[derive(Debug)]
pub struct Monitor {
    pub(super) options: MonitorOptions,
    pub(super) establish: Arc<EstablishOptions>,
    pub(super) description: Arc<ServerDescription>,
    pub(super) check: Check,
    /// When a socket for checks was last opened.
    pub(super) opened: Instant,
    pub(super) measure: Measure,
    pub(super) round_trips: RoundTrips,
    /// A check was requested and has not begun.
    pub(super) is_requested: bool,
    /// Since when the application finds the server Unknown each time that a check has found it known.
    pub(super) doubted_since: Option<Instant>,
    pub(super) last_socket: SocketId,
    pub(super) now: Instant,
    pub(super) is_closed: bool,
}

/// A socket that is open.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) socket: SocketId,
    /// The reply to the last hello on it, which determines the next command.
    pub(super) last: Arc<ConnectionDescription>,
}

impl Monitor {
    /// Begins to watch: the first check starts at once.
    ///
    /// `establish` is what hello says, [for monitors](EstablishOptions::for_monitor): without a
    /// credential.
    ///
    /// # Errors
    ///
    /// When nothing can be watched like that; then nothing was emitted.
    pub fn new(
        now: Instant,
        options: MonitorOptions,
        establish: Arc<EstablishOptions>,
        out: &mut impl ActionSink,
    ) -> Result<Self, InvalidMonitorOptions> {
        let mut monitor = Self::new_after_pause(now, options, establish)?;
        monitor.begin_check(out);
        Ok(monitor)
    }

    /// Begins to watch after [`MonitorOptions::MIN_HEARTBEAT_FREQUENCY`]: for one of so many servers that are new at once
    /// that they may be made up.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn new_after_pause(
        now: Instant,
        options: MonitorOptions,
        establish: Arc<EstablishOptions>,
    ) -> Result<Self, InvalidMonitorOptions> {
        options.validate()?;
        if establish.load_balanced {
            return Err(InvalidMonitorOptions::LoadBalanced);
        }
        Ok(Self {
            options,
            establish,
            description: Arc::default(),
            check: Check::Waiting { since: now, connected: None },
            opened: now,
            measure: Measure::Off,
            round_trips: RoundTrips::default(),
            is_requested: true,
            doubted_since: None,
            last_socket: SocketId(0),
            now,
            is_closed: false,
        })
    }

    /// Takes one input and emits what follows from it, all of it, in order. If `now` runs
    /// backwards, the last one counts.
    ///
    /// # Errors
    ///
    /// An input that breaks the contract. Then nothing has changed and nothing was emitted.
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input,
        out: &mut impl ActionSink,
    ) -> Result<(), Misuse> {
        if !self.permit(&input)? {
            return Ok(());
        }
        self.now = self.now.max(now);
        match input {
            Input::Opened { socket, hello, round_trip } => {
                let connected = Connected { socket, last: Arc::from(hello) };
                match self.line(socket) {
                    Line::Check => self.check_opened(connected, round_trip, out),
                    Line::RoundTrip => self.measure_opened(connected, round_trip),
                }
            }
            Input::Replied { socket, reply, more_to_come } => match self.line(socket) {
                Line::Check => self.check_replied(&reply, more_to_come, out),
                Line::RoundTrip => self.measure_replied(),
            },
            Input::Failed { socket, error } => match self.line(socket) {
                Line::Check => self.check_failed(&error, out),
                Line::RoundTrip => self.measure_failed(out),
            },
            Input::RequestCheck => {
                self.is_requested = true;
                self.run_due_check(out);
            }
            Input::ApplicationFailed { error, verdict } => {
                self.application_failed(&error, verdict, out);
            }
            Input::Timer => {
                self.run_due_check(out);
                self.run_due_measure(out);
            }
            Input::Close => self.close(out),
        }
        Ok(())
    }

    /// When to feed [`Input::Timer`], and why; `None` when nothing will ever be due: it is closed,
    /// or waits for a server without limit.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        if self.is_closed {
            return None;
        }
        self.check_deadline().into_iter().chain(self.measure_deadline()).min()
    }

    /// The description of the server.
    #[must_use]
    pub const fn description(&self) -> &Arc<ServerDescription> {
        &self.description
    }

    /// How much is known of its state: what [`sdam::verdict`](crate::sdam::verdict()) wants to
    /// know, where there is no [topology](crate::topology), whose description counts.
    #[must_use]
    pub fn topology_version(&self) -> Option<TopologyVersion> {
        self.description.topology_version
    }

    /// Round-trip times as of now; `None` until one was measured, and after a check has failed.
    #[must_use]
    pub fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trips.get()
    }

    /// The options of hello on both sockets.
    #[must_use]
    pub const fn establish_options(&self) -> &Arc<EstablishOptions> {
        &self.establish
    }

    /// The options as they were given.
    #[must_use]
    pub const fn options(&self) -> &MonitorOptions {
        &self.options
    }
}

impl Monitor {
    /// The socket that is opened next.
    pub(super) const fn next_socket(&self) -> SocketId {
        SocketId(self.last_socket.0.saturating_add(1))
    }

    pub(super) fn open(&mut self, line: Line, out: &mut impl ActionSink) -> SocketId {
        self.last_socket = self.next_socket();
        out.act(Action::Open { socket: self.last_socket, line });
        self.last_socket
    }

    /// The description comes before what happens to the pool, and is told before that.
    pub(super) fn describe(&mut self, new: ServerDescription, out: &mut impl ActionSink) {
        let new = Arc::new(new);
        let previous = std::mem::replace(&mut self.description, Arc::clone(&new));
        if !previous.says_the_same_as(&new) {
            out.act(Action::EmitEvent(Event::ServerDescriptionChanged { previous, new }));
        }
    }

    /// Of a socket that is not closed.
    fn line(&self, socket: SocketId) -> Line {
        let is_measuring = self.measure.socket() == Some(socket);
        if is_measuring { Line::RoundTrip } else { Line::Check }
    }

    // SM-13
    fn close(&mut self, out: &mut impl ActionSink) {
        self.is_closed = true;
        let check = std::mem::replace(&mut self.check, Check::idle(self.now));
        for socket in check.socket().into_iter().chain(self.measure.socket()) {
            out.act(Action::Close { socket });
        }
        self.measure = Measure::Off;
    }
}
