//! What one can ask a pool.

use cenote_core::pool::{ConnectionState as CoreState, ServiceId};

use crate::pointer::{Out, optional_bytes, sized, sized_struct};
use crate::pool::{HandleWord, Inner, Pool, answer};
use crate::status::{Failure, Status};

/// The state of a pool.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum PoolStatus {
    /// At first, and after a clear: no check-outs, nothing is created.
    Paused = 0,
    /// Serves check-outs and keeps up the minimum.
    Ready = 1,
    /// For good.
    Closed = 2,
}

/// Counts, state and generation of a pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// `sizeof(cenote_snapshot_info)`; to be set before the call.
    pub size: u32,
    /// A `cenote_pool_status`.
    pub status: u32,
    /// The pool's generation; services have their own.
    pub generation: u64,
    /// Pending, available and in use together.
    pub total: u32,
    /// Available connections.
    pub available: u32,
    /// How many of those have to receive a late reply before they can be used.
    pub pending_response: u32,
    /// Connections in use.
    pub in_use: u32,
    /// Connections being established.
    pub pending: u32,
    /// The effective `maxPoolSize`; 0 is without limit.
    pub max_pool_size: u32,
    /// The effective `minPoolSize`.
    pub min_pool_size: u32,
    /// The effective `maxConnecting`.
    pub max_connecting: u32,
    /// Connections in use by cursors.
    pub in_use_by_cursors: u32,
    /// Connections in use by transactions.
    pub in_use_by_transactions: u32,
    /// Connections in use by anything else.
    pub in_use_by_others: u32,
    /// 1 behind a load balancer, otherwise 0.
    pub load_balanced: u32,
    /// Requests in the wait queue.
    pub waiting: u64,
    /// Requests that own a connection that is not ready yet.
    pub owners: u64,
    /// How many connections there have ever been.
    pub connections_created: u64,
    /// How often time ran backwards and was held where it was.
    pub clock_regressions: u64,
    /// How many actions were not pulled yet.
    pub actions: u64,
}

sized_struct!(Snapshot, "cenote_snapshot_info", default);

/// The state of a connection.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ConnectionState {
    /// Being established.
    Pending = 0,
    /// Waiting in the pool.
    Available = 1,
    /// Checked out.
    InUse = 2,
    /// Waiting in the pool, and a late reply has to be read before it can be used.
    PendingResponse = 3,
    /// A late reply is being read.
    Draining = 4,
}

/// A connection, as it is at one moment.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// `sizeof(cenote_connection_info)`; to be set before the call.
    pub size: u32,
    /// A `cenote_connection_state`.
    pub state: u32,
    /// CMAP's id, from 1.
    pub connection: u64,
    /// Its generation: of its service behind a load balancer, otherwise of the pool.
    pub generation: u64,
    /// When it was created.
    pub created: u64,
    /// Since when it has been in its state.
    pub since: u64,
    /// Its service, if `has_service`.
    pub service: [u8; 12],
    /// Whether `service` is one.
    pub has_service: bool,
    /// Whether it is of an older generation than its pool or service.
    pub is_stale: bool,
    /// 0, for later versions.
    pub reserved: [u8; 10],
}

sized_struct!(Connection, "cenote_connection_info", default);

/// Tells the counts, the state and the generation. Takes constant time.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_snapshot(pool: *const Pool, snapshot: *mut Snapshot) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::new(snapshot) };
    answer(pool, out, |inner| Ok(taken(inner)))
}

fn taken(inner: &Inner) -> Snapshot {
    let now = inner.machine.snapshot();
    Snapshot {
        status: now.status as u32,
        generation: now.generation,
        total: now.total,
        available: now.available,
        pending_response: now.pending_response,
        in_use: now.in_use,
        pending: now.pending,
        max_pool_size: now.max_pool_size.unwrap_or(0),
        min_pool_size: now.min_pool_size,
        max_connecting: now.max_connecting,
        in_use_by_cursors: now.in_use_by_cursors,
        in_use_by_transactions: now.in_use_by_transactions,
        in_use_by_others: now.in_use_by_others,
        load_balanced: u32::from(now.load_balanced),
        waiting: now.waiting,
        owners: now.owners,
        connections_created: now.connections_created,
        clock_regressions: now.clock_regressions,
        actions: inner.outbox.actions.len() as u64,
        ..sized()
    }
}

