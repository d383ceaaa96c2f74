//! What the machine derives from the options of its pool.

use core::time::Duration;

use super::{InvalidOptions, Maintenance, PoolOptions, ReuseOrder};
use crate::pool::time::nanos;

/// The options with their defaults, in the form in which the machine compares with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::pool) struct Settings {
    /// "No limit" is the largest number of slots there can be.
    pub(in crate::pool) max_total: u32,
    pub(in crate::pool) min_total: u32,
    pub(in crate::pool) max_pending: u32,
    /// How many requests may wait; "no limit" is more than there can be.
    pub(in crate::pool) max_waiting: usize,
    /// Nanoseconds, here and below; `None` is "never" or "without limit".
    pub(in crate::pool) max_idle: Option<u64>,
    pub(in crate::pool) max_wait: Option<u64>,
    pub(in crate::pool) max_lifetime: Option<u64>,
    pub(in crate::pool) leak_detection_threshold: Option<u64>,
    pub(in crate::pool) unanswered_threshold: Option<u64>,
    /// Whether one of the two before is set: asked after every input.
    pub(in crate::pool) reports: bool,
    /// Shedding on standing delay.
    pub(in crate::pool) codel: Option<Codel>,
    /// The base of the backoff after an overload.
    pub(in crate::pool) backoff: Option<u64>,
    /// Whether the pool decides how many connections are established at once.
    pub(in crate::pool) adapts: bool,
    /// Whether connections may have to wait for their time: one of the two before.
    pub(in crate::pool) paces: bool,
    /// Whether the minimum follows the demand.
    pub(in crate::pool) predicts: bool,
    /// With how many connections a check-out or a check-in is no reason to open others: the minimum, or more than
    /// there can be if the minimum follows each of them.
    pub(in crate::pool) quiet_total: u32,
    /// Whether requests that wait may be shed, take a connection that is pending a response, or have one established
    /// later: asked for each of them.
    pub(in crate::pool) has_queue_policy: bool,
    /// `None`: maintenance never runs.
    pub(in crate::pool) pause_after_failure: Option<u64>,
    pub(in crate::pool) jitter_seed: u64,
    pub(in crate::pool) reuse_order: ReuseOrder,
    pub(in crate::pool) load_balanced: bool,
    pub(in crate::pool) pending_response: bool,
    /// Whether anything but callers' deadlines depends on the time.
    pub(in crate::pool) depends_on_time: bool,
    /// The shorter of `max_idle` and `leak_detection_threshold`: how long after a check-out or a check-in something
    /// may be due because of it, at least.
    pub(in crate::pool) shortest_use: Option<u64>,
}

impl Settings {
    /// As many connections as slots can be numbered; a few numbers are kept for the anchors of
    /// lists.
    // OP-02
    pub(in crate::pool) const UNLIMITED: u32 = u32::MAX - 16;

