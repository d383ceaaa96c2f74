//! The options of a pool, each once: its field, its setter and its row in the table.

mod kinds;
mod settings;
mod table;

use core::time::Duration;

pub use kinds::{InvalidOptions, Maintenance, ReuseOrder};
pub(crate) use settings::mix;
pub(super) use settings::{Codel, Settings};
pub use table::{OptionSpec, OptionValue};

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

macro_rules! setters {
    ($($setter:ident, $field:ident: $type:ty;)*) => {
        $(#[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
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
        // OP-11
        with_max_pool_size, max_pool_size: u32;
        with_min_pool_size, min_pool_size: u32;
        with_max_idle_time, max_idle_time: Duration;
        with_max_connecting, max_connecting: u32;
        with_wait_queue_timeout, wait_queue_timeout: Duration;
        with_load_balanced, load_balanced: bool;
        with_maintenance, maintenance: Maintenance;
        with_reuse_order, reuse_order: ReuseOrder;
        with_max_lifetime, max_lifetime: Duration;
        with_jitter_seed, jitter_seed: u64;
        with_leak_detection_threshold, leak_detection_threshold: Duration;
        with_unanswered_threshold, unanswered_threshold: Duration;
        with_max_wait_queue_size, max_wait_queue_size: u32;
        with_codel_target, codel_target: Duration;
        with_codel_interval, codel_interval: Duration;
        with_overload_backoff, overload_backoff: Duration;
        with_adaptive_connecting, adaptive_connecting: bool;
        with_predictive_min_pool_size, predictive_min_pool_size: bool;
        with_experimental_pending_response, experimental_pending_response: bool;
    }

    /// Every option with its row of the [table](OptionSpec::TABLE), for programs that convert, show or draw options.
    pub fn each(&mut self) -> impl Iterator<Item = (&'static OptionSpec, OptionValue<'_>)> {
        use OptionValue::{Count, Flag, Maintenance, Number, ReuseOrder, Time};
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
            experimental_pending_response,
            unanswered_threshold,
            max_wait_queue_size,
            codel_target,
            codel_interval,
            overload_backoff,
            adaptive_connecting,
            predictive_min_pool_size,
        } = self;
        let values: [OptionValue<'_>; OptionSpec::TABLE.len()] = [
            Count(max_pool_size),
            Count(min_pool_size),
            Time(max_idle_time),
            Count(max_connecting),
            Time(wait_queue_timeout),
            Flag(load_balanced),
            Maintenance(maintenance),
            ReuseOrder(reuse_order),
            Time(max_lifetime),
            Number(jitter_seed),
            Time(leak_detection_threshold),
            Flag(experimental_pending_response),
            Time(unanswered_threshold),
            Count(max_wait_queue_size),
            Time(codel_target),
            Time(codel_interval),
            Time(overload_backoff),
            Flag(adaptive_connecting),
            Flag(predictive_min_pool_size),
        ];
        OptionSpec::TABLE.iter().zip(values)
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
