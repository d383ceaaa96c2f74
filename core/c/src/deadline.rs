//! When the timer of a pool is due.

use cenote_core::pool::Instant;

use crate::pointer::Out;
use crate::pool::{NEVER, Pool, answer};
use crate::status::Status;

/// What is due at a deadline.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum DeadlineReason {
    /// Nothing.
    None = 0,
    /// A request has waited for as long as it may.
    WaitQueueTimeout = 1,
    /// A connection has been available for longer than `maxIdleTimeMS`.
    IdleTime = 2,
    /// A connection reaches the end of its lifetime.
    Lifetime = 3,
    /// The pause after a failed establishment ends.
    Populate = 4,
    /// A connection has been in use for longer than `leak_detection_threshold`.
    LeakDetection = 5,
    /// A connection has been pending for longer than `unanswered_threshold`.
    Unanswered = 6,
    /// A late reply has been awaited for as long as it may.
    PendingResponse = 7,
    /// The oldest request has not waited for less than `codel_target` for a whole `codel_interval`.
    StandingDelay = 8,
    /// A connection that waits for its time is established.
    Establishment = 9,
}

/// When to call `cenote_timer` next; `CENOTE_NEVER` if there is nothing to wait for. To be asked again after every
/// input. `reason` gets a `cenote_deadline_reason`, and may be null.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_next_deadline(
    pool: *const Pool,
    deadline: *mut u64,
    reason: *mut u32,
) -> Status {
    // SAFETY: the caller's promise.
    let (out, reason_out) =
        unsafe { (Out::plain(deadline, "the deadline"), Out::plain(reason, "the reason")) };
    answer(pool, out, |inner| {
        let next = inner.machine.next_deadline();
        // It may be null. 0 is no reason, so the core's numbers begin at 1.
        let _ = reason_out.map(|out| out.write(next.map_or(0, |next| next.reason as u32 + 1)));
        Ok(next.map_or(NEVER, |next| next.at.as_nanos()))
    })
}

/// Whether a timer may stay set to `armed`, a time (or `CENOTE_NEVER`) that was no later than the deadline before the last input, because that
/// input was a check-out or a check-in. If not, ask `cenote_next_deadline`, which takes several times as long. Writes 0 or 1.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_keeps_deadline(
    pool: *const Pool,
    armed: u64,
    kept: *mut u32,
) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(kept, "the answer") };
    let armed = Instant::from_nanos(armed);
    answer(pool, out, |inner| Ok(u32::from(inner.machine.keeps_deadline(armed))))
}

/// Whether the next input needs the present time. If not, and the pool makes no events, the input has no deadline
/// and is not `cenote_set_options`, the time of the last input may be given again. Writes 0 or 1.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_needs_now(pool: *const Pool, needed: *mut u32) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(needed, "the answer") };
    answer(pool, out, |inner| Ok(u32::from(inner.machine.needs_now())))
}

#[cfg(test)]
mod tests {
    use cenote_core::pool::DeadlineReason as CoreReason;

    use super::*;

    /// The core's own numbers go to C.
    #[test]
    fn reasons_have_the_numbers_of_the_core() {
        let reasons = [
            (DeadlineReason::WaitQueueTimeout, CoreReason::WaitQueueTimeout),
            (DeadlineReason::IdleTime, CoreReason::IdleTime),
            (DeadlineReason::Lifetime, CoreReason::Lifetime),
            (DeadlineReason::Populate, CoreReason::Populate),
            (DeadlineReason::LeakDetection, CoreReason::LeakDetection),
            (DeadlineReason::Unanswered, CoreReason::Unanswered),
            (DeadlineReason::StandingDelay, CoreReason::StandingDelay),
            (DeadlineReason::PendingResponse, CoreReason::PendingResponse),
            (DeadlineReason::Establishment, CoreReason::Establishment),
        ];
        assert!(reasons.iter().all(|(own, core)| *own as u32 == *core as u32 + 1));
    }
}
