//! What a driver tells a pool: one function for each kind of input.

use cenote_core::pool::{
    ConnId, Health, Input, Instant, Purpose as CorePurpose, ServiceId, WaiterId,
};

use crate::cause::{Cause, SharedCause};
use crate::options::{Options, options as read_options};
use crate::pointer::optional_bytes;
use crate::pool::{DriverTypes, HandleWord, NEVER, Pool, feed};
use crate::status::{Failure, Status, numbered};

/// What a connection is used for; pools behind a load balancer tell these apart in errors.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// One operation.
    Other = 0,
    /// A cursor is pinned to it.
    Cursor = 1,
    /// A transaction is pinned to it.
    Transaction = 2,
}

fn purpose(number: u32) -> Result<CorePurpose, Failure> {
    let purposes = [CorePurpose::Other, CorePurpose::Cursor, CorePurpose::Transaction];
    numbered(&purposes, number, "cenote_purpose")
}

fn check_in(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    conn: HandleWord,
    health: impl FnOnce() -> Result<Health<SharedCause>, Failure>,
) -> Status {
    feed(pool, now, |inner| {
        Ok(Input::CheckedIn { id: inner.id(connection), conn, health: health()? })
    })
}

fn failed(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    cause: *const Cause,
    input: fn(ConnId, SharedCause) -> Input<DriverTypes>,
) -> Status {
    feed(pool, now, |inner| Ok(input(inner.id(connection), SharedCause::of(cause)?)))
}

fn hello(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    service: Option<[u8; 12]>,
    clears_at_hello: Option<u64>,
) -> Status {
    let service = service.map(ServiceId);
    feed(pool, now, |inner| {
        Ok(Input::Handshaken { id: inner.id(connection), service, clears_at_hello })
    })
}

/// A caller wants a connection. `request` is greater than every one before it in this pool; `waiter` comes
/// back with the outcome, in exactly one action `CENOTE_ACTION_KIND_DELIVER`.
///
/// `deadline` is when the caller gives up, and replaces `waitQueueTimeoutMS`; `CENOTE_NEVER` is none. One that is
/// not after `now` asks for an idle connection or nothing. `purpose` is a `cenote_purpose`.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_check_out(
    pool: *mut Pool,
    now: u64,
    request: u64,
    waiter: HandleWord,
    deadline: u64,
    purpose: u32,
) -> Status {
    feed(pool, now, |_| {
        let deadline = (deadline != NEVER).then(|| Instant::from_nanos(deadline));
        let purpose = self::purpose(purpose)?;
        Ok(Input::CheckOutRequested { id: WaiterId(request), waiter, deadline, purpose })
    })
}

/// A caller cancelled its check-out. Does nothing if the request has its outcome.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_cancel(pool: *mut Pool, now: u64, request: u64) -> Status {
    feed(pool, now, |_| Ok(Input::CheckOutCancelled { id: WaiterId(request) }))
}

/// A connection comes back and may be used again.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_check_in(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    payload: HandleWord,
) -> Status {
    check_in(pool, now, connection, payload, || Ok(Health::Healthy))
}

/// A connection comes back and must not be used again: a network error, a timeout, an unread reply. SDAM has
/// seen the error (`cenote_verdict`).
#[unsafe(no_mangle)]
pub extern "C" fn cenote_check_in_errored(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    payload: HandleWord,
    cause: *const Cause,
) -> Status {
    check_in(pool, now, connection, payload, || SharedCause::of(cause).map(Health::Errored))
}

/// A connection comes back whose caller timed out while it waited for the reply to `request_id`. The request was
/// sent whole, and its reply is not part of a stream. Without `experimental_pending_response` the same as
/// `cenote_check_in_errored`.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_check_in_pending_response(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    payload: HandleWord,
    request_id: i32,
    cause: *const Cause,
) -> Status {
    let pending = |cause| Health::PendingResponse { request_id, cause };
    check_in(pool, now, connection, payload, || SharedCause::of(cause).map(pending))
}

/// A connection in use serves another purpose from now on, a `cenote_purpose`.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_repurpose(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    purpose: u32,
) -> Status {
    feed(pool, now, |inner| {
        Ok(Input::Repurposed { id: inner.id(connection), purpose: self::purpose(purpose)? })
    })
}

/// Hello is done, authentication is not. Behind a load balancer required, with the 12 bytes of the reply's
/// `serviceId`; otherwise optional, and `service` is null.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_handshaken(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    service: *const u8,
) -> Status {
    // SAFETY: the caller's promise.
    hello(pool, now, connection, unsafe { optional_bytes(service) }, None)
}

