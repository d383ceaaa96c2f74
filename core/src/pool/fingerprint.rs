//! One number for a whole state, to compare two runs by.

use super::action::Shell;
use super::connections::{Connections, Doing, List};
use super::id::{ConnId, ServiceId};
use super::options::{PoolOptions, mix};
use super::state::PoolState;
use super::time::Instant;
use super::wait_queue::Request;

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

    fn add_options(&mut self, options: &PoolOptions) {
        core::hash::Hash::hash(options, &mut HashInto(self));
    }
}

impl<S: Shell> PoolState<S> {
    /// A number that is the same for the same history and, but for chance, differs for states that
    /// differ in any way that matters. Payloads do not enter it, so that a run with real sockets and
    /// its replay without any agree. Costs as much as the pool is large.
    pub fn fingerprint(&self) -> u64 {
        let Self {
            options,
            settings: _, // Follows from the options.
            status,
            generation,
            services,
            connections,
            queue,
            owners: _, // Follows from the connections.
            purposes: _,
            cleared_by,
            populate_after,
            inherited,
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
        for (id, generation, _) in services.iter() {
            digest.add_service(Some(id));
            digest.add(generation);
        }
        add_connections(&mut digest, connections);
        digest.add(queue.len() as u64);
        for ((id, started, deadline, purpose), callers) in queue.iter().zip(queue.iter_callers()) {
            digest.add(id.0);
            digest.add_time(Some(started));
            digest.add_time(deadline);
            digest.add(u64::from(callers));
            digest.add(purpose as u64);
        }
        digest.0
    }
}

fn add_connections<S: Shell>(digest: &mut Digest, connections: &Connections<S>) {
    digest.add(connections.last_number());
    digest.add_time(connections.next_expiry());
    for list in [List::Pending, List::Available, List::InUse, List::Overdue] {
        digest.add(u64::from(connections.len(list)));
        for (id, connection) in connections.iter(list) {
            digest.add_id(id);
            digest.add(connection.generation);
            digest.add_service(connection.service);
            digest.add_time(Some(connection.created));
            digest.add_time(connection.expires);
            add_doing(digest, &connection.doing);
        }
    }
}

fn add_doing<S: Shell>(digest: &mut Digest, doing: &Doing<S>) {
    match doing {
        Doing::Pending { owner, handshaken } => {
            digest.add(u64::from(*handshaken));
            digest.add(u64::from(owner.is_some()));
            if let Some(request) = owner {
                add_request(digest, request);
            }
        }
        Doing::Available { since, conn: _ } => digest.add_time(Some(*since)),
        Doing::InUse { since, purpose, interrupted } => {
            digest.add_time(Some(*since));
            digest.add(*purpose as u64);
            digest.add(u64::from(*interrupted));
        }
    }
}

fn add_request<W>(digest: &mut Digest, request: &Request<W>) {
    let Request { id, waiter: _, started, deadline, deadline_is_callers, purpose } = request;
    digest.add(id.0);
    digest.add_time(Some(*started));
    digest.add_time(*deadline);
    digest.add(u64::from(*deadline_is_callers));
    digest.add(*purpose as u64);
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
