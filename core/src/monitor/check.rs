//! Checks: one hello after another, asked for or streamed.

use core::time::Duration;
use std::sync::Arc;

use bson::RawDocument;

use super::action::{Action, ActionSink, Line, SocketId};
use super::description::wrong_set;
use super::machine::Connected;
use super::{Deadline, DeadlineReason, Event, Monitor, MonitorOptions, ServerDescription};
use crate::connect::{Command, ConnectionDescription};
use crate::error::{ConnectionError, Stage};
use crate::pool::Instant;
use crate::sdam::{PoolVerdict, monitor_verdict};
use crate::wire::Flags;

/// Where the line of checks is.
// SM-01
#[derive(Debug)]
pub(super) enum Check {
    /// Between two checks.
    Waiting {
        /// When the last one ended.
        since: Instant,
        connected: Option<Connected>,
    },
    /// The socket is being opened, and its hello is the check.
    Opening { socket: SocketId, started: Instant },
    /// A reply is to come.
    Asking { connected: Connected, beat: Beat },
}

/// A heartbeat that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    awaited: bool,
    started: Instant,
    /// When the server was asked: one that streams goes on without being asked again.
    asked: Instant,
    socket: SocketId,
    server_connection_id: Option<i64>,
}

/// Beginning and ending.
impl Monitor {
    /// The start event comes before the socket is opened.
    // SM-12, SE-06
    pub(super) fn begin_check(&mut self, out: &mut impl ActionSink) {
        let Check::Waiting { connected, .. } = &mut self.check else { return };
        self.is_requested = false;
        match connected.take() {
            Some(connected) => self.ask(connected, out),
            None => {
                let started = self.tell_start(false, self.next_socket(), None, out).started;
                let socket = self.open(Line::Check, out);
                self.opened = self.now;
                self.check = Check::Opening { socket, started };
            }
        }
    }

    /// Since when a connection for checks has been opened whose hello has no answer yet; `None` if none is.
    #[must_use]
    pub const fn connecting_since(&self) -> Option<Instant> {
        match self.check {
            Check::Opening { started, .. } => Some(started),
            Check::Waiting { .. } | Check::Asking { .. } => None,
        }
    }

    pub(super) fn check_opened(
        &mut self,
        connected: Connected,
        round_trip: Duration,
        out: &mut impl ActionSink,
    ) {
        let Check::Opening { started, .. } = self.check else { return };
        self.round_trips.add(round_trip);
        let beat = Beat {
            awaited: false,
            started,
            asked: started,
            socket: connected.socket,
            server_connection_id: connected.last.connection_id,
        };
        self.answered(connected, beat, false, out);
    }

    pub(super) fn check_replied(
        &mut self,
        reply: &RawDocument,
        more_to_come: bool,
        out: &mut impl ActionSink,
    ) {
        let Check::Asking { connected, beat } = &self.check else { return };
        let (socket, beat) = (connected.socket, *beat);
        match ConnectionDescription::from_reply(reply, &self.establish) {
            Ok(mut hello) => {
                // HS-07: only the old name is answered with `helloOk`, so that what was said once holds.
                hello.hello_ok |= connected.last.hello_ok;
                // SM-08: the time of an awaited reply is no round-trip time.
                if !beat.awaited {
                    self.round_trips.add(self.now.saturating_since(beat.started));
                }
                let connected = Connected { socket, last: Arc::new(hello) };
                self.answered(connected, beat, more_to_come, out);
            }
            Err(error) => self.check_failed(&error, out),
        }
    }

    /// After a network error, a server that was known is checked again at once, unless its connection was opened just
    /// now; one that refuses, or was Unknown before, has time. A shortage in this process leaves a known server
    /// known, and an Unknown one says why it was not asked.
    // SD-06, SD-09, SD-40, SD-41, SM-06
    pub(super) fn check_failed(&mut self, error: &ConnectionError, out: &mut impl ActionSink) {
        let was_known = self.description.is_known();
        if !self.end_with(error, out) {
            return self.idle_socket_failed(out);
        }
        if was_known && error.is_local() {
            return;
        }
        self.round_trips.reset();
        self.stop_measuring(out);
        let verdict = monitor_verdict(error);
        self.describe(ServerDescription::unknown(error.clone(), None, self.now), out);
        match verdict.pool {
            PoolVerdict::Clear { interrupt } => {
                out.act(Action::ClearPool { cause: error.clone(), interrupt });
            }
            PoolVerdict::Keep | PoolVerdict::ClearService => {}
        }
        if was_known && error.is_network_error() {
            self.check_again(self.opened, out);
        }
    }