/// The same for a hello that was done earlier, when `cenote_service_clears` gave this number: if the service was
/// cleared since, the connection is closed as stale.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_handshaken_late(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    service: *const u8,
    clears_at_hello: u64,
) -> Status {
    // SAFETY: the caller's promise.
    hello(pool, now, connection, unsafe { optional_bytes(service) }, Some(clears_at_hello))
}

/// A connection finished handshake and authentication. `payload` is the driver's: a pointer to its socket, a
/// file descriptor. If the pool gave the connection up meanwhile, `CENOTE_ACTION_KIND_CLOSE_SOCKET` returns it.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_established(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    payload: HandleWord,
) -> Status {
    feed(pool, now, |inner| {
        Ok(Input::EstablishSucceeded { id: inner.id(connection), conn: payload })
    })
}

/// A connection could not be established. SDAM has seen the error (`cenote_verdict`).
#[unsafe(no_mangle)]
pub extern "C" fn cenote_establish_failed(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    cause: *const Cause,
) -> Status {
    failed(pool, now, connection, cause, |id, cause| {
        let overloaded = cause.error().is_overload();
        Input::EstablishFailed { id, cause, overloaded }
    })
}

/// The peer closed an available connection. Does nothing if it is in use or closed by now.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_idle_closed_by_peer(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    cause: *const Cause,
) -> Status {
    failed(pool, now, connection, cause, |id, cause| Input::IdleClosedByPeer { id, cause })
}

/// A late reply was read and discarded.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_drained(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    payload: HandleWord,
) -> Status {
    feed(pool, now, |inner| Ok(Input::DrainSucceeded { id: inner.id(connection), conn: payload }))
}

/// A late reply could not be read. The driver drops the socket.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_drain_failed(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    cause: *const Cause,
) -> Status {
    failed(pool, now, connection, cause, |id, cause| Input::DrainFailed { id, cause })
}

/// Bytes of a late reply were read.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_drain_progress(pool: *mut Pool, now: u64, connection: u64) -> Status {
    feed(pool, now, |inner| Ok(Input::DrainProgress { id: inner.id(connection) }))
}

/// Credentials changed: each connection so far is closed as soon as it is not in use. No request fails.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_retire_connections(pool: *mut Pool, now: u64) -> Status {
    feed(pool, now, |_| Ok(Input::RetireConnections))
}

/// The process is about to be frozen: each connection that no request uses or waits for is closed, and the minimum
/// pauses as after an establishment that failed.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_release_idle(pool: *mut Pool, now: u64) -> Status {
    feed(pool, now, |_| Ok(Input::ReleaseIdle))
}

/// The server can be used.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_ready(pool: *mut Pool, now: u64) -> Status {
    feed(pool, now, |_| Ok(Input::Ready))
}

/// Every connection so far may be broken. Not 0 for `interrupt` also interrupts those in use. `service` is null, but
/// behind a load balancer it is the 12 bytes of the service whose connections may be broken.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_clear(
    pool: *mut Pool,
    now: u64,
    cause: *const Cause,
    interrupt: u32,
    service: *const u8,
) -> Status {
    // SAFETY: the caller's promise.
    let service = unsafe { optional_bytes(service) }.map(ServiceId);
    feed(pool, now, |_| {
        let cause = SharedCause::of(cause)?;
        Ok(Input::Clear { cause, interrupt: interrupt != 0, service })
    })
}

/// The pool is closed, for good.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_close(pool: *mut Pool, now: u64) -> Status {
    feed(pool, now, |_| Ok(Input::Close))
}

/// The deadline of `cenote_next_deadline` is due. Early, late or twice does no harm.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_timer(pool: *mut Pool, now: u64) -> Status {
    feed(pool, now, |_| Ok(Input::Timer))
}

/// This process is a child of the one that made the connections. Close the sockets that the actions return
/// without sending a byte, and wake no waiter.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_reset_after_fork(pool: *mut Pool, now: u64) -> Status {
    feed(pool, now, |_| Ok(Input::ResetAfterFork))
}

/// The options change while the pool runs; those that are not set return to their defaults. Load-balanced mode
/// cannot change.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_set_options(
    pool: *mut Pool,
    now: u64,
    options: *const Options,
) -> Status {
    feed(pool, now, |_| {
        // SAFETY: the caller's promise.
        let options = unsafe { read_options(options)? };
        Ok(Input::SetOptions { options: Box::new(options.to_core()?) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_have_the_numbers_of_the_header() {
        let purposes = [
            (Purpose::Other, CorePurpose::Other),
            (Purpose::Cursor, CorePurpose::Cursor),
            (Purpose::Transaction, CorePurpose::Transaction),
        ];
        assert!(purposes.iter().all(|(own, core)| purpose(*own as u32).unwrap() == *core));
    }
}
