//! Causes, as C has them.

use std::time::Duration;

use cenote_c::cause::{Cause, CauseKind, CauseOptions};
use cenote_c::checked;
use cenote_core::error::{ConnectionError, Kind};

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The same error as a cause of C. The number comes back with it.
pub(super) fn cause(error: &ConnectionError, payload: usize) -> *mut Cause {
    let options = CauseOptions { stage: error.stage() as u32, payload, ..CauseOptions::default() };
    let of = |kind: CauseKind| CauseOptions { kind: kind as u32, ..options };
    let limit = |kind, after| CauseOptions { after: nanos(after), ..of(kind) };
    let (mut text, mut code_name, mut labels) = (error.reason(), None, String::new());
    let options = match error.kind() {
        Kind::Network => of(CauseKind::Network),
        Kind::NetworkTimeout { after } => limit(CauseKind::Timeout, *after),
        Kind::NotSent { after } => limit(CauseKind::NotSent, *after),
        Kind::Command(reply) => {
            text = &reply.message;
            code_name = reply.code_name.as_deref();
            labels = reply.labels.join(" ");
            let has_code = u32::from(reply.code.is_some());
            CauseOptions { has_code, code: reply.code.unwrap_or(0), ..of(CauseKind::Command) }
        }
        Kind::Protocol => of(CauseKind::Protocol),
        Kind::Configuration => of(CauseKind::Configuration),
        Kind::Local => of(CauseKind::Local),
        other => panic!("the C library has no causes of the kind {other:?}"),
    };
    checked::cause_new(options, text, code_name, &labels).expect("a cause")
}
