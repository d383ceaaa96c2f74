//! Whoever watches the server: the monitor's machine on links of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Action, Event, Input, Monitor, MonitorOptions, SocketId};
use cenote_core::pool::{self, ConnId, Instant, Status};
use cenote_core::sdam::{self, Context, PoolVerdict, Verdict};

use super::World;
use super::opening::Owner;
use crate::simulate::clock::Clock;
use crate::simulate::wire::network::LinkId;

/// The monitor, and what is held against it.
#[derive(Debug)]
pub(super) struct Watch {
    monitor: Monitor,
    pub(super) clock: Clock,
    /// Sockets that it has open, or has opened.
    sockets: BTreeMap<SocketId, LinkId>,
    /// A heartbeat has started and not ended.
    is_beating: bool,
}

/// One for checks, and one for round-trip times.
const SOCKETS: usize = 2;

impl World<'_> {
    pub(super) fn begin_watching(&mut self) -> Result<(), String> {
        let options = MonitorOptions::new(&self.uri, false);
        let establish = Arc::new(self.options.for_monitor());
        let mut actions = Vec::new();
        let monitor = Monitor::new(self.now, options, establish, &mut actions);
        let monitor = monitor.map_err(|error| error.to_string())?;
        let (clock, sockets) = (Clock::default(), BTreeMap::new());
        self.watch = Some(Watch { monitor, clock, sockets, is_beating: false });
        self.carry_out(actions)
    }

    pub(super) fn end_watching(&mut self) -> Result<(), String> {
        self.feed_monitor(Input::Close)?;
        match &self.watch {
            Some(watch) if !watch.sockets.is_empty() => {
                Err(format!("a closed monitor keeps {:?}", watch.sockets))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn feed_monitor(&mut self, input: Input) -> Result<(), String> {
        let now = self.look_at_clock();
        let Some(watch) = &mut self.watch else { return Ok(()) };
        self.witness.inputs += 1;
        self.witness.look_at("an input of the monitor", &input);
        let is_timer = matches!(input, Input::Timer);
        let mut actions = Vec::new();
        let handled = watch.monitor.handle(now, input, &mut actions);
        handled.map_err(|misuse| format!("the monitor refuses: {misuse}"))?;
        let due = watch.monitor.next_deadline().filter(|deadline| deadline.at <= now);
        if let Some(deadline) = due.filter(|_| is_timer) {
            let reason = deadline.reason;
            return Err(format!("after its timer the monitor still has to do: {reason}"));
        }
        self.carry_out(actions)
    }

    /// An answer that nobody waits for is refused, and nothing has happened. `None` if there is nobody
    /// to be told.
    pub(super) fn mislead_monitor(&mut self) -> Option<Result<(), String>> {
        let watch = self.watch.as_mut()?;
        let lines = &self.lines;
        let is_silent = |link: &LinkId| lines.get(link).is_some_and(|line| line.talk.is_reusable());
        let silent = watch.sockets.iter().find(|(_, link)| is_silent(link)).map(|(id, _)| *id);
        let input = match silent {
            Some(socket) => {
                Input::Replied { socket, reply: rawdoc! { "ok": 1 }, more_to_come: false }
            }
            None => {
                let error = ConnectionError::network(Stage::Hello, "nobody has asked");
                Input::Failed { socket: SocketId(u64::MAX), error }
            }
        };
        let look = |monitor: &Monitor| format!("{:?} {monitor:?}", monitor.next_deadline());
        let (before, mut actions) = (look(&watch.monitor), Vec::new());
        let refused = watch.monitor.handle(self.now, input, &mut actions).is_err();
        if !refused {
            return Some(Err(format!("the monitor takes what makes no sense: {actions:?}")));
        }
        let is_as_before = actions.is_empty() && look(&watch.monitor) == before;
        Some(if is_as_before {
            Ok(())
        } else {
            Err("the monitor's refusal left a trace".to_owned())
        })
    }

    /// When the monitor's timer fires, which may be late, or early for nothing.
    pub(super) fn monitor_fires_at(&mut self) -> Option<Instant> {
        let faults = self.time_faults();
        let watch = self.watch.as_mut()?;
        let due = watch.monitor.next_deadline()?.at;
        let (chance, met) = (&mut self.chance, &mut self.met);
        Some(watch.clock.timer_fires_at(due, self.now, faults, chance, met))
    }

    pub(super) fn monitor_timer(&mut self) -> Result<(), String> {
        if let Some(watch) = &mut self.watch {
            watch.clock.timer_fired(&mut self.met);
        }
        self.feed_monitor(Input::Timer)
    }

    fn carry_out(&mut self, actions: Vec<Action>) -> Result<(), String> {
        // What cannot be sent fails once all the rest is done.
        let mut failed = Vec::new();
        for action in actions {
            self.witness.look_at("an action of the monitor", &action);
            match action {
                Action::Open { socket, .. } => self.open_monitoring(socket)?,
                Action::Send { socket, command, flags } => {
                    let link = self.watch.as_ref().and_then(|it| it.sockets.get(&socket).copied());
                    let link = link.ok_or_else(|| format!("{socket} is not open"))?;
                    let asked = self.ask_on(link, command.body(), None, flags);
                    failed.extend(asked.err().map(|error| Input::Failed { socket, error }));
                }
                Action::Close { socket } => {
                    let link = self.watch.as_mut().and_then(|it| it.sockets.remove(&socket));
                    self.hang_up(link.ok_or_else(|| format!("{socket} is closed twice"))?);
                }
                Action::MarkReady => self.feed(pool::Input::Ready)?,
                Action::ClearPool { cause, interrupt } => {
                    let cause = self.why(&cause);
                    self.feed(pool::Input::Clear { cause, interrupt, service: None })?;
                }
                Action::EmitEvent(event) => self.hear_monitor(&event)?,
            }
        }
        failed.into_iter().try_for_each(|input| self.feed_monitor(input))
    }

    fn open_monitoring(&mut self, socket: SocketId) -> Result<(), String> {
        let Some(watch) = &self.watch else { return Ok(()) };
        let options = Arc::clone(watch.monitor.establish_options());
        let link = self.open_link(Owner::Monitor(socket), options, self.plan.connect_timeout);
        let Some(watch) = &mut self.watch else { return Ok(()) };
        watch.sockets.insert(socket, link);
        match watch.sockets.len() {
            0..=SOCKETS => Ok(()),
            many => Err(format!("the monitor has {many} sockets")),
        }
    }

    /// Each start has one end.
    fn hear_monitor(&mut self, event: &Event) -> Result<(), String> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let (before, after) = match event {
            Event::ServerHeartbeatStarted { .. } => (false, true),
            Event::ServerHeartbeatSucceeded { .. } | Event::ServerHeartbeatFailed { .. } => {
                (true, false)
            }
            Event::ServerDescriptionChanged { .. } => (watch.is_beating, watch.is_beating),
        };
        let was = std::mem::replace(&mut watch.is_beating, after);
        if was == before { Ok(()) } else { Err(format!("{} out of turn", event.name())) }
    }

    /// SDAM's say about a connection of the pool that failed: description, monitor and pool at once.
    pub(super) fn show_to_sdam(
        &mut self,
        id: ConnId,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let context = Context {
            load_balanced: self.plan.is_balanced(),
            current_generation: !self.subject.pool().is_stale(id),
            topology_version: self.watch.as_ref().and_then(|it| it.monitor.topology_version()),
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
                // It is known from hello on, and before that nobody says so (LB-20, LB-21).
                None => return Err(format!("{id}: nobody knows whose connections are to go")),
            },
        };
        let cause = self.why(error);
        self.feed(pool::Input::Clear { cause, interrupt, service })
    }

    /// Whoever would choose this server now; behind a load balancer everybody.
    pub(super) fn sees_server(&self) -> bool {
        self.watch.as_ref().is_none_or(|watch| watch.monitor.description().is_data_bearing())
    }

    /// How long the monitor may be blind at most once all is well: the check that is under way is
    /// answered by nobody, the next one comes when it is due and is answered by nobody either.
    pub(super) fn sight(&self) -> Duration {
        (self.plan.connect_timeout + self.plan.heartbeat) * 2 + Duration::from_secs(1)
    }

    /// A server that is known to hold data has a pool that is ready (SD-02).
    pub(super) fn expect_agreement(&self) -> Result<(), String> {
        if self.watch.is_none() || self.is_closed || !self.sees_server() {
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
