//! The functions that take pointers, for Rust programs without `unsafe`: tests, the player of scenario files, and the fuzz
//! target. Each goes through the function that C calls.
#![expect(clippy::not_unsafe_ptr_arg_deref, reason = "handles are looked up, not followed")]

use std::ffi::{CString, c_char};
use std::ptr;

use crate::action::{self, Action};
use crate::cause::{self, Cause, CauseOptions};
use crate::deadline;
use crate::inspect::{self, Snapshot};
use crate::options::{self, Options};
use crate::pool::{self, NEVER, Pool};
use crate::status::{Status, cenote_last_error};
use crate::verdict::{self, Verdict};
use crate::{input, text, trace};

/// What a call writes, or its status.
fn out<T: Copy>(start: T, call: impl FnOnce(*mut T) -> Status) -> Result<T, Status> {
    let mut value = start;
    call(&raw mut value).into_result()?;
    Ok(value)
}

/// A text of any length.
fn text_of(call: impl Fn(*mut c_char, usize, *mut usize) -> Status) -> Result<String, Status> {
    let mut length = 0;
    let status = call(ptr::null_mut(), 0, &raw mut length);
    if status != Status::Truncated {
        status.into_result()?;
    }
    let mut bytes = vec![0_u8; length + 1];
    call(bytes.as_mut_ptr().cast(), bytes.len(), ptr::null_mut()).into_result()?;
    bytes.pop();
    String::from_utf8(bytes).map_err(|_| Status::NotUtf8)
}

/// Without the zero bytes that a text of C cannot have.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

fn service_pointer(service: &Option<[u8; 12]>) -> *const u8 {
    service.as_ref().map_or(ptr::null(), |service| service.as_ptr())
}

/// Declares the functions that write one value and follow no other pointer.
macro_rules! writers {
    ($($module:ident::$of:ident is $name:ident($($argument:ident: $type:ty),*) -> $written:ty;)*) => {$(
        #[doc = concat!("See [`", stringify!($of), "`](", stringify!($module), "::", stringify!($of), ").")]
        pub fn $name($($argument: $type),*) -> Result<$written, Status> {
            // SAFETY: `out` has room, and handles are looked up.
            out(<$written>::default(), |it| unsafe { $module::$of($($argument,)* it) })
        }
    )*};
}

writers! {
    cause::cenote_cause_payload is cause_payload(of: *const Cause) -> usize;
    cause::cenote_cause_users is cause_users(of: *const Cause) -> usize;
    action::cenote_next_action is next_action(pool: *mut Pool) -> Action;
    inspect::cenote_service_clears is service_clears(pool: *const Pool) -> u64;
    inspect::cenote_snapshot is snapshot(pool: *const Pool) -> Snapshot;
    inspect::cenote_connection is connection(pool: *const Pool, id: u64) -> inspect::Connection;
    inspect::cenote_generation_of is generation_of(pool: *const Pool, connection: u64) -> u64;
    verdict::cenote_monitor_verdict is monitor_verdict(cause: *const Cause) -> Verdict;
    trace::cenote_fingerprint is fingerprint(pool: *const Pool) -> u64;
}

/// See [`cenote_last_error`].
pub fn last_error() -> String {
    // SAFETY: `text_of` passes valid pointers.
    let text = text_of(|buffer, room, length| unsafe { cenote_last_error(buffer, room, length) });
    text.unwrap_or_default()
}

/// See [`cenote_pool_new`](pool::cenote_pool_new).
pub fn pool_new(address: &str, options: &Options, now: u64) -> Result<*mut Pool, Status> {
    let address = c_text(address);
    // SAFETY: the text and the options outlive the call, and `out` has room.
    out(ptr::null_mut(), |it| unsafe { pool::cenote_pool_new(address.as_ptr(), options, now, it) })
}

/// See [`cenote_pool_new_ready`](pool::cenote_pool_new_ready).
pub fn pool_new_ready(address: &str, options: &Options, now: u64) -> Result<*mut Pool, Status> {
    let address = c_text(address);
    // SAFETY: the text and the options outlive the call, and `out` has room.
    out(ptr::null_mut(), |it| unsafe {
        pool::cenote_pool_new_ready(address.as_ptr(), options, now, it)
    })
}

/// See [`cenote_options_from_uri`](options::cenote_options_from_uri).
pub fn options_from_uri(uri: &str) -> Result<Options, Status> {
    let uri = c_text(uri);
    // SAFETY: the text outlives the call, and `out` has room.
    out(Options::default(), |it| unsafe { options::cenote_options_from_uri(uri.as_ptr(), it) })
}

/// See [`cenote_cause_new`](cause::cenote_cause_new). The texts replace those of the options.
pub fn cause_new(
    options: CauseOptions,
    text: &str,
    code_name: Option<&str>,
    labels: &str,
) -> Result<*mut Cause, Status> {
    let (text, labels, code_name) = (c_text(text), c_text(labels), code_name.map(c_text));
    let options = CauseOptions {
        text: text.as_ptr(),
        labels: labels.as_ptr(),
        code_name: code_name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
        ..options
    };
    // SAFETY: the texts outlive the call, and `out` has room.
    out(ptr::null_mut(), |it| unsafe { cause::cenote_cause_new(&raw const options, it) })
}

/// See [`cenote_cause_text`](cause::cenote_cause_text).
pub fn cause_text(of: *const Cause, kind: u32) -> Result<String, Status> {
    text_of(|buffer, room, length| {
        // SAFETY: `text_of` passes valid pointers.
        unsafe { cause::cenote_cause_text(of, kind, buffer, room, length) }
    })
}

