//! The options of a pool.

use std::ffi::c_char;
use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, ReuseOrder};
use cenote_core::uri::ConnectionString;

use crate::pointer::{Out, read, sized_struct, text};
use crate::status::{Failure, Status, call};

/// An option that is not set: its default applies, and no event or log record mentions it.
pub const NOT_SET: i64 = -1;

/// As `pause_after_failure`: the pool never runs maintenance.
pub const NO_MAINTENANCE: i64 = -2;

/// The options of a pool. `CENOTE_OPTIONS_INIT` is the options of which none is set. Times are in
/// nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `sizeof(cenote_options)`.
    pub size: u32,
    /// 0, for later versions.
    pub reserved: u32,
    /// `maxPoolSize`; 0 is without limit, default 100.
    pub max_pool_size: i64,
    /// `minPoolSize`; default 0.
    pub min_pool_size: i64,
    /// `maxIdleTimeMS`; 0 is never, which is the default.
    pub max_idle_time: i64,
    /// `maxConnecting`; default 2.
    pub max_connecting: i64,
    /// `waitQueueTimeoutMS`; 0 is without limit, which is the default.
    pub wait_queue_timeout: i64,
    /// Whether the pool is behind a load balancer: 0 or 1; default 0.
    pub load_balanced: i64,
    /// How long the minimum is left alone after a failed establishment; default 1 s.
    /// `CENOTE_NO_MAINTENANCE`: no minimum is kept, and perished connections are closed when a check-out meets them.
    pub pause_after_failure: i64,
    /// Which available connection is handed out first: 0 the one used last, 1 the one that has waited
    /// longest; default 0.
    pub reuse_order: i64,
    /// How long a connection may exist, less up to a tenth of it; 0 is for ever, which is the default.
    pub max_lifetime: i64,
    /// The seed of that tenth: any other number, drawn at random so that pools differ.
    pub jitter_seed: i64,
    /// How long a connection may be in use before it is reported; 0 is never, which is the default.
    pub leak_detection_threshold: i64,
    /// How long a connection may be pending before it is reported; 0 is never, which is the default.
    pub unanswered_threshold: i64,
    /// Whether connections whose reply is late are kept: 0 or 1; default 0. Experimental, as of
    /// DRIVERS-2884.
    pub experimental_pending_response: i64,
    /// The length at which texts in log records are cut, in characters; default 1000. Not an option of
    /// the machine: `cenote_set_options` ignores it.
    pub max_log_text: i64,
    /// How many requests may wait; 0 is without limit, which is the default.
    pub max_wait_queue_size: i64,
    /// Requests that have waited for longer fail once the oldest wait was never below it for a whole
    /// `codel_interval`; 0 is never, which is the default; 5 ms with an interval alone.
    pub codel_target: i64,
    /// For how long the delay has to stand; 0 is never, which is the default; 100 ms with a target alone.
    pub codel_interval: i64,
    /// The unit of the pause after an establishment that failed because of overload, during which no
    /// connection is established; 0 is no pause, which is the default.
    pub overload_backoff: i64,
    /// Whether fewer than `max_connecting` connections are pending at once while more would delay each
    /// other: 0 or 1; default 0.
    pub adaptive_connecting: i64,
    /// Whether the minimum grows to the demand of the recent past: 0 or 1; default 0.
    pub predictive_min_pool_size: i64,
}

sized_struct!(Options, "cenote_options");

/// Options of which none is set.
impl Default for Options {
    fn default() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            reserved: 0,
            max_pool_size: NOT_SET,
            min_pool_size: NOT_SET,
            max_idle_time: NOT_SET,
            max_connecting: NOT_SET,
            wait_queue_timeout: NOT_SET,
            load_balanced: NOT_SET,
            pause_after_failure: NOT_SET,
            reuse_order: NOT_SET,
            max_lifetime: NOT_SET,
            jitter_seed: NOT_SET,
            leak_detection_threshold: NOT_SET,
            unanswered_threshold: NOT_SET,
            experimental_pending_response: NOT_SET,
            max_log_text: NOT_SET,
            max_wait_queue_size: NOT_SET,
            codel_target: NOT_SET,
            codel_interval: NOT_SET,
            overload_backoff: NOT_SET,
            adaptive_connecting: NOT_SET,
            predictive_min_pool_size: NOT_SET,
        }
    }
}

