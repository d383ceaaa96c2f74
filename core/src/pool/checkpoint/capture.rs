//! From a machine to a checkpoint.

use super::{
    ConnectionCheckpoint, ConnectionStateCheckpoint, PoolCheckpoint, RequestCheckpoint,
    ServiceCheckpoint,
};
use crate::pool::id::ConnId;
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connection};
use crate::pool::state::lists::List;
use crate::pool::state::pending_responses::{Drain, PendingResponse};
use crate::pool::state::request::Request;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Everything but the payloads, as plain data. Costs as much as the pool is large, and
    /// allocates as much.
    pub fn checkpoint(&self) -> PoolCheckpoint {
        let mut checkpoint = PoolCheckpoint::default();
        self.checkpoint_into(&mut checkpoint);
        checkpoint
    }

    /// The same into a checkpoint whose memory is used again: allocates only where the pool is
    /// larger than it was.
    pub fn checkpoint_into(&self, checkpoint: &mut PoolCheckpoint) {
        checkpoint.options.clone_from(&self.options);
        checkpoint.status = self.status;
        checkpoint.generation = self.generation;
        checkpoint.was_cleared = self.cleared_by.is_some();
        checkpoint.populate_after = self.populate_after;
        checkpoint.standing_since = self.standing_since;
        checkpoint.pacing = self.pacing;
        checkpoint.demand = self.demand;
        checkpoint.inherited = self.inherited;
        checkpoint.reported = self.reported;
        checkpoint.last_waiter = self.last_waiter;
        checkpoint.last_connection = self.connections.last_number();
        checkpoint.now = self.now;
        checkpoint.clock_regressions = self.clock_regressions;
        checkpoint.old_rules = self.old_rules;
        checkpoint.service_clears = self.services.clears();
        checkpoint.services.clear();
        checkpoint.services.extend(self.services.iter().map(|(id, generation, _)| {
            ServiceCheckpoint {
                id,
                generation,
                was_cleared: self.services.cleared_by(id).is_some(),
                clears: self.services.clears_of(id),
            }
        }));
        checkpoint.connections.clear();
        for list in List::ALL {
            let connections = self.connections.iter(list);
            let state_of = |id, at| checkpoint_of(id, list, at, self.pending_responses.get(id));
            checkpoint.connections.extend(connections.map(|(id, at)| state_of(id, at)));
        }
        checkpoint.free_slots.clear();
        checkpoint.free_slots.extend(self.connections.free_slots());
        checkpoint.requests.clear();
        let owners = self.owners.iter();
        checkpoint.requests.extend(
            owners.map(|(request, id)| checkpoint_of_request(&request.without_waiter(), Some(*id))),
        );
        checkpoint
            .requests
            .extend(self.queue.iter().map(|request| checkpoint_of_request(&request, None)));
        checkpoint.requests.sort_unstable_by_key(|request| request.id);
    }
}

fn checkpoint_of<C, E>(
    id: ConnId,
    list: List,
    connection: &Connection<C>,
    response: Option<&PendingResponse<E>>,
) -> ConnectionCheckpoint {
    let state = match (&connection.state, response) {
        (ConnState::Pending { owner: _, handshaken }, _) => {
            ConnectionStateCheckpoint::Pending { handshaken: *handshaken }
        }
        (&ConnState::Available { since, conn: _ }, None) => {
            ConnectionStateCheckpoint::Available { since }
        }
        (&ConnState::Available { since, conn: _ }, Some(response)) => {
            let &PendingResponse { request_id, last_read, .. } = response;
            ConnectionStateCheckpoint::PendingResponse { since, request_id, last_read }
        }
        (&ConnState::InUse { since, purpose, interrupted }, _) => {
            let reported = list == List::Overdue;
            ConnectionStateCheckpoint::InUse { since, purpose, interrupted, reported }
        }
        (ConnState::Draining { owner: _ }, response) => draining(response),
    };
    ConnectionCheckpoint {
        id,
        generation: connection.generation,
        service: connection.service,
        created: connection.created,
        expires: connection.expires,
        expiry_met: connection.expiry_met,
        state,
    }
}

fn draining<E>(response: Option<&PendingResponse<E>>) -> ConnectionStateCheckpoint {
    let response = response.expect("a draining connection is pending a response");
    let &PendingResponse { request_id, last_read, .. } = response;
    let Drain { started: since, announced } = response.drain.expect("it drains");
    ConnectionStateCheckpoint::Draining { since, announced, request_id, last_read }
}

const fn checkpoint_of_request(request: &Request<()>, owns: Option<ConnId>) -> RequestCheckpoint {
    let &Request { id, started, deadline, deadline_is_callers, purpose, .. } = request;
    RequestCheckpoint { id, started, deadline, deadline_is_callers, purpose, owns }
}
