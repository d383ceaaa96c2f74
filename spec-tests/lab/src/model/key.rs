//! Keys of states: two states with the same key are equivalent.

use cenote_core::pool::{Instant, PoolTypes, ServiceId, Status};

use super::pace::{Demand, Pace};
use super::{Model, Phase, Request};

impl<S: PoolTypes> Model<S> {
    /// Writes everything that can affect the future, and nothing else: two models with the same key
    /// answer every future alike, except for a shift of time and of the numbers of connections and
    /// requests.
    ///
    /// So times are distances from now; connections are in the order of their states, by slot;
    /// generations are only stale or current; requests are in queue order. Of clears by service only
    /// the last one counts: a `Handshaken` of the search is at most one clear late.
    pub fn write_key(&self, key: &mut Vec<u64>) {
        let Self {
            options: _, // The key is for one set of options; a search that changes them adds which.
            status,
            generation: _, // What counts is whether a connection is of it.
            services,
            clears,
            connections,
            queue,
            responses,
            cleared_by,
            populate_after,
            delayed_since,
            pace,
            demand,
            created,
            inherited,
            last_waiter: _,       // Every new id is above it.
            now: _,               // Times are told as distances.
            clock_regressions: _, // Nothing depends on it.
            blank: _,
            actions: _, // Handed out.
        } = self;
        key.push(match status {
            Status::Paused => 0,
            Status::Ready => 1,
            Status::Closed => 2,
        });
        key.push(u64::from(cleared_by.is_some()));
        key.push(self.distance(*populate_after));
        key.push(self.distance(*delayed_since));
        self.write_policies(pace, *demand, key);
        key.push(u64::from(*inherited > 0) + 2 * u64::from(created > inherited));
        key.push(services.len() as u64);
        key.push(u64::from(!clears.is_empty()));
        for service in services {
            let is_last = clears.last() == Some(&service.id);
            key.push(u64::from(is_last || service.since == clears.len()));
            key.push(service_key(Some(service.id)));
            key.push(u64::from(service.cleared_by.is_some()));
        }
        for connection in connections {
            key.push(u64::from(connection.id.slot()));
            key.push(self.rank(connection.id.number()));
            key.push(u64::from(self.is_stale(connection.id)));
            key.push(service_key(connection.service));
            key.push(self.distance(connection.expires));
            key.push(u64::from(connection.expiry_seen));
            // Once it is established, its creation time has no effect.
            if let Phase::Pending { .. } = connection.phase {
                key.push(self.distance(Some(connection.created)));
            }
            self.write_phase(&connection.phase, key);
        }
        key.push(responses.len() as u64);
        for response in responses {
            // Which request it is the reply to, and why it is late, is only passed on.
            key.push(self.rank(response.connection.number()));
            key.push(self.distance(Some(response.last_read)));
        }
        key.push(queue.len() as u64);
        for request in queue {
            self.write_request(request, key);
        }
    }

    fn write_policies(&self, pace: &Pace, demand: Option<Demand>, key: &mut Vec<u64>) {
        let &Pace { establishment, use_time, gained, not_before, overloads } = pace;
        key.extend([establishment, use_time].map(|time| time.map_or(0, |time| time + 1)));
        key.extend([gained, not_before].map(|at| self.distance(at)));
        key.push(u64::from(overloads));
        // The next backoff depends on the number of a connection.
        key.push(if self.backoff().is_some() { self.created } else { 0 });
        if let Some(Demand { since, sum, predicted }) = demand {
            key.extend([self.distance(Some(since)), sum, u64::from(predicted)]);
        }
    }

    fn write_phase(&self, phase: &Phase<S::Conn, S::Waiter>, key: &mut Vec<u64>) {
        match phase {
            Phase::Pending { owner, handshaken, reported } => {
                let flags = u64::from(*handshaken) + 2 * u64::from(*reported);
                key.extend([0, flags, u64::from(owner.is_some())]);
                if let Some(request) = owner {
                    self.write_owner(request, key);
                }
            }
            Phase::Available { conn: _, since } => key.extend([1, self.distance(Some(*since))]),
            Phase::InUse { since, purpose, interrupted, reported } => {
                key.extend([2, self.distance(Some(*since)), *purpose as u64]);
                key.push(u64::from(*interrupted) + 2 * u64::from(*reported));
            }
            Phase::PendingResponse { conn: _, since } => {
                key.extend([3, self.distance(Some(*since))]);
            }
            Phase::Draining { owner, started, announced } => {
                key.extend([4, self.distance(Some(*started)), u64::from(owner.is_some())]);
                if let Some(request) = owner {
                    key.push(self.distance(Some(*announced)));
                    self.write_owner(request, key);
                }
            }
        }
    }

    fn write_owner(&self, request: &Request<S::Waiter>, key: &mut Vec<u64>) {
        key.push(self.rank_of_owner(request.id.0));
        // It may return to its place in the queue.
        let before = self.queue.iter().filter(|other| other.id < request.id);
        key.push(before.count() as u64);
        self.write_request(request, key);
    }

    fn write_request(&self, request: &Request<S::Waiter>, key: &mut Vec<u64>) {
        key.push(self.distance(Some(request.started)));
        key.push(self.distance(request.deadline));
        key.push(u64::from(request.callers));
        key.push(request.purpose as u64);
    }

    /// The number of older connections that are not closed.
    fn rank(&self, number: u64) -> u64 {
        self.connections.iter().filter(|other| other.id.number() < number).count() as u64
    }

    fn rank_of_owner(&self, id: u64) -> u64 {
        let older = |request: &Request<_>| request.id.0 < id;
        let owned = self.connections.iter().filter(|connection| match &connection.phase {
            Phase::Pending { owner, .. } | Phase::Draining { owner, .. } => {
                owner.as_ref().is_some_and(older)
            }
            Phase::Available { .. } | Phase::InUse { .. } | Phase::PendingResponse { .. } => false,
        });
        owned.count() as u64
    }

    /// The distance from now, in either direction; 0 is "never".
    fn distance(&self, at: Option<Instant>) -> u64 {
        at.map_or(0, |at| at.as_nanos().wrapping_sub(self.now.as_nanos()).wrapping_add(1 << 32))
    }
}

fn service_key(service: Option<ServiceId>) -> u64 {
    service.map_or(0, |ServiceId(bytes)| u64::from(bytes[11]) + 1)
}
