//! The options of a pool.

use std::ffi::c_char;
use std::time::Duration;

use cenote_core::pool::{Maintenance, OptionSpec, OptionValue, PoolOptions, ReuseOrder};
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

/// Every field that is an option of the machine.
macro_rules! fields {
    ($($field:ident,)*) => {
        /// Options of which none is set.
        impl Default for Options {
            fn default() -> Self {
                let size = size_of::<Self>() as u32;
                Self { size, reserved: 0, max_log_text: NOT_SET, $($field: NOT_SET,)* }
            }
        }

        impl Options {
            /// The options of the machine, with their names.
            pub fn fields(&mut self) -> impl Iterator<Item = (&'static str, &mut i64)> {
                let Self { size: _, reserved: _, max_log_text: _, $($field,)* } = self;
                [$((stringify!($field), $field),)*].into_iter()
            }
        }
    };
}

fields! {
    max_pool_size,
    min_pool_size,
    max_idle_time,
    max_connecting,
    wait_queue_timeout,
    load_balanced,
    pause_after_failure,
    reuse_order,
    max_lifetime,
    jitter_seed,
    leak_detection_threshold,
    unanswered_threshold,
    experimental_pending_response,
    max_wait_queue_size,
    codel_target,
    codel_interval,
    overload_backoff,
    adaptive_connecting,
    predictive_min_pool_size,
}

impl Options {
    /// The field of an option of the machine.
    fn field(&mut self, spec: &OptionSpec) -> &mut i64 {
        let mut fields = self.fields();
        fields
            .find(|(name, _)| *name == spec.c_name)
            .map(|it| it.1)
            .expect("each option has a field")
    }

    /// The options of the machine.
    pub(crate) fn to_core(mut self) -> Result<PoolOptions, Failure> {
        let mut options = PoolOptions::default();
        for (spec, value) in options.each() {
            let (field, name) = (*self.field(spec), spec.c_name);
            match value {
                OptionValue::Count(value) => *value = optional(field, name)?,
                OptionValue::Number(value) => *value = (field != NOT_SET).then_some(field as u64),
                OptionValue::Time(value) => *value = time(field, name)?,
                OptionValue::Flag(value) => *value = flag(field, name)?,
                OptionValue::Maintenance(value) if field == NO_MAINTENANCE => {
                    *value = Some(Maintenance::Never);
                }
                OptionValue::Maintenance(value) => {
                    *value = time(field, name)?.map(Maintenance::PauseAfterFailure);
                }
                OptionValue::ReuseOrder(value) => {
                    let order = flag(field, name)?.map(usize::from);
                    *value = order.map(|order| ReuseOrder::ALL[order]);
                }
            }
        }
        Ok(options)
    }

    /// As C has the options of the machine.
    ///
    /// # Panics
    ///
    /// If a kind of maintenance is not known here.
    pub fn of_core(options: &PoolOptions) -> Self {
        let nanos = |time: &Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let mut all = Self::default();
        for (spec, value) in options.clone().each() {
            let field = match value {
                OptionValue::Count(value) => value.map(i64::from),
                OptionValue::Number(value) => value.map(|value| value as i64),
                OptionValue::Time(value) => value.as_ref().map(nanos),
                OptionValue::Flag(value) => value.map(i64::from),
                OptionValue::Maintenance(value) => value.map(|value| match value {
                    Maintenance::Never => NO_MAINTENANCE,
                    Maintenance::PauseAfterFailure(pause) => nanos(&pause),
                    other => unreachable!("{other:?}"),
                }),
                OptionValue::ReuseOrder(value) => {
                    value.map(|order| i64::from(order == ReuseOrder::LeastRecentlyUsed))
                }
            };
            *all.field(spec) = field.unwrap_or(NOT_SET);
        }
        all
    }

    pub(crate) fn max_log_text(self) -> Result<Option<usize>, Failure> {
        optional(self.max_log_text, "max_log_text")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_goes_to_c_and_back() {
        let mut all = PoolOptions::default();
        for (_, value) in all.each() {
            match value {
                OptionValue::Count(value) => *value = Some(7),
                OptionValue::Number(value) => *value = Some(u64::MAX - 7),
                OptionValue::Time(value) => *value = Some(Duration::from_nanos(7)),
                OptionValue::Flag(value) => *value = Some(true),
                OptionValue::Maintenance(value) => *value = Some(Maintenance::Never),
                OptionValue::ReuseOrder(value) => *value = Some(ReuseOrder::LeastRecentlyUsed),
            }
        }
        let pause = Maintenance::PauseAfterFailure(Duration::from_nanos(7));
        for options in [all.clone(), all.with_maintenance(pause), PoolOptions::default()] {
            assert_eq!(Options::of_core(&options).to_core().ok(), Some(options));
        }
    }
}
