//! The options of a pool, and the settings that the machine derives from them.

use core::hash::{Hash, Hasher};
use core::time::Duration;

use thiserror::Error;

use super::time::nanos;

/// The options of a pool. `None` means "not set": the default applies, and the option appears
/// neither in `ConnectionPoolCreated` nor in the log.
///
/// ```
/// use cenote_core::pool::PoolOptions;
/// use core::time::Duration;
///
/// let options = PoolOptions::default()
///     .with_max_pool_size(20)
///     .with_min_pool_size(2)
///     .with_wait_queue_timeout(Duration::from_secs(5));
/// options.validate()?;
/// # Ok::<(), cenote_core::pool::InvalidOptions>(())
/// ```
// OP-01
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// `maxPoolSize`: the maximum number of connections: pending, available and in use together. 0 means no limit; default 100.
    pub max_pool_size: Option<u32>,
    /// `minPoolSize`: the number of connections that the pool keeps ahead of need. Default 0; at most the maximum. One input starts as many of them as `maxConnecting` allows.
    pub min_pool_size: Option<u32>,
    /// `maxIdleTimeMS`: how long a connection may be available before it is closed. 0 means never, which
    /// is the default.
    // OP-05
    pub max_idle_time: Option<Duration>,
    /// `maxConnecting`: the maximum number of pending connections; at least 1, default 2.
    pub max_connecting: Option<u32>,
    /// `waitQueueTimeoutMS`: how long a request without a deadline of its own waits for a connection or for permission to establish one. 0 means without limit, which is the default.
    // OP-07, ND-07
    pub wait_queue_timeout: Option<Duration>,
    /// Whether the pool stands in front of a load balancer: generations are kept for each service,
    /// and a clear concerns one service. Default `false`.
    pub load_balanced: Option<bool>,
    /// When the pool runs maintenance: closes stale and idle connections and keeps up the minimum.
    /// Default [`Maintenance::PauseAfterFailure`] with 1 s.
    pub maintenance: Option<Maintenance>,
    /// Which available connection is handed out first. Default [`ReuseOrder::MostRecentlyUsed`].
    pub reuse_order: Option<ReuseOrder>,
    /// How long a connection may exist before it is closed: at once if it is available, otherwise
    /// when it is checked in; the reason given is `idle`. Each lifetime is up to a tenth shorter,
    /// by jitter from [`jitter_seed`](Self::jitter_seed), so that connections do not expire
    /// together. 0 means for ever, which is the default. Not part of CMAP.
    pub max_lifetime: Option<Duration>,
    /// The seed of that jitter; default 0. The shells draw a random one for each pool with a
    /// maximum lifetime, so that the connections of several pools do not expire together either.
    pub jitter_seed: Option<u64>,
    /// How long a connection may be in use before it is reported, once, as perhaps leaked. 0 means
    /// never, which is the default. Not part of CMAP.
    pub leak_detection_threshold: Option<Duration>,
    /// How long a connection may be pending before it is reported, once, as perhaps unanswered: a shell
    /// that loses the answer to `StartEstablish` loses a permit of `maxConnecting`. Set it above
    /// everything that establishing may take. 0 means never, which is the default. Not part of CMAP.
    pub unanswered_threshold: Option<Duration>,
    /// How many requests may wait in the queue: one that would have to wait behind as many fails at once with
    /// [`WaitQueueFull`](super::CheckOutError::WaitQueueFull). Requests that own a pending or draining
    /// connection have left the queue and do not count. 0 means without limit, which is the default.
    /// Not part of CMAP.
    pub max_wait_queue_size: Option<u32>,
    /// The target of shedding on standing delay, as CoDel (controlled delay) has it: whenever the oldest request
    /// has not waited for less than this for a whole [`codel_interval`](Self::codel_interval), the requests that have
    /// waited for longer fail with [`Shed`](super::CheckOutError::Shed). 0 switches shedding off, which is the
    /// default; with an interval alone the target is 5 ms. Not part of CMAP.
    pub codel_target: Option<Duration>,
    /// For how long the delay has to stand before requests are shed. 0 switches shedding off, which is the default;
    /// with a [target](Self::codel_target) alone it is 100 ms. Not part of CMAP.
    pub codel_interval: Option<Duration>,
    /// The base of the backoff after a connection could not be established because the server may be overloaded
    /// ([`overloaded`](super::Input::EstablishFailed)): the pool establishes none for a random time of at most
    /// `base · 2ⁿ` and 10 s after the `n`-th such failure in a row, and then one at a time until one succeeds. Requests
    /// wait meanwhile. The formula is that of client backpressure, whose base is 100 ms. 0 is none, which is the default.
    /// Not part of CMAP.
    pub overload_backoff: Option<Duration>,
    /// Whether the pool decides how many connections it establishes at once, up to [`max_connecting`](Self::max_connecting),
    /// and a request has one established only if waiting for one that is checked in is expected to take twice as
    /// long. So requests may wait for up to twice the time of an establishment, unless
    /// [`predictive_min_pool_size`](Self::predictive_min_pool_size) is on, too. Default `false`. Not part of CMAP.
    pub adaptive_connecting: Option<bool>,
    /// Whether the minimum follows the demand: it is [`min_pool_size`](Self::min_pool_size), or as many connections as
    /// the rate of requests and the time of their uses ask for, if these are more. Default `false`. Not part of
    /// CMAP.
    pub predictive_min_pool_size: Option<bool>,
    /// Experimental: follows the draft of DRIVERS-2884 as of November 2025 and may change with it.
    /// Whether a connection whose caller timed out while it waited for a reply is kept: the next
    /// check-out that finds no other connection first reads the reply and discards it. Default
    /// `false`: such a connection is closed. Not part of CMAP. Switching it off closes the
    /// connections that wait for a reply.
    pub experimental_pending_response: Option<bool>,
}

