//! What an error means: SDAM's verdicts.

use cenote_core::sdam::{self, Context, TopologyVersion, Verdict as CoreVerdict};

use crate::cause::{Cause, SharedCause};
use crate::pointer::{Out, optional_bytes, sized, sized_struct};
use crate::pool::{Pool, answer};
use crate::status::{Status, call};

/// What an error does to the pool.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum PoolVerdict {
    /// Nothing.
    Keep = 0,
    /// `cenote_clear`.
    Clear = 1,
    /// `cenote_clear` with `interrupt`.
    ClearAndInterrupt = 2,
    /// `cenote_clear` with the service of the failed connection (`cenote_connection`).
    ClearService = 3,
}

/// What an error does to the description of the server.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ServerVerdict {
    /// Nothing.
    Keep = 0,
    /// Its type becomes Unknown, without a topology version.
    Unknown = 1,
    /// Its type becomes Unknown, with the topology version of the error.
    UnknownWithTopologyVersion = 2,
}

/// What an error does to the monitor of the server.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum CheckVerdict {
    /// Nothing.
    Keep = 0,
    /// Check at once.
    Request = 1,
    /// Cancel the check in progress, and close the monitor's connection.
    Cancel = 2,
}

/// What follows from an error: first for the server's description, then for the pool, then for the monitor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `sizeof(cenote_verdict_info)`; to be set before the call.
    pub size: u32,
    /// A `cenote_server_verdict`.
    pub server: u32,
    /// A `cenote_pool_verdict`.
    pub pool: u32,
    /// A `cenote_check_verdict`.
    pub check: u32,
}

sized_struct!(Verdict, "cenote_verdict_info", default);

impl Verdict {
    fn of(verdict: &CoreVerdict) -> Self {
        let server = match verdict.server {
            sdam::ServerVerdict::Keep => ServerVerdict::Keep,
            sdam::ServerVerdict::Unknown { topology_version: None } => ServerVerdict::Unknown,
            sdam::ServerVerdict::Unknown { topology_version: Some(_) } => {
                ServerVerdict::UnknownWithTopologyVersion
            }
        };
        let pool = match verdict.pool {
            sdam::PoolVerdict::Keep => PoolVerdict::Keep,
            sdam::PoolVerdict::Clear { interrupt: false } => PoolVerdict::Clear,
            sdam::PoolVerdict::Clear { interrupt: true } => PoolVerdict::ClearAndInterrupt,
            sdam::PoolVerdict::ClearService => PoolVerdict::ClearService,
        };
        let check = verdict.check as u32;
        Self { server: server as u32, pool: pool as u32, check, ..sized() }
    }
}

/// Judges the failure of an application's connection, in use or being established, before it is fed to the pool.
/// `process_id` and `counter` are the topology version in the server's description; `process_id` is null if there is
/// none. An error of an older generation changes nothing.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_verdict(
    pool: *const Pool,
    connection: u64,
    cause: *const Cause,
    process_id: *const u8,
    counter: i64,
    verdict: *mut Verdict,
) -> Status {
    // SAFETY: the caller's promise.
    let (out, process_id) = unsafe { (Out::new(verdict), optional_bytes(process_id)) };
    let topology_version = process_id.map(|process_id| TopologyVersion { process_id, counter });
    answer(pool, out, |inner| {
        let cause = SharedCause::of(cause)?;
        let load_balanced = inner.machine.options().load_balanced == Some(true);
        let current_generation = !inner.machine.is_stale(inner.id(connection));
        let context = Context { load_balanced, current_generation, topology_version };
        Ok(Verdict::of(&sdam::verdict(&context, cause.error())))
    })
}

/// Judges a failed check of the server by its monitor. Clear the pool with it, in the same critical section as the
/// description of the server.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_monitor_verdict(
    cause: *const Cause,
    verdict: *mut Verdict,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::new(verdict)? };
        let cause = SharedCause::of(cause)?;
        out.write(Verdict::of(&sdam::monitor_verdict(cause.error())));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use cenote_core::sdam::Check;

    use super::*;

    /// The core's own numbers go to C.
    #[test]
    fn checks_have_the_numbers_of_the_core() {
        let checks = [
            (CheckVerdict::Keep, Check::Keep),
            (CheckVerdict::Request, Check::Request),
            (CheckVerdict::Cancel, Check::Cancel),
        ];
        assert!(checks.iter().all(|(own, core)| *own as u32 == *core as u32));
    }
}
