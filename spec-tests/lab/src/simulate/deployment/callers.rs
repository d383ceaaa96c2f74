//! The callers: each selects a server, checks out a connection, runs an operation, and comes again.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::client::{ReadPreference, Selection, Selector, choose_of_two, select};
use cenote_core::connect::ServerKind;
use cenote_core::error::Kind;
use cenote_core::monitor::{self, ServerDescription};
use cenote_core::pool::{CheckOutError, ConnId, Input, Purpose, Status, WaiterId};
use cenote_core::topology::TopologyKind;
use cenote_core::uri::ReadPreferenceMode;

use super::plan::host;
use super::server::{Server, ServerNumber};
use super::world::{Due, World};
use crate::simulate::coverage::Situation;

/// A caller.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    selector: Selector,
    /// Counts its attempts; what was planned for an earlier one is ignored.
    attempt: u64,
    is_selecting: bool,
    /// It has had an operation that succeeded since all faults ended.
    pub(super) is_served: bool,
}

impl Default for Caller {
    fn default() -> Self {
        Self { selector: Selector::Primary, attempt: 0, is_selecting: false, is_served: false }
    }
}

impl World<'_> {
    pub(super) fn reads(&self, caller: u32) -> bool {
        let caller = self.callers.get(caller as usize);
        caller.is_some_and(|it| it.selector != Selector::Primary)
    }

    /// The caller begins an operation.
    pub(super) fn ask(&mut self, caller: u32) -> Result<(), String> {
        if self.is_closed {
            return Ok(());
        }
        let selector = self.draw_selector();
        let Some(its) = self.callers.get_mut(caller as usize) else { return Ok(()) };
        its.attempt += 1;
        (its.selector, its.is_selecting) = (selector, true);
        let attempt = its.attempt;
        let after = self.client.settings.selection_timeout;
        self.plan_in(after, Due::SelectionTimesOut { caller, attempt });
        self.look(caller)
    }

    fn draw_selector(&mut self) -> Selector {
        if self.is_recovering {
            return Selector::Primary;
        }
        let of_mode = |mode| Selector::ReadPreference(ReadPreference::of_mode(mode));
        match self.random.below(8) {
            0 => Selector::Any,
            1 => Selector::Secondary,
            2 => of_mode(ReadPreferenceMode::SecondaryPreferred),
            3 => of_mode(ReadPreferenceMode::Nearest),
            4 => {
                let at = usize::try_from(self.random.below(self.cluster.nodes.len() as u64 + 1));
                host(at.unwrap_or_default()).parse().map_or(Selector::Any, Selector::Address)
            }
            _ => Selector::Primary,
        }
    }

    pub(super) fn selection_times_out(&mut self, caller: u32, attempt: u64) {
        let its = self.callers.get_mut(caller as usize);
        if its.is_some_and(|its| its.is_selecting && its.attempt == attempt) {
            self.coverage.count(Situation::SelectionTimedOut);
            self.give_up(caller);
        }
    }

    /// Callers that wait for a server look again, because something is known of one.
    pub(super) fn look_again(&mut self) -> Result<(), String> {
        while std::mem::take(&mut self.client.is_news) {
            let waiting = self.callers.iter().enumerate().filter(|(_, its)| its.is_selecting);
            let waiting: Vec<_> = waiting.filter_map(|(at, _)| u32::try_from(at).ok()).collect();
            waiting.into_iter().try_for_each(|caller| self.look(caller))?;
        }
        Ok(())
    }

    fn look(&mut self, caller: u32) -> Result<(), String> {
        let Some(its) = self.callers.get(caller as usize) else { return Ok(()) };
        let (client, draw) = (&self.client, self.random.number());
        let (heartbeat, threshold) =
            (client.monitoring.heartbeat_frequency, client.settings.local_threshold);
        let topology = client.topology.description();
        let selected = select(&its.selector, topology, heartbeat, threshold, |fitting| {
            let found = fitting.iter().filter_map(|(address, _)| client.server_at(address));
            let found: Vec<_> = found.collect();
            let operations =
                |number: &ServerNumber| client.servers.get(number).map_or(0, Server::operations);
            choose_of_two(&found, draw, operations).copied()
        });
        let selected = selected.map_err(|error| error.to_string())?;
        match selected {
            Selection::Found(server) => self.check_out(caller, server),
            Selection::Foreign(address) => {
                self.coverage.count(Situation::SelectionForeign);
                self.give_up(caller);
                self.expect_foreign(&address)
            }
            Selection::Hopeless => {
                self.coverage.count(Situation::SelectionHopeless);
                self.expect_hopeless(caller)?;
                self.give_up(caller);
                self.request_checks()
            }
            Selection::Wait => {
                self.coverage.count(Situation::SelectionWaits);
                self.request_checks()
            }
        }
    }

    fn request_checks(&mut self) -> Result<(), String> {
        let all: Vec<_> = self.client.by_address.values().copied().collect();
        all.into_iter()
            .try_for_each(|server| self.feed_monitor(server, monitor::Input::RequestCheck, None))
    }

    fn give_up(&mut self, caller: u32) {
        if let Some(its) = self.callers.get_mut(caller as usize) {
            its.is_selecting = false;
        }
        self.come_again(caller, false);
    }

    fn check_out(&mut self, caller: u32, server: ServerNumber) -> Result<(), String> {
        self.expect_usable(caller, server)?;
        let Some(its) = self.callers.get_mut(caller as usize) else { return Ok(()) };
        its.is_selecting = false;
        let Some(its) = self.client.server(server) else { return Ok(()) };
        let id = its.accounting.ask(caller);
        if self.random.one_in(self.plan.cancels) && !self.is_recovering {
            let after = self.plan.latency.draw(&mut self.random);
            self.plan_in(after, Due::Cancel { server, request: id });
        }
        let (waiter, purpose) = (id.0, Purpose::Other);
        let input = Input::CheckOutRequested { id, waiter, deadline: None, purpose };
        self.feed_pool(server, input)
    }

    /// A server that was selected serves what it was selected for, by its description, and its pool is ready.
    fn expect_usable(&mut self, caller: u32, server: ServerNumber) -> Result<(), String> {
        let selector = self.callers.get(caller as usize).map(|its| its.selector.clone());
        let Some(its) = self.client.servers.get(&server) else {
            return Err("a server was selected that is gone".to_owned());
        };
        let topology = self.client.topology.description();
        let kind = topology.server(&its.address).and_then(|described| described.kind());
        let is_set = topology.kind.is_replica_set();
        let fits = match (selector, kind) {
            (None, _) | (_, None) => false,
            (Some(Selector::Address(address)), Some(_)) if address != *its.address => false,
            (Some(Selector::Primary), Some(kind)) if is_set => kind == ServerKind::RsPrimary,
            (Some(Selector::Secondary), Some(kind)) if is_set => kind == ServerKind::RsSecondary,
            (Some(_), Some(kind)) => {
                kind.is_data_bearing() || topology.kind == TopologyKind::Single
            }
        };
        let status = its.subject.snapshot().status;
        if fits && status == Status::Ready {
            return Ok(());
        }
        Err(format!(
            "{} was selected, {kind:?} with a pool that is {status}: {topology}",
            its.address
        ))
    }

    /// A caller gives up at once only if the deployment has no such server, and cannot get it by the next check.
    fn expect_foreign(&self, address: &ServerAddress) -> Result<(), String> {
        let topology = self.client.topology.description();
        let may_grow = [TopologyKind::Unknown, TopologyKind::ReplicaSetNoPrimary];
        if topology.server(address).is_none() && !may_grow.contains(&topology.kind) {
            return Ok(());
        }
        Err(format!("{address} is wanted, and counts as no server of {topology}"))
    }

    /// A caller gives up at once only if every server that could serve it has answered something that it will answer
    /// again.
    fn expect_hopeless(&self, caller: u32) -> Result<(), String> {
        let selector = self.callers.get(caller as usize).map(|its| &its.selector);
        let topology = self.client.topology.description();
        let wanted = match selector {
            Some(Selector::Address(address)) => topology.server(address).map(|_| address),
            Some(_) | None => None,
        };
        let may_serve = |(address, server): (&Arc<ServerAddress>, &Arc<ServerDescription>)| {
            let has_refused = server
                .error
                .as_ref()
                .is_some_and(|error| matches!(error.kind(), Kind::Protocol | Kind::Configuration));
            wanted.is_none_or(|wanted| *wanted == **address) && !has_refused
        };
        match topology.servers().find(|it| may_serve(*it)) {
            None => Ok(()),
            Some((address, _)) => {
                Err(format!("a caller gives up, but {address} may serve: {topology}"))
            }
        }
    }

    pub(super) fn cancel(&mut self, server: ServerNumber, request: WaiterId) -> Result<(), String> {
        let Some(its) = self.client.server(server) else { return Ok(()) };
        if !its.accounting.is_waiting(request) {
            return Ok(());
        }
        self.coverage.count(Situation::Cancelled);
        self.feed_pool(server, Input::CheckOutCancelled { id: request })
    }

    pub(super) fn delivered(
        &mut self,
        server: ServerNumber,
        request: WaiterId,
        outcome: &Result<(ConnId, u64), CheckOutError<u64>>,
    ) -> Result<(), String> {
        let Some(its) = self.client.server(server) else { return Ok(()) };
        match *outcome {
            Ok((id, tag)) => {
                its.subject.expect_turn(&its.accounting, request, id)?;
                its.accounting.deliver(request, id, tag)?;
                self.use_connection(server, id.number());
            }
            Err(ref error) => {
                let caller = its.accounting.answer(request)?;
                self.coverage.count_error(error);
                self.come_again(caller, false);
            }
        }
        Ok(())
    }

    pub(super) fn come_again(&mut self, caller: u32, has_succeeded: bool) {
        let is_recovering = self.is_recovering;
        if let Some(its) = self.callers.get_mut(caller as usize) {
            its.is_served |= is_recovering && has_succeeded;
            if self.is_closed || its.is_served {
                return;
            }
        }
        let after = match is_recovering {
            true => Duration::from_millis(10),
            false => self.plan.think.draw(&mut self.random),
        };
        self.plan_in(after, Due::Ask { caller });
    }
}
