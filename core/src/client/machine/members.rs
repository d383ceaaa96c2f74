//! The servers of a client: what is known of one, its monitor and its pool change together.

use core::time::Duration;
use std::sync::Arc;

use super::newcomers::Newcomers;
use super::{Action, ActionSink, ClientState, Event, MisuseReason, PoolChange};
use crate::address::ServerAddress;
use crate::error::ConnectionError;
use crate::monitor::{self, Monitor, ServerDescription, SocketId, SocketInput};
use crate::pool::{Instant, ServiceId};
use crate::sdam::{self, Context, PoolVerdict, Verdict};
use crate::topology::{self, ServerId};

/// A server that the topology has.
#[derive(Debug)]
pub(super) struct Member {
    address: Arc<ServerAddress>,
    /// A load balancer has none.
    // LB-40
    monitor: Option<Monitor>,
    /// When its monitor wants to be woken.
    due: Option<Instant>,
    /// As the pool was told.
    min_round_trip: Option<Duration>,
}

/// What a monitor did for one input, by what it concerns.
#[derive(Default)]
struct Step {
    before: Vec<monitor::Event>,
    described: Option<Arc<ServerDescription>>,
    after: Vec<monitor::Event>,
    pool: Vec<PoolChange>,
    sockets: Vec<monitor::Action>,
    is_news: bool,
}

impl Step {
    // SD-02, SD-40, SD-41
    fn take(&mut self, action: monitor::Action) {
        match action {
            // PRD-05
            monitor::Action::MarkReady => self.pool.push(PoolChange::Ready),
            monitor::Action::ClearPool { cause, interrupt } => {
                self.pool.push(PoolChange::Clear { cause, interrupt, service: None });
            }
            monitor::Action::EmitEvent(event) => self.tell(event),
            monitor::Action::Open { .. }
            | monitor::Action::Send { .. }
            | monitor::Action::Close { .. } => self.sockets.push(action),
        }
    }

    fn tell(&mut self, event: monitor::Event) {
        self.is_news |= event.is_news();
        match event {
            // The topology tells of it.
            monitor::Event::ServerDescriptionChanged { new, .. } => self.described = Some(new),
            // The next check comes after what the last one has found, be it nothing new.
            monitor::Event::ServerHeartbeatStarted { .. } => self.after.push(event),
            monitor::Event::ServerHeartbeatSucceeded { .. }
            | monitor::Event::ServerHeartbeatFailed { .. } => {
                let is_described = self.described.is_some();
                if is_described { &mut self.after } else { &mut self.before }.push(event);
            }
        }
    }
}