    /// Checks without a pause, unless what has just ended began less than 500 ms ago: a server that ends everything at
    /// once would be checked in a loop.
    fn check_again(&mut self, began: Instant, out: &mut impl ActionSink) {
        if self.now < began + MonitorOptions::MIN_HEARTBEAT_FREQUENCY {
            self.is_requested = true;
        } else {
            self.begin_check(out);
        }
    }

    /// Cancels a check that hangs on the same broken network. It reports no result, and the next
    /// one comes when it is due.
    // SD-27, SD-28
    pub(super) fn cancel_check(&mut self, error: &ConnectionError, out: &mut impl ActionSink) {
        let reason = format!("cancelled: a connection of the application failed: {error}");
        if !self.end_with(&ConnectionError::network(Stage::Hello, reason), out) {
            self.close_check_socket(out);
        }
    }

    /// Whatever is due by now: the next check, or the end of one that takes too long.
    pub(super) fn run_due_check(&mut self, out: &mut impl ActionSink) {
        if self.check_deadline().is_none_or(|due| due.at > self.now) {
            return;
        }
        match &self.check {
            Check::Waiting { .. } => self.begin_check(out),
            Check::Opening { .. } => {}
            Check::Asking { beat, .. } if self.overdue_at(beat).is_none_or(|at| at > self.now) => {
                self.end_with(&ConnectionError::network(Stage::Hello, ASKED_ANEW), out);
                self.begin_check(out);
            }
            Check::Asking { beat, .. } => {
                let after = self.options.reply_timeout(beat.awaited).unwrap_or_default();
                self.check_failed(&ConnectionError::timeout(Stage::Hello, after), out);
            }
        }
    }

    // SM-05
    pub(super) fn check_deadline(&self) -> Option<Deadline> {
        match &self.check {
            Check::Waiting { since, .. } => {
                let pause = if self.is_requested {
                    MonitorOptions::MIN_HEARTBEAT_FREQUENCY
                } else {
                    self.options.heartbeat_frequency
                };
                Some(Deadline { at: *since + pause, reason: DeadlineReason::Check })
            }
            // How long that may take is limited by the shell, which knows the stage.
            Check::Opening { .. } => None,
            Check::Asking { beat, .. } => {
                let overdue = self.overdue_at(beat);
                let overdue =
                    overdue.map(|at| Deadline { at, reason: DeadlineReason::CheckTimeout });
                let anew = self.asked_anew_at(beat);
                let anew = anew.map(|at| Deadline { at, reason: DeadlineReason::Check });
                overdue.into_iter().chain(anew).min()
            }
        }
    }

    fn overdue_at(&self, beat: &Beat) -> Option<Instant> {
        self.options.reply_timeout(beat.awaited).map(|timeout| beat.started + timeout)
    }

    /// A server that the application found Unknown, as after a refused login, has nothing to stream, and may be of use
    /// long before its next reply is due: a caller that waits has it asked on another socket. The longer the application
    /// finds so, the longer is the pause, so that a wrong password is not tried twice a second for ever. A server whose
    /// replies are ignored, being old, is not asked in a loop.
    fn asked_anew_at(&self, beat: &Beat) -> Option<Instant> {
        let is_wanted = beat.awaited && self.is_requested && !self.description.is_known();
        let found = self.description.updated.filter(|_| is_wanted)?;
        let doubted =
            self.doubted_since.map_or(Duration::ZERO, |since| found.saturating_since(since));
        let (least, most) =
            (MonitorOptions::MIN_HEARTBEAT_FREQUENCY, self.options.heartbeat_frequency);
        Some((found + doubted.clamp(least, most)).max(beat.asked + least))
    }
}

/// Between the two.
impl Monitor {
    /// By streaming, if both sides can.
    // SM-03
    fn ask(&mut self, connected: Connected, out: &mut impl ActionSink) {
        let frequency = self.options.heartbeat_frequency;
        let streamed = self.options.may_stream();
        let streamed = streamed
            .then(|| Command::awaited_check(&self.establish, &connected.last, frequency))
            .flatten();
        let awaited = streamed.is_some();
        let command = streamed.unwrap_or_else(|| Command::check(&self.establish, &connected.last));
        let flags = if awaited { Flags::EXHAUST_ALLOWED } else { Flags::NONE };
        let beat = self.tell_start_on(&connected, awaited, out);
        out.act(Action::Send { socket: connected.socket, command, flags });
        self.check = Check::Asking { connected, beat };
    }

