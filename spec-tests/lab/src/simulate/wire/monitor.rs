//! The server monitor, on links of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Action, Event, Input, Monitor, MonitorOptions, SocketId};
use cenote_core::pool::{self, ConnId, Instant, Status};
use cenote_core::sdam::{self, Context, PoolVerdict, Verdict};

use super::client_sockets::Owner;
use super::network::LinkId;
use super::transport::{Wire, World};
use crate::simulate::clock::Clock;
use crate::simulate::world::Transport;

/// The monitor, and what is checked of it.
#[derive(Debug)]
pub(super) struct MonitorState {
    pub(super) monitor: Monitor,
    pub(super) clock: Clock,
    /// The sockets that it opened and has not closed.
    sockets: BTreeMap<SocketId, LinkId>,
    /// A heartbeat has started and not ended.
    is_beating: bool,
}

/// One for checks, and one for round-trip times.
const SOCKETS: usize = 2;

impl World<'_> {
    pub(super) fn begin_monitoring(&mut self) -> Result<(), String> {
        let options = MonitorOptions::new(&self.transport.uri, false);
        let establish = Arc::new(self.transport.options.for_monitor());
        let mut actions = Vec::new();
        let monitor = Monitor::new(self.now, options, establish, &mut actions);
        let monitor = monitor.map_err(|error| error.to_string())?;
        let (clock, sockets) = (Clock::default(), BTreeMap::new());
        self.transport.monitor = Some(MonitorState { monitor, clock, sockets, is_beating: false });
        self.execute(actions)
    }

    pub(super) fn end_monitoring(&mut self) -> Result<(), String> {
        self.feed_monitor(Input::Close)?;
        match &self.transport.monitor {
            Some(state) if !state.sockets.is_empty() => {
                Err(format!("a closed monitor keeps {:?}", state.sockets))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn feed_monitor(&mut self, input: Input) -> Result<(), String> {
        let now = self.look_at_clock();
        let Some(state) = &mut self.transport.monitor else { return Ok(()) };
        self.transport.scanner.inputs += 1;
        self.transport.scanner.scan("an input of the monitor", &input);
        let is_timer = matches!(input, Input::Timer);
        let mut actions = Vec::new();
        let handled = state.monitor.handle(now, input, &mut actions);
        handled.map_err(|misuse| format!("the monitor refuses: {misuse}"))?;
        let due = state.monitor.next_deadline().filter(|deadline| deadline.at <= now);
        if let Some(deadline) = due.filter(|_| is_timer) {
            let reason = deadline.reason;
            return Err(format!("after the monitor's timer fired, {reason} is still due"));
        }
        self.execute(actions)
    }

    /// Feeds an answer that the monitor does not expect, which has to be refused without any change. `None`
    /// if there is no monitor.
    pub(super) fn misuse_monitor(&mut self) -> Option<Result<(), String>> {
        let state = self.transport.monitor.as_mut()?;
        let sockets = &self.transport.sockets;
        let is_silent =
            |link: &LinkId| sockets.get(link).is_some_and(|it| it.conversation.is_reusable());
        let silent = state.sockets.iter().find(|(_, link)| is_silent(link)).map(|(id, _)| *id);
        let input = match silent {
            Some(socket) => {
                Input::Replied { socket, reply: rawdoc! { "ok": 1 }, more_to_come: false }
            }
            None => {
                let error = ConnectionError::network(Stage::Hello, "an unexpected answer");
                Input::Failed { socket: SocketId(u64::MAX), error }
            }
        };
        let look = |monitor: &Monitor| format!("{:?} {monitor:?}", monitor.next_deadline());
        let (before, mut actions) = (look(&state.monitor), Vec::new());
        let refused = state.monitor.handle(self.now, input, &mut actions).is_err();
        if !refused {
            return Some(Err(format!("the monitor accepts an invalid input: {actions:?}")));
        }
        let is_as_before = actions.is_empty() && look(&state.monitor) == before;
        Some(if is_as_before {
            Ok(())
        } else {
            Err("a refused input changed the monitor".to_owned())
        })
    }

    /// When the monitor's timer fires: on time, late, or early.
    pub(super) fn monitor_fires_at(&mut self) -> Option<Instant> {
        let faults = self.time_faults();
        let state = self.transport.monitor.as_mut()?;
        let due = state.monitor.next_deadline()?.at;
        let (random, coverage) = (&mut self.random, &mut self.coverage);
        Some(state.clock.timer_fires_at(due, self.now, faults, random, coverage))
    }

    pub(super) fn monitor_timer(&mut self) -> Result<(), String> {
        if let Some(state) = &mut self.transport.monitor {
            state.clock.timer_fired(&mut self.coverage);
        }
        self.feed_monitor(Input::Timer)
    }

    fn execute(&mut self, actions: Vec<Action>) -> Result<(), String> {
        // Failures to send are reported after all actions.
        let mut failed = Vec::new();
        for action in actions {
            self.transport.scanner.scan("an action of the monitor", &action);
            match action {
                Action::Open { socket, .. } => self.open_monitoring(socket)?,
                Action::Send { socket, command, flags } => {
                    let link = self
                        .transport
                        .monitor
                        .as_ref()
                        .and_then(|it| it.sockets.get(&socket).copied());
                    let link = link.ok_or_else(|| format!("{socket} is not open"))?;
                    let sent = self.send_command(link, command.body(), None, flags);
                    failed.extend(sent.err().map(|error| Input::Failed { socket, error }));
                }
                Action::Close { socket } => {
                    let link =
                        self.transport.monitor.as_mut().and_then(|it| it.sockets.remove(&socket));
                    self.hang_up(link.ok_or_else(|| format!("{socket} is closed twice"))?);
                }
                Action::MarkReady if Wire::sees_server(self) => self.feed(pool::Input::Ready)?,
                Action::MarkReady => {}
                Action::ClearPool { cause, interrupt } => {
                    let cause = self.numbered(&cause);
                    self.feed(pool::Input::Clear { cause, interrupt, service: None })?;
                }
                Action::EmitEvent(event) => self.check_heartbeats(&event)?,
            }
        }
        failed.into_iter().try_for_each(|input| self.feed_monitor(input))
    }

    fn open_monitoring(&mut self, socket: SocketId) -> Result<(), String> {
        let Some(state) = &self.transport.monitor else { return Ok(()) };
        let options = Arc::clone(state.monitor.establish_options());
        let link = self.open_link(Owner::Monitor(socket), options, self.plan.connect_timeout);
        let Some(state) = &mut self.transport.monitor else { return Ok(()) };
        state.sockets.insert(socket, link);
        match state.sockets.len() {
            0..=SOCKETS => Ok(()),
            many => Err(format!("the monitor has {many} sockets")),
        }
    }

    /// Checks that each heartbeat that starts has one end.
    fn check_heartbeats(&mut self, event: &Event) -> Result<(), String> {
        let Some(state) = &mut self.transport.monitor else { return Ok(()) };
        let (before, after) = match event {
            Event::ServerHeartbeatStarted { .. } => (false, true),
            Event::ServerHeartbeatSucceeded { .. } | Event::ServerHeartbeatFailed { .. } => {
                (true, false)
            }
            Event::ServerDescriptionChanged { .. } | _ => (state.is_beating, state.is_beating),
        };
        let was = std::mem::replace(&mut state.is_beating, after);
        if was == before { Ok(()) } else { Err(format!("{} out of order", event.name())) }
    }

    /// Applies SDAM's verdict on a connection that failed: to the description, the monitor and the pool.
    pub(super) fn report_to_sdam(
        &mut self,
        id: ConnId,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let context = Context {
            load_balanced: self.is_balanced(),
            current_generation: !self.subject.pool().is_stale(id),
            topology_version: self
                .transport
                .monitor
                .as_ref()
                .and_then(|it| it.monitor.topology_version()),
        };
        let verdict = sdam::verdict(&context, error);
        if verdict == Verdict::default() {
            return Ok(());
        }
        self.feed_monitor(Input::ApplicationFailed { error: error.clone(), verdict })?;
        if self.subject.pool().is_stale(id) {
            return Ok(());
        }
        let (interrupt, service) = match verdict.pool {
            PoolVerdict::Keep => return Ok(()),
            PoolVerdict::Clear { interrupt } => (interrupt, None),
            PoolVerdict::ClearService => match self.subject.pool().service_of(id) {
                Some(service) => (false, Some(service)),
                // The service is known from hello on, and errors before hello have no such verdict (LB-20,
                // LB-21).
                None => return Err(format!("{id}: the service to clear is unknown")),
            },
        };
        let cause = self.numbered(error);
        self.feed(pool::Input::Clear { cause, interrupt, service })
    }

    /// Checks that the pool of a data-bearing server is ready.
    pub(super) fn expect_agreement(&self) -> Result<(), String> {
        if self.transport.monitor.is_none() || self.is_closed || !Wire::sees_server(self) {
            return Ok(());
        }
        match self.subject.snapshot().status {
            Status::Ready => Ok(()),
            Status::Paused | Status::Closed => {
                Err("the monitor sees the server, and the pool is not ready".to_owned())
            }
        }
    }
}
