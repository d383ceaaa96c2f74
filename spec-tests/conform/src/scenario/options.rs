//! The options of a scenario's pool.

use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions};
use serde::Deserialize;

/// The options of the pool, and two that exist for tests alone.
// OP-16
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Options {
    max_pool_size: Option<u32>,
    min_pool_size: Option<u32>,
    #[serde(rename = "maxIdleTimeMS")]
    max_idle_time_ms: Option<u64>,
    max_connecting: Option<u32>,
    #[serde(rename = "waitQueueTimeoutMS")]
    wait_queue_timeout_ms: Option<u64>,
    // Not part of the official format.
    load_balanced: Option<bool>,
    max_wait_queue_size: Option<u32>,
    #[serde(rename = "codelTargetMS")]
    codel_target_ms: Option<u64>,
    #[serde(rename = "codelIntervalMS")]
    codel_interval_ms: Option<u64>,
    #[serde(rename = "overloadBackoffMS")]
    overload_backoff_ms: Option<u64>,
    jitter_seed: Option<u64>,
    adaptive_connecting: Option<bool>,
    predictive_min_pool_size: Option<bool>,
    /// The application name that connections send in their hello.
    // TF-17
    pub(crate) app_name: Option<String>,
    #[serde(rename = "backgroundThreadIntervalMS")]
    background_thread_interval_ms: Option<i64>,
}

impl Options {
    /// The options, validated.
    pub(crate) fn to_pool_options(&self) -> Result<PoolOptions, String> {
        let options = self.unchecked()?;
        options.validate().map_err(|reason| reason.to_string())?;
        Ok(options)
    }

    /// Whether the server is a load balancer.
    pub(crate) fn is_load_balanced(&self) -> bool {
        self.load_balanced == Some(true)
    }

    /// The options, whether or not they are valid.
    pub(crate) fn unchecked(&self) -> Result<PoolOptions, String> {
        let mut options = PoolOptions::default();
        options.max_pool_size = self.max_pool_size;
        options.min_pool_size = self.min_pool_size;
        options.max_idle_time = self.max_idle_time_ms.map(Duration::from_millis);
        options.max_connecting = self.max_connecting;
        options.wait_queue_timeout = self.wait_queue_timeout_ms.map(Duration::from_millis);
        options.load_balanced = self.load_balanced;
        options.max_wait_queue_size = self.max_wait_queue_size;
        options.codel_target = self.codel_target_ms.map(Duration::from_millis);
        options.codel_interval = self.codel_interval_ms.map(Duration::from_millis);
        options.overload_backoff = self.overload_backoff_ms.map(Duration::from_millis);
        options.jitter_seed = self.jitter_seed;
        options.adaptive_connecting = self.adaptive_connecting;
        options.predictive_min_pool_size = self.predictive_min_pool_size;
        options.maintenance = self.background_thread_interval_ms.map(maintenance).transpose()?;
        Ok(options)
    }
}

/// There is no background thread whose runs could be counted: the pool does what is due when it is
/// due. The interval becomes the pause after a failed establishment; a negative one disables
/// maintenance.
// TF-14, BG-09
fn maintenance(interval_ms: i64) -> Result<Maintenance, String> {
    match u64::try_from(interval_ms) {
        Ok(0) => Err("backgroundThreadIntervalMS must not be 0".to_owned()),
        Ok(pause) => Ok(Maintenance::PauseAfterFailure(Duration::from_millis(pause))),
        Err(_negative) => Ok(Maintenance::Never),
    }
}
