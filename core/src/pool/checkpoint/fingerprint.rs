//! One number for a whole state, to compare two runs by.

use crate::pool::id::{ConnId, ServiceId};
use crate::pool::options::{PoolOptions, mix};
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connections};
use crate::pool::state::demand::Demand;
use crate::pool::state::lists::List;
use crate::pool::state::pacing::Pacing;
use crate::pool::state::pending_responses::PendingResponse;
use crate::pool::state::request::Request;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

/// Takes in numbers, in order.
struct Digest(u64);

impl Digest {
    fn add(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number).rotate_left(17);
    }

    fn add_time(&mut self, instant: Option<Instant>) {
        self.add(instant.map_or(0, |instant| instant.as_nanos() + 1));
    }

    fn add_id(&mut self, id: ConnId) {
        self.add(id.number());
        self.add(u64::from(id.slot()));
    }

    fn add_service(&mut self, service: Option<ServiceId>) {
        let Some(ServiceId(bytes)) = service else { return self.add(0) };
        bytes.iter().for_each(|&byte| self.add(u64::from(byte) + 1));
    }

    fn add_pacing(&mut self, pacing: &Pacing) {
        let &Pacing { establishment, use_time, gained, not_before, overloads } = pacing;
        self.add(establishment.map_or(0, |time| time.wrapping_add(1)));
        self.add(use_time.map_or(0, |time| time.wrapping_add(1)));
        self.add_time(gained);
        self.add_time(not_before);
        self.add(u64::from(overloads));
    }

    fn add_options(&mut self, options: &PoolOptions) {
        core::hash::Hash::hash(options, &mut HashInto(self));
    }
}

impl<S: PoolTypes> PoolState<S> {
    /// A number that is the same for the same history and, but for chance, differs for states that
    /// differ in any way that matters. Payloads do not enter it, so that a run with real
    /// sockets and its replay without any agree. Costs as much as the pool is large.
    pub fn fingerprint(&self) -> u64 {
        let Self {
            options,
            settings: _, // Follows from the options.
            status,
            generation,
            services,
            connections,
            queue,
            pending_responses,
            owners,
            owners_due: _, // Follows from these.
            old_rules: _,  // That of a trace.
            cleared_by,
            populate_after,
            standing_since,
            pacing,
            demand,
            inherited,
            reported,
            last_waiter,
            now,
            clock_regressions,
        } = self;
        let mut digest = Digest(0);
        digest.add_options(options);
        digest.add(*status as u64);
        digest.add(*generation);
        digest.add(u64::from(cleared_by.is_some()));
        digest.add_time(*populate_after);
        digest.add(*inherited);
        digest.add(last_waiter.map_or(0, |id| id.0.wrapping_add(1)));
        digest.add_time(Some(*now));
        digest.add(*clock_regressions);
        // How often services were cleared is not part of it: the number came after the first version of
        // traces, whose fingerprints have to stay valid. What it decides shows in the connections.
        for (id, generation, _) in services.iter() {
            digest.add_service(Some(id));
            digest.add(generation);
            digest.add(u64::from(services.cleared_by(id).is_some()));
        }
        add_connections(&mut digest, connections);
        for (id, response) in pending_responses.iter() {
            add_pending_response(&mut digest, id, response);
        }
        // How long a request might wait before its connection was started is not part of it: the first version of
        // traces did not keep that.
        let owners = owners.iter().map(|(request, id)| {
            let is_established = connections.list_of(*id) == List::Pending;
            let request = request.without_waiter();
            if is_established { request.while_established() } else { request }
        });
        for request in owners.chain(queue.iter()) {
            add_request(&mut digest, &request);
        }
        // These came after the first version of traces, whose fingerprints have to stay valid.
        if *reported != 0 {
            digest.add(*reported);
        }
        if standing_since.is_some() {
            digest.add(1);
            digest.add_time(*standing_since);
        }
        if *pacing != Pacing::default() {
            digest.add(2);
            digest.add_pacing(pacing);
        }
        if let Some(Demand { since, sum, predicted }) = demand {
            digest.add(3);
            digest.add_time(Some(*since));
            digest.add(*sum);
            digest.add(u64::from(*predicted));
        }
        digest.0
    }
}

fn add_connections<C>(digest: &mut Digest, connections: &Connections<C>) {
    digest.add(connections.last_number());
    digest.add_time(connections.next_expiry());
    for list in List::ALL {
        // These lists came after the first version of traces, whose fingerprints have to stay valid.
        let is_newer =
            matches!(list, List::PendingResponse | List::Draining | List::DrainingUnowned);
        if is_newer && connections.len(list) == 0 {
            continue;
        }
        digest.add(u64::from(connections.len(list)));
        for (id, connection) in connections.iter(list) {
            digest.add_id(id);
            digest.add(connection.generation);
            digest.add_service(connection.service);
            digest.add_time(Some(connection.created));
            digest.add_time(connection.expires);
            add_state(digest, &connection.state);
        }
    }
}

fn add_state<C>(digest: &mut Digest, state: &ConnState<C>) {
    match state {
        ConnState::Pending { owner, handshaken } => {
            digest.add(u64::from(*handshaken));
            digest.add(owner.map_or(0, |owner| owner.0.wrapping_add(1)));
        }
        ConnState::Available { since, conn: _ } => digest.add_time(Some(*since)),
        ConnState::InUse { since, purpose, interrupted } => {
            digest.add_time(Some(*since));
            digest.add(*purpose as u64);
            digest.add(u64::from(*interrupted));
        }
        ConnState::Draining { owner } => {
            digest.add(owner.map_or(0, |(owner, _)| owner.0.wrapping_add(1)));
        }
    }
}

fn add_pending_response<E>(digest: &mut Digest, id: ConnId, response: &PendingResponse<E>) {
    let &PendingResponse { request_id, last_read, cause: _, drain } = response;
    digest.add_id(id);
    digest.add(u64::from(request_id as u32));
    digest.add_time(Some(last_read));
    digest.add_time(drain.map(|drain| drain.started));
    digest.add_time(drain.and_then(|drain| drain.announced));
}

fn add_request(digest: &mut Digest, request: &Request<()>) {
    let &Request { id, started, deadline, deadline_is_callers, purpose, .. } = request;
    digest.add(id.0);
    digest.add_time(Some(started));
    digest.add_time(deadline);
    digest.add(u64::from(deadline_is_callers));
    digest.add(purpose as u64);
}

/// Lets the options, which derive `Hash`, enter a digest that is the same on every machine: the
/// numbers are taken as such, not as bytes in the machine's order.
struct HashInto<'a>(&'a mut Digest);

impl core::hash::Hasher for HashInto<'_> {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0.add(u64::from(byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.0.add(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.0.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.0.add(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.0.add(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0.0
    }
}

#[cfg(test)]
mod tests {
    use crate::pool::invariants::tests::{balanced, busy, idle};

    /// They are part of the format of traces, whose version changes when they do.
    #[test]
    fn fingerprints_do_not_change() {
        let found = [busy(), idle(), balanced()].map(|pool| pool.fingerprint());
        let kept = [0xedfd_5b2e_18be_01a8, 0xb33e_3848_de4e_0b41, 0x69f5_92b4_2e54_429f];
        assert_eq!(found, kept);
    }
}
