//! Options in one line.

use std::fmt;

use cenote_core::pool::PoolOptions;

/// Displays the options that are set.
pub struct Brief<'a>(pub &'a PoolOptions);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.0;
        let mut set = f.debug_map();
        let mut entry = |name: &str, value: Option<&dyn fmt::Debug>| {
            if let Some(value) = value {
                set.entry(&format_args!("{name}"), value);
            }
        };
        entry("max", options.max_pool_size.as_ref().map(|value| value as _));
        entry("min", options.min_pool_size.as_ref().map(|value| value as _));
        entry("connecting", options.max_connecting.as_ref().map(|value| value as _));
        entry("idle", options.max_idle_time.as_ref().map(|value| value as _));
        entry("wait", options.wait_queue_timeout.as_ref().map(|value| value as _));
        entry("lifetime", options.max_lifetime.as_ref().map(|value| value as _));
        entry("seed", options.jitter_seed.as_ref().map(|value| value as _));
        entry("held", options.leak_detection_threshold.as_ref().map(|value| value as _));
        entry("unanswered", options.unanswered_threshold.as_ref().map(|value| value as _));
        entry("queue", options.max_wait_queue_size.as_ref().map(|value| value as _));
        entry("target", options.codel_target.as_ref().map(|value| value as _));
        entry("interval", options.codel_interval.as_ref().map(|value| value as _));
        entry("backoff", options.overload_backoff.as_ref().map(|value| value as _));
        entry("adaptive", options.adaptive_connecting.as_ref().map(|value| value as _));
        entry("predictive", options.predictive_min_pool_size.as_ref().map(|value| value as _));
        entry("balanced", options.load_balanced.as_ref().map(|value| value as _));
        entry("maintenance", options.maintenance.as_ref().map(|value| value as _));
        entry("reuse", options.reuse_order.as_ref().map(|value| value as _));
        let pending_response = &options.experimental_pending_response;
        entry("pending response", pending_response.as_ref().map(|value| value as _));
        set.finish()
    }
}
