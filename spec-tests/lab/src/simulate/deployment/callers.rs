//! The callers: each selects a server, checks out a connection, runs an operation, and comes again.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::client::machine::{Chosen, Input as ClientInput, Request, SelectionId};
use cenote_core::client::{ReadPreference, SelectionError, Selector};
use cenote_core::connect::{IncompatibleServer, ServerKind};
use cenote_core::error::ConnectionError;
use cenote_core::monitor::ServerDescription;
use cenote_core::pool::{CheckOutError, ConnId, Input, Purpose, Status, WaiterId};
use cenote_core::topology::{ServerId, TopologyDescription, TopologyKind};
use cenote_core::uri::ReadPreferenceMode;

use super::client::Attempt;
use super::plan::host;
use super::server::Server;
use super::world::{Due, World};
use crate::simulate::coverage::Situation;

/// A caller.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    selector: Selector,
    /// Counts its attempts; what was planned for an earlier one is ignored.
    attempt: u64,
    selection: Option<SelectionId>,
    avoided: Vec<ServerAddress>,
    is_selecting: bool,
    /// It has had an operation that succeeded since all faults ended.
    pub(super) is_served: bool,
}

impl Default for Caller {
    fn default() -> Self {
        Self {
            selector: Selector::Primary,
            attempt: 0,
            selection: None,
            avoided: Vec::new(),
            is_selecting: false,
            is_served: false,
        }
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
        let (selector, avoided) = (self.draw_selector(), self.draw_avoided());
        let Some(its) = self.callers.get_mut(caller as usize) else { return Ok(()) };
        if let Some(id) = its.selection.take().filter(|_| its.is_selecting) {
            self.feed_client(ClientInput::CancelSelection { id })?;
        }
        let id = self.client.next_selection();
        let Some(its) = self.callers.get_mut(caller as usize) else { return Ok(()) };
        its.attempt += 1;
        its.selection = Some(id);
        its.avoided = avoided.clone();
        (its.selector, its.is_selecting) = (selector.clone(), true);
        let waiter = (caller, its.attempt);
        let deadline = Some(self.now + self.client.settings.selection_timeout);
        let draw = self.random.number();
        let selector = selector.avoiding(avoided);
        let request = Request { id, waiter, selector, deadline, draw };
        let before = self.client.state.waiting();
        self.feed_client(ClientInput::SelectServer(request))?;
        if self.client.state.waiting() > before {
            self.coverage.count(Situation::SelectionWaits);
        }
        Ok(())
    }

