//! Whether the pools agree with the description of the topology.

use cenote_core::address::ServerAddress;
use cenote_core::client::machine::Action;
use cenote_core::error::ConnectionError;
use cenote_core::monitor::{Monitor, ServerDescription};
use cenote_core::pool::Status;
use cenote_core::sdam::{StalePrimary, StateChange};
use cenote_core::topology::{ServerId, TopologyKind};

use super::client::Client;
use super::world::World;

impl World<'_> {
    /// A server that is described as usable has a ready pool; one that is Unknown because it failed has none. Each server
    /// has a pool, unless it is about to be added or removed, and the pool knows how long a round trip takes at least (CS-14).
    pub(super) fn expect_agreement(&self) -> Result<(), String> {
        let client = &self.client;
        let description = client.state.description();
        for (address, described) in description.servers() {
            let is_single = description.kind == TopologyKind::Single;
            let expected = expected_status(described, is_single);
            let server = client.server_at(address).and_then(|at| client.servers.get(&at));
            let status = server.map(|server| server.subject.snapshot().status);
            match status.filter(|_| !client.will_remove(address)) {
                Some(status) if expected.is_none_or(|expected| expected == status) => {}
                // It has none yet; another one at this address may be about to be removed.
                None if client.will_add(address)
                    && (expected != Some(Status::Ready) || described.is_load_balancer) => {}
                _ => return Err(format!("{address} is {described}, and its pool is {status:?}")),
            }
        }
        for (id, server) in client.servers.iter().filter(|(_, server)| !server.is_removed) {
            let round_trip = client.state.monitor(*id).and_then(Monitor::round_trip);
            let minimum =
                round_trip.map(|it| it.minimum).filter(|it| server.min_round_trip != Some(*it));
            if let Some(minimum) = minimum {
                let (address, told) = (&server.address, server.min_round_trip);
                return Err(format!(
                    "{address}: a round trip takes {minimum:?}, and its pool knows {told:?}"
                ));
            }
        }
        let mut others = client.by_address.keys().filter(|it| description.server(it).is_none());
        match others.find(|address| !client.will_remove(address)) {
            Some(address) => Err(format!("{address} has a pool, and is not in {description}")),
            None => Ok(()),
        }
    }

    /// A monitor clears the pool of a server that is Unknown for the same reason, and of no other (SD-08).
    pub(super) fn expect_failed(
        &self,
        server: ServerId,
        cause: &ConnectionError,
    ) -> Result<(), String> {
        let description = self.client.state.monitor(server).map(Monitor::description);
        let error = description.and_then(|description| description.error.as_ref());
        match error.is_some_and(|error| error.to_string() == cause.to_string()) {
            true => Ok(()),
            false => Err(format!("a pool is cleared for {cause}; its server is {description:?}")),
        }
    }
}

/// The status that the pool must have; `None` if that depends on what was before: after a refusal that clears nothing,
/// and for members that hold no data.
fn expected_status(server: &ServerDescription, is_single: bool) -> Option<Status> {
    if server.is_known() {
        let is_usable = server.is_data_bearing() || is_single;
        return is_usable.then_some(Status::Ready);
    }
    let Some(error) = &server.error else { return Some(Status::Paused) };
    let change = error.command_error().and_then(StateChange::of);
    let keeps_pool =
        matches!(change, Some(StateChange::NotWritablePrimary | StateChange::NodeIsRecovering));
    let is_refused = error.source_as::<StalePrimary>().is_some()
        || error.to_string().contains("more than 100 servers");
    (!keeps_pool && !is_refused).then_some(Status::Paused)
}

impl Client {
    /// Whether a pool is still to be made.
    fn will_add(&self, address: &ServerAddress) -> bool {
        self.outbox.iter().any(
            |action| matches!(action, Action::OpenPool { address: its, .. } if **its == *address),
        )
    }

    /// Whether a pool is still to be closed.
    fn will_remove(&self, address: &ServerAddress) -> bool {
        self.outbox.iter().any(
            |action| matches!(action, Action::ClosePool { address: its, .. } if **its == *address),
        )
    }
}