impl Options {
    /// The options of the machine.
    pub(crate) fn to_core(self) -> Result<PoolOptions, Failure> {
        let mut options = PoolOptions::default();
        options.max_pool_size = optional(self.max_pool_size, "max_pool_size")?;
        options.min_pool_size = optional(self.min_pool_size, "min_pool_size")?;
        options.max_connecting = optional(self.max_connecting, "max_connecting")?;
        options.max_idle_time = time(self.max_idle_time, "max_idle_time")?;
        options.wait_queue_timeout = time(self.wait_queue_timeout, "wait_queue_timeout")?;
        options.max_lifetime = time(self.max_lifetime, "max_lifetime")?;
        options.leak_detection_threshold =
            time(self.leak_detection_threshold, "leak_detection_threshold")?;
        options.unanswered_threshold = time(self.unanswered_threshold, "unanswered_threshold")?;
        options.max_wait_queue_size = optional(self.max_wait_queue_size, "max_wait_queue_size")?;
        options.codel_target = time(self.codel_target, "codel_target")?;
        options.codel_interval = time(self.codel_interval, "codel_interval")?;
        options.overload_backoff = time(self.overload_backoff, "overload_backoff")?;
        options.adaptive_connecting = flag(self.adaptive_connecting, "adaptive_connecting")?;
        options.predictive_min_pool_size =
            flag(self.predictive_min_pool_size, "predictive_min_pool_size")?;
        options.load_balanced = flag(self.load_balanced, "load_balanced")?;
        options.experimental_pending_response =
            flag(self.experimental_pending_response, "experimental_pending_response")?;
        options.jitter_seed = (self.jitter_seed != NOT_SET).then_some(self.jitter_seed as u64);
        options.maintenance = match self.pause_after_failure {
            NO_MAINTENANCE => Some(Maintenance::Never),
            pause => time(pause, "pause_after_failure")?.map(Maintenance::PauseAfterFailure),
        };
        let last_used = flag(self.reuse_order, "reuse_order")?;
        options.reuse_order = last_used.map(|oldest| {
            if oldest { ReuseOrder::LeastRecentlyUsed } else { ReuseOrder::MostRecentlyUsed }
        });
        Ok(options)
    }

    pub(crate) fn max_log_text(self) -> Result<Option<usize>, Failure> {
        optional(self.max_log_text, "max_log_text")
    }

    /// Those that a connection string can have.
    fn of_core(options: &PoolOptions) -> Self {
        let size = |size: Option<u32>| size.map_or(NOT_SET, i64::from);
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let time = |time: Option<Duration>| time.map_or(NOT_SET, nanos);
        Self {
            max_pool_size: size(options.max_pool_size),
            min_pool_size: size(options.min_pool_size),
            max_idle_time: time(options.max_idle_time),
            max_connecting: size(options.max_connecting),
            wait_queue_timeout: time(options.wait_queue_timeout),
            load_balanced: options.load_balanced.map_or(NOT_SET, i64::from),
            ..Self::default()
        }
    }
}

fn optional<T: TryFrom<i64>>(value: i64, name: &str) -> Result<Option<T>, Failure> {
    if value == NOT_SET {
        return Ok(None);
    }
    T::try_from(value).map(Some).map_err(|_| {
        let text = format!("{name} is {value}: write CENOTE_NOT_SET or a number in its range");
        Failure::new(Status::BadOptions, text)
    })
}

fn time(value: i64, name: &str) -> Result<Option<Duration>, Failure> {
    Ok(optional(value, name)?.map(Duration::from_nanos))
}

fn flag(value: i64, name: &str) -> Result<Option<bool>, Failure> {
    match value {
        NOT_SET => Ok(None),
        0 => Ok(Some(false)),
        1 => Ok(Some(true)),
        other => {
            let text = format!("{name} is {other}: write CENOTE_NOT_SET, 0 or 1");
            Err(Failure::new(Status::BadOptions, text))
        }
    }
}

/// Reads the options of a pool from a connection string. All fields are set, those that the string does
/// not mention to `CENOTE_NOT_SET`. `options->size` has to be set before.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_options_from_uri(
    uri: *const c_char,
    options: *mut Options,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (uri, out) = unsafe { (text(uri, "the connection string")?, Out::new(options)?) };
        let bad = |error| Failure::new(Status::BadText, format!("the connection string: {error}"));
        let uri = ConnectionString::parse(uri).map_err(bad)?;
        out.write(Options::of_core(&uri.pool_options()));
        Ok(())
    })
}

/// Reads options that C has set.
///
/// # Safety
///
/// See `pointer`.
pub(crate) unsafe fn options(pointer: *const Options) -> Result<Options, Failure> {
    // SAFETY: the caller's promise.
    unsafe { read(pointer) }
}
