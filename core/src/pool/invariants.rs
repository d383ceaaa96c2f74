//! What must hold after every input, and of every checkpoint: one list of checks for both.

use alloc::collections::BTreeMap;

use super::checkpoint::InvalidCheckpoint;
use super::id::ConnId;
use super::options::Settings;
use super::state::PoolState;
use super::state::connections::{ConnState, Connection};
use super::state::lists::List;
use super::state::pacing::Pacing;
use super::state::pending_responses::Drain;
use super::state::verify::{Verdict, ensure};
use super::status::Status;
use super::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// The promises that are cheap to check: kept in every build, after every input.
    #[inline]
    pub(super) fn check_promises(&self) {
        if let Err(problem) = self.verify_promises() {
            panic!("{problem}: {self:?}");
        }
    }

    /// Recomputes everything that the machine keeps as a number, a link or an order. Costs as much
    /// as the pool is large; for tests, fuzzing and simulation.
    ///
    /// # Panics
    ///
    /// When something does not hold, which is a defect of the machine.
    // PS-22
    pub fn check_invariants(&self) {
        if let Err(problem) = self.verify() {
            panic!("{problem}: {self:?}");
        }
    }

    /// All that must hold: the first check that fails.
    pub(super) fn verify(&self) -> Result<(), InvalidCheckpoint> {
        let pool = InvalidCheckpoint::Contradiction;
        self.connections.verify().map_err(pool)?;
        let were_made = self.inherited <= self.connections.last_number();
        ensure(were_made, "more connections were inherited than made").map_err(pool)?;
        let were_made = self.reported <= self.connections.last_number();
        ensure(were_made, "more connections were reported than made").map_err(pool)?;
        self.verify_connections()?;
        self.connections.verify_expiries().map_err(pool)?;
        self.queue.verify().map_err(pool)?;
        self.verify_requests()?;
        self.verify_delay().map_err(pool)?;
        self.verify_status().map_err(pool)?;
        self.verify_promises().map_err(pool)?;
        self.verify_policies().map_err(pool)?;
        self.verify_owners().map_err(pool)?;
        self.verify_pending_responses()?;
        self.verify_services()?;
        let predicted =
            |settings| Settings { min_total: self.predicted_minimum(&settings), ..settings };
        let follow = Settings::new(&self.options).map(predicted) == Ok(self.settings);
        ensure(follow, "settings follow options").map_err(pool)
    }

    /// No lost wake-up: if the oldest request waits, nothing could serve it.
    // WQ-07
    #[inline]
    fn verify_promises(&self) -> Verdict {
        if self.queue.is_empty() {
            return Ok(());
        }
        ensure(self.status == Status::Ready, "requests wait only in a ready pool")?;
        let available = self.connections.len(List::Available);
        ensure(available == 0, "a request waits although a connection is available")?;
        let is_pending = self.connections.pending_response() > 0;
        ensure(
            !is_pending || self.queue.is_oldest_due(self.now),
            "a request waits although a connection is pending a response",
        )?;
        ensure(!self.may_establish(), "a request waits although a connection could be made")
    }

    /// What policies remember is there if they are on, and is not from the future.
    fn verify_policies(&self) -> Verdict {
        let Pacing { establishment, use_time, gained, not_before: _, overloads } = self.pacing;
        let is_on = self.settings.paces || self.pacing == Pacing::default();
        ensure(is_on, "establishments are paced although that is switched off")?;
        let is_adaptive =
            self.settings.adapts || (establishment, use_time, gained) == (None, None, None);
        ensure(is_adaptive, "establishments were measured although the pool does not adapt")?;
        ensure(self.settings.backoff.is_some() || overloads == 0, "the pool never backs off")?;
        ensure(gained <= Some(self.now), "a connection was gained after its time")?;
        ensure(
            self.demand.is_some() == self.settings.predicts,
            "demand is measured to predict it",
        )?;
        let began = self.demand.is_none_or(|demand| demand.since <= self.now);
        ensure(began, "the demand is measured from after its time")
    }

    fn verify_connections(&self) -> Result<(), InvalidCheckpoint> {
        for list in List::ALL {
            let mut previous = None;
            for (id, connection) in self.connections.iter(list) {
                let verdict = self.verify_connection(id, connection, list, previous);
                verdict.map_err(|problem| InvalidCheckpoint::Connection { id, problem })?;
                previous = Some(connection);
            }
        }
        Ok(())
    }

    fn verify_connection(
        &self,
        id: ConnId,
        connection: &Connection<S::Conn>,
        list: List,
        previous: Option<&Connection<S::Conn>>,
    ) -> Verdict {
        let &Connection { generation, service, created, expires, expiry_met, .. } = connection;
        let numbers = self.inherited + 1..=self.connections.last_number();
        ensure(numbers.contains(&id.number()), "has a number that was not given out")?;
        let (is_pending, is_available, is_handshaken) = match connection.state {
            ConnState::Pending { handshaken, .. } => (true, false, handshaken),
            ConnState::Available { .. } => (false, true, true),
            ConnState::InUse { .. } | ConnState::Draining { .. } => (false, false, true),
        };
        ensure(
            service.is_some() == (is_handshaken && self.settings.load_balanced),
            "belongs to a service if and only if there is a load balancer and hello is done",
        )?;
        let current = match service {
            Some(service) => {
                let known = self.services.generation(service);
                known.ok_or("belongs to a service that is not there")?
            }
            None => self.generation,
        };
        ensure(generation <= current, "is of a generation that has not begun")?;
        // Only a fork begins a generation of a load-balanced pool, and it leaves nothing pending.
        let has_none = self.settings.load_balanced && !is_handshaken;
        ensure(!has_none || generation == current, "is stale before it has a service")?;
        // A retired one is left alone if it is stale.
        let is_stale = self.has_old_generation(connection);
        ensure(
            !is_pending || expires.is_none() || (expiry_met && is_stale),
            "has an end of life before it is established",
        )?;
        ensure(!expiry_met || expires.is_some(), "has met the end of a life that has none")?;
        ensure(!expiry_met || !is_available, "has met the end of its life and is available")?;
        let since = connection.since();
        ensure(
            created <= since && since <= self.now,
            "is in its state from before or after its time",
        )?;
        let is_in_order = previous.is_none_or(|previous| match list {
            List::Pending => previous.number < id.number(),
            List::Available | List::InUse | List::Overdue | List::PendingResponse => {
                previous.since() <= since
            }
            // In the order in which requests came to them and left them.
            List::Draining | List::DrainingUnowned => true,
        });
        ensure(is_in_order, "is not in the order of time")
    }

    fn verify_requests(&self) -> Result<(), InvalidCheckpoint> {
        let owners = self.owners.iter().map(|(request, _)| request.without_waiter());
        for request in owners.chain(self.queue.iter()) {
            let verdict = ensure(Some(request.id) <= self.last_waiter, "has an id above the last")
                .and(ensure(request.started <= self.now, "has not begun to wait yet"));
            verdict.map_err(|problem| InvalidCheckpoint::Request { id: request.id, problem })?;
        }
        Ok(())
    }

    fn verify_delay(&self) -> Verdict {
        let stands = self.delay_stands();
        ensure(self.standing_since.is_some() == stands, "whether the delay stands is known")?;
        ensure(self.standing_since <= Some(self.now), "the delay stands since a time to come")
    }

    // PS-11
    fn verify_status(&self) -> Verdict {
        let available = self.connections.available();
        let draining = self.connections.len(List::Draining);
        let runs_maintenance = self.settings.pause_after_failure.is_some();
        match self.status {
            Status::Ready => {}
            Status::Paused => {
                let is_stale = self.connections().all(|connection| connection.stale);
                ensure(is_stale, "a paused pool has nothing of its present generation")?;
                let is_pruned = !runs_maintenance || available == 0;
                ensure(is_pruned, "a paused pool has closed what was available")?;
                ensure(draining == 0, "a paused pool has stopped draining")?;
            }
            Status::Closed => {
                ensure(available == 0, "a closed pool has no available connection")?;
                let pending = self.connections.len(List::Pending);
                ensure(pending == 0, "a closed pool has no pending connection")?;
                ensure(draining == 0, "a closed pool has stopped draining")?;
            }
        }
        // One that lost the request for which it was draining goes on, even if it is surplus.
        let kept = available - self.connections.len(List::DrainingUnowned);
        ensure(kept == 0 || !self.has_surplus(), "surplus is not kept available")
    }

    fn verify_owners(&self) -> Verdict {
        let is_sorted = self.owners.is_sorted_by(|(a, _), (b, _)| a.id < b.id);
        ensure(is_sorted, "owners are in the order of requests")?;
        let mut owned = 0;
        let drains = self.connections.iter(List::Draining);
        for (id, connection) in self.connections.iter(List::Pending).chain(drains) {
            let owner = match connection.state {
                ConnState::Pending { owner, .. } => owner,
                ConnState::Draining { owner } => owner.map(|(owner, _)| owner),
                ConnState::Available { .. } | ConnState::InUse { .. } => None,
            };
            if let Some(owner) = owner {
                let found = self.owners.binary_search_by_key(&owner, |(request, _)| request.id);
                let is_known = found.is_ok_and(|index| self.owners[index].1 == id);
                ensure(is_known, "an owner and its connection know each other")?;
                owned += 1;
            }
        }
        ensure(owned == self.owners.len(), "an owner and its connection know each other")?;
        let is_in_one_place = self.queue.iter().all(|waiting| {
            self.owners.binary_search_by_key(&waiting.id, |(request, _)| request.id).is_err()
        });
        // An owner may be younger than a request that waits: one whose drain failed waits in its old place.
        ensure(is_in_one_place, "an owner does not wait in the queue")?;
        ensure(self.owners_due == self.next_owner_due(), "when the next owner is due is known")
    }

    fn verify_pending_responses(&self) -> Result<(), InvalidCheckpoint> {
        let pool = InvalidCheckpoint::Contradiction;
        let count = self.pending_responses.len();
        let is_on = self.settings.pending_response || count == 0;
        ensure(is_on, "responses are pending although that is switched off").map_err(pool)?;
        let mut found = 0;
        for list in [List::PendingResponse, List::Draining, List::DrainingUnowned] {
            for (id, connection) in self.connections.iter(list) {
                let verdict = self.verify_pending_response(id, connection, list);
                verdict.map_err(|problem| InvalidCheckpoint::Connection { id, problem })?;
                found += 1;
            }
        }
        ensure(found == count, "a pending response is that of a connection").map_err(pool)?;
        let is_known = self.pending_responses.next_due() == self.next_drain_due();
        ensure(is_known, "when the next drain is due is known").map_err(pool)
    }

    fn verify_pending_response(
        &self,
        id: ConnId,
        connection: &Connection<S::Conn>,
        list: List,
    ) -> Verdict {
        let response = self.pending_responses.get(id).ok_or("is pending an unknown response")?;
        let read = connection.created <= response.last_read && response.last_read <= self.now;
        ensure(read, "was read from before or after its time")?;
        let drain = response.drain;
        let drains = list != List::PendingResponse;
        ensure(drain.is_some() == drains, "drains if and only if it is on such a list")?;
        let Some(Drain { started, announced }) = drain else { return Ok(()) };
        let began = connection.created <= started && started <= self.now;
        ensure(began, "drains from before or after its time")?;
        ensure(!self.has_old_generation(connection), "drains although it is stale")?;
        let is_owned = list == List::Draining;
        ensure(announced.is_some() == is_owned, "was announced if and only if it has an owner")?;
        let is_in_time = announced.is_none_or(|at| started <= at && at <= self.now);
        ensure(is_in_time, "was announced before or after its time")
    }

    fn verify_services(&self) -> Result<(), InvalidCheckpoint> {
        let mut counted = BTreeMap::new();
        let all = List::ALL.into_iter().flat_map(|list| self.connections.iter(list));
        for service in all.filter_map(|(_, connection)| connection.service) {
            *counted.entry(service).or_insert(0) += 1;
        }
        for (id, _, connections) in self.services.iter() {
            let problem = match counted.remove(&id) {
                _ if self.services.clears_of(id) > self.services.clears() => {
                    "was cleared more often than all services together"
                }
                None => "has no connections, so it is forgotten",
                Some(found) if found != connections => "does not count its connections",
                Some(_) => continue,
            };
            return Err(InvalidCheckpoint::Service { id, problem });
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;