    pub(in crate::pool) fn new(options: &PoolOptions) -> Result<Self, InvalidOptions> {
        let max = options.max_pool_size.unwrap_or(PoolOptions::DEFAULT_MAX_POOL_SIZE);
        let min = options.min_pool_size.unwrap_or(0);
        if max != 0 && min > max {
            return Err(InvalidOptions::MinAboveMax { min, max });
        }
        let max_pending = options.max_connecting.unwrap_or(PoolOptions::DEFAULT_MAX_CONNECTING);
        if max_pending == 0 {
            return Err(InvalidOptions::NoConnecting);
        }
        let pause_after_failure = match options.maintenance {
            None => Some(nanos(PoolOptions::DEFAULT_PAUSE_AFTER_FAILURE)),
            Some(Maintenance::Never) => None,
            Some(Maintenance::PauseAfterFailure(Duration::ZERO)) => {
                return Err(InvalidOptions::NoPause);
            }
            Some(Maintenance::PauseAfterFailure(pause)) => Some(nanos(pause)),
        };
        let mut settings = Self {
            max_total: if max == 0 { Self::UNLIMITED } else { max.min(Self::UNLIMITED) },
            min_total: min.min(Self::UNLIMITED),
            max_pending,
            max_waiting: match options.max_wait_queue_size {
                None | Some(0) => usize::MAX,
                Some(max) => max as usize,
            },
            max_idle: limit(options.max_idle_time),
            max_wait: limit(options.wait_queue_timeout),
            max_lifetime: limit(options.max_lifetime),
            leak_detection_threshold: limit(options.leak_detection_threshold),
            unanswered_threshold: limit(options.unanswered_threshold),
            reports: false,
            codel: Codel::new(options),
            backoff: limit(options.overload_backoff),
            adapts: options.adaptive_connecting == Some(true),
            paces: false,
            predicts: options.predictive_min_pool_size == Some(true),
            quiet_total: u32::MAX,
            has_queue_policy: false,
            pause_after_failure,
            jitter_seed: options.jitter_seed.unwrap_or(0),
            reuse_order: options.reuse_order.unwrap_or_default(),
            load_balanced: options.load_balanced.unwrap_or(false),
            pending_response: options.experimental_pending_response.unwrap_or(false),
            depends_on_time: false,
            shortest_use: None,
        };
        settings.reports =
            settings.leak_detection_threshold.is_some() || settings.unanswered_threshold.is_some();
        settings.paces = settings.adapts || settings.backoff.is_some();
        settings.has_queue_policy =
            settings.pending_response || settings.codel.is_some() || settings.paces;
        if !settings.predicts && !settings.adapts {
            settings.quiet_total = settings.min_total;
        }
        settings.depends_on_time = settings.has_limits_of_time();
        settings.shortest_use =
            [settings.max_idle, settings.leak_detection_threshold].into_iter().flatten().min();
        Ok(settings)
    }

    /// The minimum is one: its pause begins with a failure that may be the very next input.
    const fn has_limits_of_time(&self) -> bool {
        (self.min_total > 0 && self.pause_after_failure.is_some())
            || self.max_idle.is_some()
            || self.max_wait.is_some()
            || self.max_lifetime.is_some()
            || self.reports
            || self.codel.is_some()
            || self.paces
            || self.predicts
            || self.pending_response
    }

    /// How many connections may be made ahead of need at once: the minimum leaves one permit to
    /// check-outs, if there is more than one. If it took them all, a request
    /// could neither start its own nor get the first that is ready without the next request finding
    /// a free permit and opening one connection too many.
    pub(in crate::pool) const fn max_populating(&self) -> usize {
        if self.max_pending > 1 { self.max_pending as usize - 1 } else { 1 }
    }

    /// How long connection `number` may live: the maximum less up to a tenth of it.
    pub(in crate::pool) fn lifetime_of(&self, number: u64) -> Option<u64> {
        let max = self.max_lifetime?;
        let spread = max / 10 + 1;
        Some(max - mix(self.jitter_seed ^ number) % spread)
    }
}

/// When requests are shed. Nanoseconds, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::pool) struct Codel {
    pub(in crate::pool) target: u64,
    pub(in crate::pool) interval: u64,
}

impl Codel {
    /// Either option switches it on, unless the other is 0.
    fn new(options: &PoolOptions) -> Option<Self> {
        let (target, interval) = (options.codel_target, options.codel_interval);
        if target.is_none() && interval.is_none() {
            return None;
        }
        let or = |option: Option<Duration>, default| limit(Some(option.unwrap_or(default)));
        Some(Self {
            target: or(target, PoolOptions::DEFAULT_CODEL_TARGET)?,
            interval: or(interval, PoolOptions::DEFAULT_CODEL_INTERVAL)?,
        })
    }
}

/// Zero switches a limit off.
// OP-05, OP-07
fn limit(duration: Option<Duration>) -> Option<u64> {
    duration.map(nanos).filter(|&nanos| nanos != 0)
}

/// Spreads the bits of a number: the finalizer of SplitMix64.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