impl<W> ClientState<W> {
    /// What the monitor of a server does for an input. Its server may be gone.
    // SM-12
    pub(super) fn feed_monitor(
        &mut self,
        id: ServerId,
        input: monitor::Input,
        then: Option<PoolChange>,
        out: &mut impl ActionSink<W>,
    ) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let Some(monitor) = &mut member.monitor else { return };
        let previous = Arc::clone(monitor.description());
        let mut step = Step::default();
        if let Err(misuse) = monitor.handle(self.now, input, &mut |action| step.take(action)) {
            unreachable!("it is looked at before: {misuse}");
        }
        let new = Arc::clone(monitor.description());
        step.described = (!Arc::ptr_eq(&previous, &new)).then_some(new);
        step.pool.extend(then);
        // A server that becomes Unknown keeps its time: an operation may have been sent its way.
        if let Some(minimum) = monitor.round_trip().map(|round_trip| round_trip.minimum) {
            let told = member.min_round_trip.replace(minimum);
            step.pool.extend((told != Some(minimum)).then_some(PoolChange::MinRoundTrip(minimum)));
        }
        self.follow(id, step, out);
    }

    /// The description first, then the pool, then the monitor's sockets.
    // SD-03, SD-04, SD-05, SD-09
    fn follow(&mut self, id: ServerId, step: Step, out: &mut impl ActionSink<W>) {
        let Step { before, described, after, pool, sockets, is_news } = step;
        let Some(address) = self.members.get(&id).map(|it| Arc::clone(&it.address)) else { return };
        tell(id, &address, before, out);
        let (mut changes, mut follows) = (Vec::new(), None);
        if let Some(description) = described {
            if let Some((polling, kind)) = self.polling.as_mut().zip(description.kind()) {
                polling.observe(kind);
            }
            changes = self.feed_topology(topology::Input::Described { id, description }, out);
            follows = Some(self.topology.steps());
        }
        let is_member = self.topology.description().server(&address).is_some();
        // Nothing is told of a server that is gone by now: its monitor is about to end.
        tell(id, &address, if is_member { after } else { Vec::new() }, out);
        let is_usable = self.topology.description().is_usable(&address);
        for change in pool {
            if is_usable || !matches!(change, PoolChange::Ready) {
                out.act(Action::FeedPool { server: id, change, follows });
            }
        }
        sockets.into_iter().for_each(|action| out.act(of_socket(id, action)));
        self.note_due(id);
        self.change_members(changes, out);
        self.is_news |= is_news;
    }

    /// What the topology tells; servers to add and to remove are returned.
    pub(super) fn feed_topology(
        &mut self,
        input: topology::Input,
        out: &mut impl ActionSink<W>,
    ) -> Vec<topology::Action> {
        let mut changes = Vec::new();
        out.act(Action::EmitEvent(Event::ToTopology(input.clone())));
        self.topology.handle(self.now, input, &mut |action| sort(action, &mut changes, out));
        changes
    }

    pub(super) fn change_members(
        &mut self,
        changes: Vec<topology::Action>,
        out: &mut impl ActionSink<W>,
    ) {
        for change in changes {
            match change {
                topology::Action::AddServer { id, address } => self.add_member(id, address, out),
                topology::Action::RemoveServer { id, address } => {
                    self.close_monitor(id, out);
                    self.forget_member(id, address, out);
                }
                topology::Action::EmitEvent(_) => {}
            }
        }
    }

    // LB-08
    fn add_member(
        &mut self,
        id: ServerId,
        address: Arc<ServerAddress>,
        out: &mut impl ActionSink<W>,
    ) {
        self.by_address.insert(Arc::clone(&address), id);
        let is_ready = !self.settings.is_watched;
        self.is_news = true;
        out.act(Action::OpenPool { server: id, address: Arc::clone(&address), is_ready });
        let member = Member { address, monitor: None, due: None, min_round_trip: None };
        if is_ready {
            self.members.insert(id, member);
            return;
        }
        let (options, establish) = (self.monitoring.clone(), Arc::clone(&self.establish));
        let mut step = Step::default();
        let has_to_wait =
            |newcomers: &mut Newcomers| newcomers.has_to_wait(&member.address, self.now);
        let monitor = if self.newcomers.as_mut().is_some_and(has_to_wait) {
            Monitor::new_after_pause(self.now, options, establish)
        } else {
            Monitor::new(self.now, options, establish, &mut |action| step.take(action))
        };
        let monitor = Some(monitor.expect("validated before"));
        self.members.insert(id, Member { monitor, ..member });
        self.follow(id, step, out);
    }

    pub(super) fn close_monitor(&mut self, id: ServerId, out: &mut impl ActionSink<W>) {
        let Some(monitor) = self.members.get_mut(&id).and_then(|it| it.monitor.as_mut()) else {
            return;
        };
        let closed = monitor.handle(self.now, monitor::Input::Close, &mut |action| {
            out.act(of_socket(id, action));
        });
        debug_assert!(closed.is_ok(), "a monitor may be closed at any time");
        self.note_due(id);
    }

    pub(super) fn forget_member(
        &mut self,
        id: ServerId,
        address: Arc<ServerAddress>,
        out: &mut impl ActionSink<W>,
    ) {
        self.is_news = true;
        self.last_removal = self.now;
        self.members.remove(&id);
        self.by_address.remove(&address);
        if let Some(newcomers) = &mut self.newcomers {
            newcomers.is_gone(Arc::clone(&address), self.now);
        }
        out.act(Action::ClosePool { server: id, address });
    }

    /// SDAM's error handling: description, monitor and pool change at once.
    // CLR-15, SD-54, LB-22
    pub(super) fn connection_failed(
        &mut self,
        id: ServerId,
        error: ConnectionError,
        is_current: bool,
        service: Option<ServiceId>,
        out: &mut impl ActionSink<W>,
    ) {
        let Some(member) = self.members.get(&id) else { return };
        // Not the monitor's, which also has that of a primary that is not believed.
        let known = self.topology.description().server(&member.address);
        let context = Context {
            load_balanced: member.monitor.is_none(),
            current_generation: is_current,
            topology_version: known.and_then(|known| known.topology_version),
        };
        let verdict = sdam::verdict(&context, &error);
        let clear = clear(verdict.pool, &error, service);
        if member.monitor.is_none() {
            let feed = |change| Action::FeedPool { server: id, change, follows: None };
            return clear.into_iter().for_each(|change| out.act(feed(change)));
        }
        if verdict != Verdict::default() {
            self.feed_monitor(id, monitor::Input::ApplicationFailed { error, verdict }, clear, out);
        }
    }

    // SS-15
    pub(super) fn request_checks(&mut self, out: &mut impl ActionSink<W>) {
        let members: Vec<_> = self.members.keys().copied().collect();
        for id in members {
            self.feed_monitor(id, monitor::Input::RequestCheck, None, out);
        }
    }

    pub(super) fn wake_monitors(&mut self, out: &mut impl ActionSink<W>) {
        let due = self.due.iter().take_while(|(at, _)| *at <= self.now);
        let due: Vec<_> = due.map(|(_, id)| *id).collect();
        for id in due {
            self.feed_monitor(id, monitor::Input::Timer, None, out);
        }
    }

    /// Where a server is; `None` if it was removed.
    #[must_use]
    pub fn address(&self, id: ServerId) -> Option<&Arc<ServerAddress>> {
        self.members.get(&id).map(|member| &member.address)
    }

    /// The number of the server at an address, if the topology has it.
    #[must_use]
    pub fn id(&self, address: &ServerAddress) -> Option<ServerId> {
        self.by_address.get(address).copied()
    }

    /// The servers, in the order in which they were added: first those of the connection string.
    pub fn servers(&self) -> impl Iterator<Item = (ServerId, &Arc<ServerAddress>)> {
        self.members.iter().map(|(id, member)| (*id, &member.address))
    }

    /// The monitor of a server; a load balancer has none.
    #[must_use]
    pub fn monitor(&self, id: ServerId) -> Option<&Monitor> {
        self.members.get(&id)?.monitor.as_ref()
    }

    fn note_due(&mut self, id: ServerId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let next = member.monitor.as_ref().and_then(Monitor::next_deadline).map(|it| it.at);
        if let Some(at) = std::mem::replace(&mut member.due, next) {
            self.due.remove(&(at, id));
        }
        self.due.extend(next.map(|at| (at, id)));
    }

    pub(super) fn permit_socket(
        &self,
        id: ServerId,
        socket: SocketId,
        input: SocketInput,
    ) -> Result<bool, MisuseReason> {
        let monitor = self.members.get(&id).and_then(|it| it.monitor.as_ref());
        match monitor {
            Some(monitor) => Ok(monitor.permit_socket(socket, input)?),
            None => self.permit_server(id).map(|_| false),
        }
    }

    pub(super) fn permit_server(&self, id: ServerId) -> Result<bool, MisuseReason> {
        match id.0 == 0 || id > self.topology.last_id() {
            true => Err(MisuseReason::UnknownServer(id)),
            false => Ok(self.members.contains_key(&id)),
        }
    }
}