/// An option that is not set leaves no trace in the hash if it was added after the first version of
/// traces: fingerprints contain this hash, and those of older traces have to stay valid.
impl Hash for PoolOptions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            max_pool_size,
            min_pool_size,
            max_idle_time,
            max_connecting,
            wait_queue_timeout,
            load_balanced,
            maintenance,
            reuse_order,
            max_lifetime,
            jitter_seed,
            leak_detection_threshold,
            unanswered_threshold,
            max_wait_queue_size,
            codel_target,
            codel_interval,
            overload_backoff,
            adaptive_connecting,
            predictive_min_pool_size,
            experimental_pending_response,
        } = self;
        max_pool_size.hash(state);
        min_pool_size.hash(state);
        max_idle_time.hash(state);
        max_connecting.hash(state);
        wait_queue_timeout.hash(state);
        load_balanced.hash(state);
        maintenance.hash(state);
        reuse_order.hash(state);
        max_lifetime.hash(state);
        jitter_seed.hash(state);
        leak_detection_threshold.hash(state);
        if experimental_pending_response.is_some() {
            experimental_pending_response.hash(state);
        }
        if unanswered_threshold.is_some() {
            unanswered_threshold.hash(state);
        }
        // Each with a number of its own, so that it differs from another option of the same value.
        if max_wait_queue_size.is_some() {
            (1_u8, max_wait_queue_size).hash(state);
        }
        if codel_target.is_some() {
            (2_u8, codel_target).hash(state);
        }
        if codel_interval.is_some() {
            (3_u8, codel_interval).hash(state);
        }
        if overload_backoff.is_some() {
            (4_u8, overload_backoff).hash(state);
        }
        if adaptive_connecting.is_some() {
            (5_u8, adaptive_connecting).hash(state);
        }
        if predictive_min_pool_size.is_some() {
            (6_u8, predictive_min_pool_size).hash(state);
        }
    }
}

/// When a pool runs maintenance.
// BG-08, BG-09
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Maintenance {
    /// At once, whenever there is something to do; but after a failed establishment the minimum
    /// pauses for this long, because the server had reasons to refuse. Not 0.
    PauseAfterFailure(Duration),
    /// Never: perished connections are closed when a check-out meets them, and the minimum is not
    /// kept.
    Never,
}

