//! Options and causes, as C has them.

use std::time::Duration;

use cenote_c::cause::{Cause, CauseKind, CauseOptions};
use cenote_c::checked;
use cenote_c::options::{NO_MAINTENANCE, NOT_SET, Options};
use cenote_core::error::{ConnectionError, Kind};
use cenote_core::pool::{Maintenance, PoolOptions, ReuseOrder};

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn options(options: &PoolOptions) -> Options {
    let size = |size: Option<u32>| size.map_or(NOT_SET, i64::from);
    let time = |time: Option<Duration>| {
        time.map_or(NOT_SET, |time| i64::try_from(nanos(time)).unwrap_or(i64::MAX))
    };
    let flag = |flag: Option<bool>| flag.map_or(NOT_SET, i64::from);
    let pause = match options.maintenance {
        Some(Maintenance::Never) => NO_MAINTENANCE,
        Some(Maintenance::PauseAfterFailure(pause)) => time(Some(pause)),
        Some(_) | None => NOT_SET,
    };
    let is_oldest_first = options.reuse_order.map(|it| it == ReuseOrder::LeastRecentlyUsed);
    Options {
        max_pool_size: size(options.max_pool_size),
        min_pool_size: size(options.min_pool_size),
        max_idle_time: time(options.max_idle_time),
        max_connecting: size(options.max_connecting),
        wait_queue_timeout: time(options.wait_queue_timeout),
        load_balanced: flag(options.load_balanced),
        pause_after_failure: pause,
        reuse_order: flag(is_oldest_first),
        max_lifetime: time(options.max_lifetime),
        jitter_seed: options.jitter_seed.map_or(NOT_SET, |seed| seed as i64),
        leak_detection_threshold: time(options.leak_detection_threshold),
        unanswered_threshold: time(options.unanswered_threshold),
        max_wait_queue_size: size(options.max_wait_queue_size),
        codel_target: time(options.codel_target),
        codel_interval: time(options.codel_interval),
        overload_backoff: time(options.overload_backoff),
        adaptive_connecting: flag(options.adaptive_connecting),
        predictive_min_pool_size: flag(options.predictive_min_pool_size),
        experimental_pending_response: flag(options.experimental_pending_response),
        ..Options::default()
    }
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