/// Tells events at once, and puts servers to add and to remove aside.
pub(super) fn sort<W>(
    action: topology::Action,
    changes: &mut Vec<topology::Action>,
    out: &mut impl ActionSink<W>,
) {
    match action {
        topology::Action::EmitEvent(event) => {
            out.act(Action::EmitEvent(Event::Topology(event)));
        }
        topology::Action::AddServer { .. } | topology::Action::RemoveServer { .. } => {
            changes.push(action);
        }
    }
}

fn clear(
    verdict: PoolVerdict,
    error: &ConnectionError,
    service: Option<ServiceId>,
) -> Option<PoolChange> {
    let (interrupt, service) = match verdict {
        PoolVerdict::Keep => return None,
        PoolVerdict::Clear { interrupt } => (interrupt, None),
        PoolVerdict::ClearService => (false, Some(service?)),
    };
    Some(PoolChange::Clear { cause: error.clone(), interrupt, service })
}

fn tell<W>(
    server: ServerId,
    address: &Arc<ServerAddress>,
    events: Vec<monitor::Event>,
    out: &mut impl ActionSink<W>,
) {
    for event in events {
        let event = Event::Heartbeat { server, address: Arc::clone(address), event };
        out.act(Action::EmitEvent(event));
    }
}

fn of_socket<W>(server: ServerId, action: monitor::Action) -> Action<W> {
    match action {
        monitor::Action::Open { socket, line } => Action::OpenSocket { server, socket, line },
        monitor::Action::Send { socket, command, flags } => {
            Action::Send { server, socket, command, flags }
        }
        monitor::Action::Close { socket } => Action::CloseSocket { server, socket },
        monitor::Action::MarkReady
        | monitor::Action::ClearPool { .. }
        | monitor::Action::EmitEvent(_) => unreachable!("a monitor that is closed tells nothing"),
    }
}
