//! The syntax of pool options in commands and answers.

use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, ReuseOrder};

use super::words::{Words, duration, number};

/// Parses all options of a command: `max= min= connecting= idle= wait= lifetime= seed= held=
/// unanswered= queue= target=
/// interval= backoff=`, `reuse=mru|lru`, `maintenance=never` or `pause=`, and the words `adaptive`, `predictive`,
/// `balanced` and `pending-response`.
pub(super) fn read(words: &mut Words) -> Result<PoolOptions, String> {
    let mut options = PoolOptions::default();
    options.max_pool_size = words.key("max", number)?;
    options.min_pool_size = words.key("min", number)?;
    options.max_connecting = words.key("connecting", number)?;
    options.max_idle_time = words.key("idle", duration)?;
    options.wait_queue_timeout = words.key("wait", duration)?;
    options.max_lifetime = words.key("lifetime", duration)?;
    options.jitter_seed = words.key("seed", number)?;
    options.leak_detection_threshold = words.key("held", duration)?;
    options.unanswered_threshold = words.key("unanswered", duration)?;
    options.max_wait_queue_size = words.key("queue", number)?;
    options.codel_target = words.key("target", duration)?;
    options.codel_interval = words.key("interval", duration)?;
    options.reuse_order = words.key("reuse", reuse_order)?;
    options.maintenance = words.key("maintenance", never)?;
    if let Some(pause) = words.key("pause", duration)? {
        options.maintenance = Some(Maintenance::PauseAfterFailure(pause));
    }
    options.overload_backoff = words.key("backoff", duration)?;
    options.adaptive_connecting = words.flag("adaptive").then_some(true);
    options.predictive_min_pool_size = words.flag("predictive").then_some(true);
    options.load_balanced = words.flag("balanced").then_some(true);
    options.experimental_pending_response = words.flag("pending-response").then_some(true);
    Ok(options)
}

fn reuse_order(text: &str) -> Result<ReuseOrder, String> {
    match text {
        "mru" => Ok(ReuseOrder::MostRecentlyUsed),
        "lru" => Ok(ReuseOrder::LeastRecentlyUsed),
        _ => Err(format!("not mru or lru: {text}")),
    }
}

fn never(text: &str) -> Result<Maintenance, String> {
    match text {
        "never" => Ok(Maintenance::Never),
        _ => Err(format!("maintenance=never, or pause= and a duration: {text}")),
    }
}

/// The options that are set, each preceded by a space.
pub(super) fn show(options: &PoolOptions) -> String {
    let count = |key, value: Option<u32>| value.map(|value| format!(" {key}={value}"));
    let time = |key, value: Option<Duration>| value.map(|value| format!(" {key}={value:?}"));
    let parts = [
        count("max", options.max_pool_size),
        count("min", options.min_pool_size),
        count("connecting", options.max_connecting),
        time("idle", options.max_idle_time),
        time("wait", options.wait_queue_timeout),
        time("lifetime", options.max_lifetime),
        options.jitter_seed.map(|seed| format!(" seed={seed}")),
        time("held", options.leak_detection_threshold),
        time("unanswered", options.unanswered_threshold),
        count("queue", options.max_wait_queue_size),
        time("target", options.codel_target),
        time("interval", options.codel_interval),
        time("backoff", options.overload_backoff),
        options.adaptive_connecting.map(|_| " adaptive".to_owned()),
        options.predictive_min_pool_size.map(|_| " predictive".to_owned()),
        options.reuse_order.map(show_reuse_order),
        options.maintenance.map(show_maintenance),
        options.load_balanced.map(|_| " balanced".to_owned()),
        options.experimental_pending_response.map(|_| " pending-response".to_owned()),
    ];
    parts.into_iter().flatten().collect()
}

fn show_reuse_order(order: ReuseOrder) -> String {
    match order {
        ReuseOrder::MostRecentlyUsed => " reuse=mru".to_owned(),
        ReuseOrder::LeastRecentlyUsed => " reuse=lru".to_owned(),
        other => format!(" reuse={other:?}"),
    }
}

fn show_maintenance(maintenance: Maintenance) -> String {
    match maintenance {
        Maintenance::Never => " maintenance=never".to_owned(),
        Maintenance::PauseAfterFailure(pause) => format!(" pause={pause:?}"),
        other => format!(" maintenance={other:?}"),
    }
}
