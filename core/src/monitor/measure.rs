//! Round-trip times on a socket of their own, while checks are streamed.
//!
//! Nothing that happens here changes the description of the server or emits an event.

use core::time::Duration;

use super::action::{Action, ActionSink, Line, SocketId};
use super::machine::Connected;
use super::{Deadline, DeadlineReason, Monitor};
use crate::connect::Command;
use crate::pool::Instant;
use crate::wire::Flags;

/// Where the line of round-trip times is.
#[derive(Debug)]
pub(super) enum Measure {
    /// Checks measure the time themselves.
    Off,
    /// The socket is being opened, and its hello is timed.
    Opening { socket: SocketId },
    /// A reply is to come.
    Asking { connected: Connected, started: Instant },
    /// Between two times.
    Waiting { since: Instant, connected: Option<Connected> },
}

impl Monitor {
    // SD-50, SM-07
    pub(super) fn start_measuring(&mut self, out: &mut impl ActionSink) {
        if let Measure::Off = self.measure {
            self.measure = Measure::Opening { socket: self.open(Line::RoundTrip, out) };
        }
    }

    pub(super) fn stop_measuring(&mut self, out: &mut impl ActionSink) {
        if let Some(socket) = self.measure.socket() {
            out.act(Action::Close { socket });
        }
        self.measure = Measure::Off;
    }

    pub(super) fn measure_opened(&mut self, connected: Connected, round_trip: Duration) {
        self.round_trips.add(round_trip);
        self.measure = Measure::Waiting { since: self.now, connected: Some(connected) };
    }

    /// The content of the reply does not matter.
    // SM-08
    pub(super) fn measure_replied(&mut self) {
        let measure = std::mem::replace(&mut self.measure, Measure::Off);
        if let Measure::Asking { connected, started } = measure {
            self.round_trips.add(self.now.saturating_since(started));
            self.measure = Measure::Waiting { since: self.now, connected: Some(connected) };
        }
    }

    /// The next time is taken on a new socket, when it is due.
    // SD-42
    pub(super) fn measure_failed(&mut self, out: &mut impl ActionSink) {
        if let Some(socket) = self.measure.socket() {
            out.act(Action::Close { socket });
        }
        self.measure = Measure::Waiting { since: self.now, connected: None };
    }

    pub(super) fn run_due_measure(&mut self, out: &mut impl ActionSink) {
        if self.measure_deadline().is_none_or(|due| due.at > self.now) {
            return;
        }
        match &mut self.measure {
            Measure::Waiting { connected, .. } => match connected.take() {
                Some(connected) => self.ask_for_time(connected, out),
                None => {
                    self.measure = Measure::Opening { socket: self.open(Line::RoundTrip, out) };
                }
            },
            Measure::Off | Measure::Opening { .. } | Measure::Asking { .. } => {
                self.measure_failed(out);
            }
        }
    }

    pub(super) fn measure_deadline(&self) -> Option<Deadline> {
        match &self.measure {
            Measure::Off | Measure::Opening { .. } => None,
            Measure::Asking { started, .. } => {
                let at = *started + self.options.reply_timeout(false)?;
                Some(Deadline { at, reason: DeadlineReason::RoundTripTimeout })
            }
            Measure::Waiting { since, .. } => {
                let at = *since + self.options.heartbeat_frequency;
                Some(Deadline { at, reason: DeadlineReason::RoundTrip })
            }
        }
    }

    fn ask_for_time(&mut self, connected: Connected, out: &mut impl ActionSink) {
        let command = Command::check(&self.establish, &connected.last);
        out.act(Action::Send { socket: connected.socket, command, flags: Flags::NONE });
        self.measure = Measure::Asking { connected, started: self.now };
    }
}

impl Measure {
    pub(super) fn socket(&self) -> Option<SocketId> {
        match self {
            Self::Off => None,
            Self::Opening { socket } => Some(*socket),
            Self::Asking { connected, .. } => Some(connected.socket),
            Self::Waiting { connected, .. } => connected.as_ref().map(|it| it.socket),
        }
    }
}