/// Which available connection is handed out first.
// ND-10
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReuseOrder {
    /// The one that came back last: few sockets stay busy and the others can idle out.
    #[default]
    MostRecentlyUsed,
    /// The one that has waited longest: use is spread evenly.
    LeastRecentlyUsed,
}

/// Why options cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidOptions {
    /// The minimum is above the maximum.
    #[error(
        "minPoolSize is {min} but maxPoolSize is {max}: lower the minimum or raise the maximum"
    )]
    // OP-03, OP-04
    MinAboveMax {
        /// As it was set.
        min: u32,
        /// As it was set, or the default.
        max: u32,
    },
    /// `maxConnecting` is 0.
    // OP-06
    #[error("maxConnecting is 0, so nothing could ever connect: set at least 1")]
    NoConnecting,
    /// The pause after a failed establishment is 0.
    // BG-09
    #[error("the pause after a failed establishment is 0: set a duration, or Maintenance::Never")]
    NoPause,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident, $field:ident: $type:ty;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub const fn $setter(mut self, $field: $type) -> Self {
            self.$field = Some($field);
            self
        })*
    };
}

impl PoolOptions {
    /// The default of `maxPoolSize`.
    // OP-02, ND-02
    pub const DEFAULT_MAX_POOL_SIZE: u32 = 100;
    /// The default of `maxConnecting`.
    // OP-06, ND-04
    pub const DEFAULT_MAX_CONNECTING: u32 = 2;
    /// The default pause after a failed establishment.
    pub const DEFAULT_PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
    /// The target of shedding if only its interval is set.
    pub const DEFAULT_CODEL_TARGET: Duration = Duration::from_millis(5);
    /// The interval of shedding if only its target is set.
    pub const DEFAULT_CODEL_INTERVAL: Duration = Duration::from_millis(100);
    /// The longest backoff after an overload.
    pub const MAX_OVERLOAD_BACKOFF: Duration = Duration::from_secs(10);

    setters! {
        /// Sets [`max_pool_size`](Self::max_pool_size); 0 means no limit.
        // OP-11
        with_max_pool_size, max_pool_size: u32;
        /// Sets [`min_pool_size`](Self::min_pool_size).
        with_min_pool_size, min_pool_size: u32;
        /// Sets [`max_idle_time`](Self::max_idle_time); 0 means never.
        with_max_idle_time, max_idle_time: Duration;
        /// Sets [`max_connecting`](Self::max_connecting); at least 1.
        with_max_connecting, max_connecting: u32;
        /// Sets [`wait_queue_timeout`](Self::wait_queue_timeout); 0 means without limit.
        with_wait_queue_timeout, wait_queue_timeout: Duration;
        /// Sets [`load_balanced`](Self::load_balanced).
        with_load_balanced, load_balanced: bool;
        /// Sets [`maintenance`](Self::maintenance).
        with_maintenance, maintenance: Maintenance;
        /// Sets [`reuse_order`](Self::reuse_order).
        with_reuse_order, reuse_order: ReuseOrder;
        /// Sets [`max_lifetime`](Self::max_lifetime); 0 means for ever.
        with_max_lifetime, max_lifetime: Duration;
        /// Sets [`jitter_seed`](Self::jitter_seed).
        with_jitter_seed, jitter_seed: u64;
        /// Sets [`leak_detection_threshold`](Self::leak_detection_threshold); 0 means never.
        with_leak_detection_threshold, leak_detection_threshold: Duration;
        /// Sets [`unanswered_threshold`](Self::unanswered_threshold); 0 means never.
        with_unanswered_threshold, unanswered_threshold: Duration;
        /// Sets [`max_wait_queue_size`](Self::max_wait_queue_size); 0 means without limit.
        with_max_wait_queue_size, max_wait_queue_size: u32;
        /// Sets [`codel_target`](Self::codel_target); 0 switches shedding off.
        with_codel_target, codel_target: Duration;
        /// Sets [`codel_interval`](Self::codel_interval); 0 switches shedding off.
        with_codel_interval, codel_interval: Duration;
        /// Sets [`overload_backoff`](Self::overload_backoff); 0 is none.
        with_overload_backoff, overload_backoff: Duration;
        /// Sets [`adaptive_connecting`](Self::adaptive_connecting).
        with_adaptive_connecting, adaptive_connecting: bool;
        /// Sets [`predictive_min_pool_size`](Self::predictive_min_pool_size).
        with_predictive_min_pool_size, predictive_min_pool_size: bool;
        /// Sets [`experimental_pending_response`](Self::experimental_pending_response).
        with_experimental_pending_response, experimental_pending_response: bool;
    }