/// Tells about one connection; `CENOTE_STATUS_NOTHING` if it is closed, or never was. Takes time in proportion to the
/// number of connections; for generations alone there is `cenote_generation_of`.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_connection(
    pool: *const Pool,
    connection: u64,
    info: *mut Connection,
) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::new(info) };
    answer(pool, out, |inner| described(inner, connection))
}

fn described(inner: &Inner, connection: u64) -> Result<Connection, Failure> {
    let machine = &inner.machine;
    let found = machine.connections().find(|it| it.id.number() == connection);
    let info = found.ok_or_else(|| no_connection(connection))?;
    let state = match info.state {
        CoreState::Pending { .. } => ConnectionState::Pending,
        CoreState::Available => ConnectionState::Available,
        CoreState::PendingResponse { .. } => ConnectionState::PendingResponse,
        CoreState::Draining { .. } => ConnectionState::Draining,
        CoreState::InUse { .. } => ConnectionState::InUse,
    };
    Ok(Connection {
        state: state as u32,
        connection,
        generation: machine.generation_of(info.id).unwrap_or(0),
        created: info.created.as_nanos(),
        since: info.since.as_nanos(),
        service: info.service.map_or([0; 12], |service| service.0),
        has_service: info.service.is_some(),
        is_stale: info.stale,
        ..sized()
    })
}

fn no_connection(connection: u64) -> Failure {
    Failure::new(Status::Nothing, format!("there is no connection {connection} (any more)"))
}

/// The pool's generation; with a service, that of the service. `CENOTE_STATUS_NOTHING` if no connection belongs to it.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_generation(
    pool: *const Pool,
    service: *const u8,
    generation: *mut u64,
) -> Status {
    // SAFETY: the caller's promise.
    let (out, service) =
        unsafe { (Out::plain(generation, "the generation"), optional_bytes(service)) };
    let none = || Failure::new(Status::Nothing, "no connection belongs to this service");
    answer(pool, out, |inner| match service.map(ServiceId) {
        None => Ok(inner.machine.generation()),
        Some(service) => inner.machine.service_generation(service).ok_or_else(none),
    })
}

/// How often a service was cleared, for `cenote_handshaken_late`.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_service_clears(pool: *const Pool, clears: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(clears, "the number of clears") };
    answer(pool, out, |inner| Ok(inner.machine.service_clears()))
}

/// The generation of a connection. `CENOTE_STATUS_NOTHING` if it is closed, or never was. Takes constant time.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_generation_of(
    pool: *const Pool,
    connection: u64,
    generation: *mut u64,
) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(generation, "the generation") };
    answer(pool, out, |inner| {
        let found = inner.machine.generation_of(inner.id(connection));
        found.ok_or_else(|| no_connection(connection))
    })
}

/// The connection that a check-out would get now, and its payload; `CENOTE_STATUS_NOTHING` if it would get a new one,
/// wait or fail. The driver looks at its socket first, and calls `cenote_idle_closed_by_peer` if the peer has closed
/// it. `payload` may be null. Takes constant time.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_next_available(
    pool: *mut Pool,
    connection: *mut u64,
    payload: *mut HandleWord,
) -> Status {
    // SAFETY: the caller's promise.
    let (out, payload_out) =
        unsafe { (Out::plain(connection, "the connection"), Out::plain(payload, "the payload")) };
    let none = || Failure::new(Status::Nothing, "a check-out would get no connection at once");
    answer(pool, out, |inner| {
        let (id, payload) = inner.machine.next_available().ok_or_else(none)?;
        // It may be null.
        let _ = payload_out.map(|out| out.write(*payload));
        Ok(id.number())
    })
}

/// Whether as many connections are established as `minPoolSize` wants, for a driver that waits until its pools are warm. Only
/// an input changes it; in a pool that is paused or closed no connection is coming. Takes constant time. Writes 0 or 1.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_is_filled(pool: *const Pool, filled: *mut u32) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(filled, "the answer") };
    answer(pool, out, |inner| Ok(u32::from(inner.machine.is_filled())))
}

#[cfg(test)]
mod tests {
    use cenote_core::pool::Status as CoreStatus;

    use super::*;

    /// The core's own numbers go to C.
    #[test]
    fn states_have_the_numbers_of_the_core() {
        let states = [
            (PoolStatus::Paused, CoreStatus::Paused),
            (PoolStatus::Ready, CoreStatus::Ready),
            (PoolStatus::Closed, CoreStatus::Closed),
        ];
        assert!(states.iter().all(|(own, core)| *own as u32 == *core as u32));
    }
}