/// See [`cenote_action_cause`](action::cenote_action_cause).
pub fn action_cause(pool: *mut Pool) -> Result<*mut Cause, Status> {
    // SAFETY: `out` has room.
    out(ptr::null_mut(), |it| unsafe { action::cenote_action_cause(pool, it) })
}

/// See [`cenote_action_text`](text::cenote_action_text).
pub fn action_text(pool: *mut Pool, kind: u32) -> Result<String, Status> {
    text_of(|buffer, room, length| {
        // SAFETY: `text_of` passes valid pointers.
        unsafe { text::cenote_action_text(pool, kind, buffer, room, length) }
    })
}

/// See [`cenote_handshaken`](input::cenote_handshaken).
pub fn handshaken(pool: *mut Pool, now: u64, connection: u64, service: Option<[u8; 12]>) -> Status {
    // SAFETY: the service outlives the call.
    unsafe { input::cenote_handshaken(pool, now, connection, service_pointer(&service)) }
}

/// See [`cenote_handshaken_late`](input::cenote_handshaken_late).
pub fn handshaken_late(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    service: Option<[u8; 12]>,
    clears: u64,
) -> Status {
    let service = service_pointer(&service);
    // SAFETY: the service outlives the call.
    unsafe { input::cenote_handshaken_late(pool, now, connection, service, clears) }
}

/// See [`cenote_clear`](input::cenote_clear).
pub fn clear(
    pool: *mut Pool,
    now: u64,
    cause: *const Cause,
    interrupt: bool,
    service: Option<[u8; 12]>,
) -> Status {
    let interrupt = u32::from(interrupt);
    // SAFETY: the service outlives the call.
    unsafe { input::cenote_clear(pool, now, cause, interrupt, service_pointer(&service)) }
}

/// See [`cenote_set_options`](input::cenote_set_options).
pub fn set_options(pool: *mut Pool, now: u64, options: &Options) -> Status {
    // SAFETY: the options outlive the call.
    unsafe { input::cenote_set_options(pool, now, options) }
}

/// See [`cenote_generation`](inspect::cenote_generation).
pub fn generation(pool: *const Pool, service: Option<[u8; 12]>) -> Result<u64, Status> {
    let service = service_pointer(&service);
    // SAFETY: the service outlives the call, and `out` has room.
    out(0, |it| unsafe { inspect::cenote_generation(pool, service, it) })
}

/// See [`cenote_next_available`](inspect::cenote_next_available): the connection and its payload.
pub fn next_available(pool: *mut Pool) -> Result<(u64, usize), Status> {
    let mut payload = 0;
    // SAFETY: `out` and the payload have room.
    let connection =
        out(0, |it| unsafe { inspect::cenote_next_available(pool, it, &raw mut payload) })?;
    Ok((connection, payload))
}

/// See [`cenote_next_deadline`](deadline::cenote_next_deadline): the time and its reason.
pub fn next_deadline(pool: *const Pool) -> Result<(u64, u32), Status> {
    let mut reason = 0;
    // SAFETY: `out` and the reason have room.
    let deadline =
        out(NEVER, |it| unsafe { deadline::cenote_next_deadline(pool, it, &raw mut reason) })?;
    Ok((deadline, reason))
}

/// See [`cenote_needs_now`](deadline::cenote_needs_now).
pub fn needs_now(pool: *const Pool) -> Result<bool, Status> {
    // SAFETY: `out` has room.
    Ok(out(0, |it| unsafe { deadline::cenote_needs_now(pool, it) })? != 0)
}

/// See [`cenote_keeps_deadline`](deadline::cenote_keeps_deadline).
pub fn keeps_deadline(pool: *const Pool, armed: u64) -> Result<bool, Status> {
    // SAFETY: `out` has room.
    Ok(out(0, |it| unsafe { deadline::cenote_keeps_deadline(pool, armed, it) })? != 0)
}

/// See [`cenote_is_filled`](inspect::cenote_is_filled).
pub fn is_filled(pool: *const Pool) -> Result<bool, Status> {
    // SAFETY: `out` has room.
    Ok(out(0, |it| unsafe { inspect::cenote_is_filled(pool, it) })? != 0)
}

/// See [`cenote_verdict`](verdict::cenote_verdict).
pub fn verdict(
    pool: *const Pool,
    connection: u64,
    cause: *const Cause,
    topology_version: Option<([u8; 12], i64)>,
) -> Result<Verdict, Status> {
    let (process, counter) = topology_version.unzip();
    let (process, counter) = (service_pointer(&process), counter.unwrap_or(0));
    // SAFETY: the id outlives the call, and `out` has room.
    out(Verdict::default(), |it| unsafe {
        verdict::cenote_verdict(pool, connection, cause, process, counter, it)
    })
}

/// See [`cenote_trace_read`](trace::cenote_trace_read): at most `room` bytes.
pub fn trace_read(pool: *mut Pool, room: usize) -> Result<Vec<u8>, Status> {
    let mut bytes = vec![0; room];
    let buffer = bytes.as_mut_ptr();
    // SAFETY: the buffer has that room, and so has `out`.
    let length = out(0, |it| unsafe { trace::cenote_trace_read(pool, buffer, room, it) })?;
    bytes.truncate(length);
    Ok(bytes)
}

/// See [`cenote_flight_read`](trace::cenote_flight_read): all bytes, or why there are none in so much room.
pub fn flight_read(pool: *mut Pool, room: usize) -> Result<Vec<u8>, (Status, usize)> {
    let (mut bytes, mut length) = (vec![0; room], 0);
    let buffer = bytes.as_mut_ptr();
    // SAFETY: the buffer has that room, and so has the length.
    let status = unsafe { trace::cenote_flight_read(pool, buffer, room, &raw mut length) };
    status.into_result().map_err(|status| (status, length))?;
    bytes.truncate(length);
    Ok(bytes)
}