    /// Where an operation has just failed, for example.
    fn draw_avoided(&mut self) -> Vec<ServerAddress> {
        let hosts = 0..self.cluster.nodes.len();
        if self.is_recovering || !self.random.one_in(4) {
            return Vec::new();
        }
        hosts.filter(|_| self.random.flip()).filter_map(|at| host(at).parse().ok()).collect()
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

    /// What a selection comes to, when that is decided.
    pub(super) fn expect_selected(
        &mut self,
        (caller, _): Attempt,
        outcome: &Result<Chosen, SelectionError>,
    ) -> Result<(), String> {
        match outcome {
            Ok(Chosen { first, second }) => [Some(*first), *second]
                .into_iter()
                .flatten()
                .try_for_each(|server| self.expect_usable(caller, server)),
            Err(SelectionError::NotOfThisClient { address }) => {
                self.coverage.count(Situation::SelectionForeign);
                self.expect_foreign(address)
            }
            Err(SelectionError::Incompatible { .. }) => {
                self.coverage.count(Situation::SelectionIncompatible);
                self.expect_incompatible(caller)
            }
            Err(SelectionError::TimedOut { .. }) => {
                self.coverage.count(Situation::SelectionTimedOut);
                Ok(())
            }
            Err(SelectionError::Closed) if self.is_closed => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The caller hears of it.
    pub(super) fn selected(
        &mut self,
        (caller, attempt): Attempt,
        chosen: Option<Chosen>,
    ) -> Result<(), String> {
        let its = self.callers.get_mut(caller as usize);
        if its.is_none_or(|its| !its.is_selecting || its.attempt != attempt) {
            return Ok(()); // The answer to one that was cancelled was on its way.
        }
        match chosen {
            Some(Chosen { first, second }) => {
                let operations =
                    |id: ServerId| self.client.servers.get(&id).map_or(0, Server::operations);
                let second = second.filter(|second| operations(*second) < operations(first));
                self.check_out(caller, second.unwrap_or(first))
            }
            None => {
                self.give_up(caller);
                Ok(())
            }
        }
    }

    fn give_up(&mut self, caller: u32) {
        if let Some(its) = self.callers.get_mut(caller as usize) {
            its.is_selecting = false;
        }
        self.come_again(caller, false);
    }

    fn check_out(&mut self, caller: u32, server: ServerId) -> Result<(), String> {
        let Some(its) = self.callers.get_mut(caller as usize) else { return Ok(()) };
        its.is_selecting = false;
        let Some(its) = self.client.server(server).filter(|its| !its.is_removed) else {
            self.come_again(caller, false);
            return Ok(());
        };
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
    fn expect_usable(&mut self, caller: u32, server: ServerId) -> Result<(), String> {
        let Some(asking) = self.callers.get(caller as usize) else { return Ok(()) };
        let (selector, avoided) = (asking.selector.clone(), asking.avoided.clone());
        let Some(its) = self.client.servers.get(&server) else {
            return Err("a server was selected that is gone".to_owned());
        };
        let topology = self.client.state.description();
        let kind = topology.server(&its.address).and_then(|described| described.kind());
        let status = its.subject.snapshot().status;
        if fits(&selector, topology, &its.address) && status == Status::Ready {
            let is_of_one_kind = matches!(selector, Selector::Any | Selector::Secondary);
            let mut others = topology.servers().map(|(address, _)| address);
            let other = others.find(|it| !avoided.contains(it) && fits(&selector, topology, it));
            return match other.filter(|_| is_of_one_kind && avoided.contains(&its.address)) {
                None => Ok(()),
                Some(other) => Err(format!("{} is to be avoided, and {other} fits", its.address)),
            };
        }
        Err(format!(
            "{} was selected, {kind:?} with a pool that is {status}: {topology}",
            its.address
        ))
    }

    /// A caller gives up at once only if the deployment has no such server, and cannot get it by the next check.
    fn expect_foreign(&self, address: &ServerAddress) -> Result<(), String> {
        let topology = self.client.state.description();
        let may_grow = [TopologyKind::Unknown, TopologyKind::ReplicaSetNoPrimary];
        if topology.server(address).is_none() && !may_grow.contains(&topology.kind) {
            return Ok(());
        }
        Err(format!("{address} is wanted, and counts as no server of {topology}"))
    }

    /// A caller gives up at once only if every server that could serve it speaks other versions.
    fn expect_incompatible(&self, caller: u32) -> Result<(), String> {
        let selector = self.callers.get(caller as usize).map(|its| &its.selector);
        let topology = self.client.state.description();
        let wanted = match selector {
            Some(Selector::Address(address)) => topology.server(address).map(|_| address),
            Some(_) | None => None,
        };
        let may_serve = |(address, server): (&Arc<ServerAddress>, &Arc<ServerDescription>)| {
            let error = server.error.as_ref();
            let source = error.and_then(ConnectionError::source_as::<IncompatibleServer>);
            let is_incompatible = source.is_some();
            wanted.is_none_or(|wanted| *wanted == **address) && !is_incompatible
        };
        match topology.servers().find(|it| may_serve(*it)) {
            None => Ok(()),
            Some((address, _)) => {
                Err(format!("a caller gives up, but {address} may serve: {topology}"))
            }
        }
    }

    pub(super) fn cancel(&mut self, server: ServerId, request: WaiterId) -> Result<(), String> {
        let Some(its) = self.client.server(server) else { return Ok(()) };
        if !its.accounting.is_waiting(request) {
            return Ok(());
        }
        self.coverage.count(Situation::Cancelled);
        self.feed_pool(server, Input::CheckOutCancelled { id: request })
    }

    pub(super) fn delivered(
        &mut self,
        server: ServerId,
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

/// Whether a server serves what it is selected for, by its description.
fn fits(selector: &Selector, topology: &TopologyDescription, address: &ServerAddress) -> bool {
    let is_set = topology.kind.is_replica_set();
    let kind = topology.server(address).and_then(|described| described.kind());
    match (selector, kind) {
        (_, None) => false,
        (Selector::Address(wanted), Some(_)) if wanted != address => false,
        (Selector::Primary, Some(kind)) if is_set => kind == ServerKind::RsPrimary,
        (Selector::Secondary, Some(kind)) if is_set => kind == ServerKind::RsSecondary,
        (_, Some(kind)) => kind.is_data_bearing() || topology.kind == TopologyKind::Single,
    }
}