    fn answered(
        &mut self,
        connected: Connected,
        beat: Beat,
        more_to_come: bool,
        out: &mut impl ActionSink,
    ) {
        let wanted = self.options.set_name.as_deref();
        if let Some(error) = wanted.and_then(|wanted| wrong_set(&connected.last, wanted)) {
            return self.check_failed(&error, out);
        }
        let hello = Arc::clone(&connected.last);
        let (awaited, duration) = (beat.awaited, self.now.saturating_since(beat.started));
        let socket = beat.socket;
        let event = Event::ServerHeartbeatSucceeded { awaited, duration, socket, hello };
        out.act(Action::EmitEvent(event));
        self.is_requested = false;
        if self.description.is_known() {
            self.doubted_since = None;
        }
        self.learn(&connected.last, out);
        let streams = self.options.may_stream() && connected.last.topology_version.is_some();
        if streams {
            self.start_measuring(out);
        } else {
            self.stop_measuring(out);
        }
        // SM-04: one that streams is not waited for between two checks.
        if more_to_come {
            let started = self.tell_start_on(&connected, true, out);
            self.check = Check::Asking { connected, beat: Beat { asked: beat.asked, ..started } };
            return;
        }
        self.check = Check::Waiting { since: self.now, connected: Some(connected) };
        if streams && awaited {
            self.check_again(beat.asked, out);
        } else if streams {
            self.begin_check(out);
        }
    }

    /// A reply older than the description is ignored; otherwise the pool becomes ready, if the server is of use.
    // SD-01, SD-02, SD-08, SM-11
    fn learn(&mut self, hello: &Arc<ConnectionDescription>, out: &mut impl ActionSink) {
        let new = hello.topology_version.as_ref();
        if self.topology_version().is_some_and(|known| known.makes_description_stale(new)) {
            return;
        }
        let description =
            ServerDescription::known(Arc::clone(hello), self.round_trips.get(), self.now);
        self.describe(description, out);
        out.act(Action::MarkReady);
    }

    fn tell_start_on(
        &self,
        connected: &Connected,
        awaited: bool,
        out: &mut impl ActionSink,
    ) -> Beat {
        self.tell_start(awaited, connected.socket, connected.last.connection_id, out)
    }

    fn tell_start(
        &self,
        awaited: bool,
        socket: SocketId,
        server_connection_id: Option<i64>,
        out: &mut impl ActionSink,
    ) -> Beat {
        let event = Event::ServerHeartbeatStarted { awaited, socket, server_connection_id };
        out.act(Action::EmitEvent(event));
        let (started, asked) = (self.now, self.now);
        Beat { awaited, started, asked, socket, server_connection_id }
    }

    /// Ends the heartbeat and its socket; `false` if there is none.
    fn end_with(&mut self, error: &ConnectionError, out: &mut impl ActionSink) -> bool {
        let Beat { awaited, started, asked: _, socket, server_connection_id } = match &self.check {
            Check::Waiting { .. } => return false,
            Check::Opening { socket, started } => Beat {
                awaited: false,
                started: *started,
                asked: *started,
                socket: *socket,
                server_connection_id: None,
            },
            Check::Asking { beat, .. } => *beat,
        };
        let (duration, error) = (self.now.saturating_since(started), error.clone());
        let event =
            Event::ServerHeartbeatFailed { awaited, duration, socket, server_connection_id, error };
        out.act(Action::EmitEvent(event));
        self.close_check_socket(out);
        self.check = Check::idle(self.now);
        true
    }

    /// No check was under way: whether it was the server or only this connection, a check will
    /// tell.
    fn idle_socket_failed(&mut self, out: &mut impl ActionSink) {
        self.close_check_socket(out);
        self.is_requested = true;
        self.run_due_check(out);
    }

    fn close_check_socket(&mut self, out: &mut impl ActionSink) {
        if let Some(socket) = self.check.socket() {
            out.act(Action::Close { socket });
        }
        if let Check::Waiting { connected, .. } = &mut self.check {
            *connected = None;
        }
    }
}

impl Check {
    pub(super) const fn idle(since: Instant) -> Self {
        Self::Waiting { since, connected: None }
    }

    pub(super) fn socket(&self) -> Option<SocketId> {
        match self {
            Self::Waiting { connected, .. } => connected.as_ref().map(|it| it.socket),
            Self::Opening { socket, .. } => Some(*socket),
            Self::Asking { connected, .. } => Some(connected.socket),
        }
    }
}

const ASKED_ANEW: &str =
    "given up: the server is Unknown, and a caller that waits has it asked on another socket";