    /// Whether a pool can work with these options.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), InvalidOptions> {
        Settings::new(self).map(drop)
    }
}

/// The options with their defaults, in the form in which the machine compares with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    /// "No limit" is the largest number of slots there can be.
    pub(super) max_total: u32,
    pub(super) min_total: u32,
    pub(super) max_pending: u32,
    /// How many requests may wait; "no limit" is more than there can be.
    pub(super) max_waiting: usize,
    /// Nanoseconds, here and below; `None` is "never" or "without limit".
    pub(super) max_idle: Option<u64>,
    pub(super) max_wait: Option<u64>,
    pub(super) max_lifetime: Option<u64>,
    pub(super) max_held: Option<u64>,
    pub(super) max_unanswered: Option<u64>,
    /// Whether one of the two before is set: asked after every input.
    pub(super) reports: bool,
    /// Shedding on standing delay.
    pub(super) codel: Option<Codel>,
    /// The base of the backoff after an overload.
    pub(super) backoff: Option<u64>,
    /// Whether the pool decides how many connections are established at once.
    pub(super) adapts: bool,
    /// Whether connections may have to wait for their time: one of the two before.
    pub(super) paces: bool,
    /// Whether the minimum follows the demand.
    pub(super) predicts: bool,
    /// With how many connections a check-out or a check-in is no reason to open others: the minimum, or more than
    /// there can be if the minimum follows each of them.
    pub(super) quiet_total: u32,
    /// Whether requests that wait may be shed, take a connection that is pending a response, or have one established
    /// later: asked for each of them.
    pub(super) has_queue_policy: bool,
    /// `None`: maintenance never runs.
    pub(super) pause_after_failure: Option<u64>,
    pub(super) jitter_seed: u64,
    pub(super) reuse_order: ReuseOrder,
    pub(super) load_balanced: bool,
    pub(super) pending_response: bool,
    /// Whether anything but callers' deadlines depends on the time.
    pub(super) depends_on_time: bool,
    /// The shorter of `max_idle` and `max_held`: how long after a check-out or a check-in something
    /// may be due because of it, at least.
    pub(super) shortest_use: Option<u64>,
}

impl Settings {
    /// As many connections as slots can be numbered; a few numbers are kept for the anchors of
    /// lists.
    // OP-02
    pub(super) const UNLIMITED: u32 = u32::MAX - 16;

    pub(super) fn new(options: &PoolOptions) -> Result<Self, InvalidOptions> {
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
            max_held: limit(options.leak_detection_threshold),
            max_unanswered: limit(options.unanswered_threshold),
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
        settings.reports = settings.max_held.is_some() || settings.max_unanswered.is_some();
        settings.paces = settings.adapts || settings.backoff.is_some();
        settings.has_queue_policy =
            settings.pending_response || settings.codel.is_some() || settings.paces;
        if !settings.predicts && !settings.adapts {
            settings.quiet_total = settings.min_total;
        }
        settings.depends_on_time = settings.has_limits_of_time();
        settings.shortest_use = [settings.max_idle, settings.max_held].into_iter().flatten().min();
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
    pub(super) const fn max_populating(&self) -> usize {
        if self.max_pending > 1 { self.max_pending as usize - 1 } else { 1 }
    }

    /// How long connection `number` may live: the maximum less up to a tenth of it.
    pub(super) fn lifetime_of(&self, number: u64) -> Option<u64> {
        let max = self.max_lifetime?;
        let spread = max / 10 + 1;
        Some(max - mix(self.jitter_seed ^ number) % spread)
    }
}

/// When requests are shed. Nanoseconds, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Codel {
    pub(super) target: u64,
    pub(super) interval: u64,
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
pub(super) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
