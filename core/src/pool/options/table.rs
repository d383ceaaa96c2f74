//! The table of options, and what follows from it.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::{Maintenance, PoolOptions, ReuseOrder};

/// A row of the table of options: what an option is called, what it is for, and its values. Its type is that of its
/// [value](OptionValue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionSpec {
    /// The field of [`PoolOptions`].
    pub name: &'static str,
    /// The same in camel case, for formats that have that. For [`Maintenance`] it is that of the pause.
    pub key: &'static str,
    /// The key in traces.
    pub trace_key: &'static str,
    /// The field in C and Python.
    pub c_name: &'static str,
    /// The key in connection strings, if it can be there.
    pub uri: Option<&'static str>,
    /// What it means.
    pub about: &'static str,
    /// What it is if it is not set; times are in seconds.
    pub default: &'static str,
    /// Values with a meaning of their own, and those that are allowed, unless all are.
    pub values: &'static str,
}

impl OptionSpec {
    /// Every option. Those that are added later come last.
    pub const TABLE: [Self; 19] = [
        row("max_pool_size", "maxPoolSize", "the most connections", "100", "0: no limit")
            .in_uri("maxPoolSize"),
        row(
            "min_pool_size",
            "minPoolSize",
            "connections that are kept ahead of need",
            "0",
            "at most `max_pool_size`",
        )
        .in_uri("minPoolSize"),
        row(
            "max_idle_time",
            "maxIdleTime",
            "how long a connection may be idle",
            "0",
            "0: for ever",
        )
        .in_uri("maxIdleTimeMS"),
        row("max_connecting", "maxConnecting", "the most pending connections", "2", "at least 1")
            .in_uri("maxConnecting"),
        row(
            "wait_queue_timeout",
            "waitQueueTimeout",
            "how long a request waits",
            "0",
            "0: for ever",
        )
        .in_uri("waitQueueTimeoutMS"),
        row(
            "load_balanced",
            "loadBalanced",
            "whether generations are kept for each service",
            "false",
            "",
        )
        .in_uri("loadBalanced"),
        row(
            "maintenance",
            "pauseAfterFailure",
            "the pause of the minimum after a failure",
            "1 s",
            "not 0; or never",
        )
        .in_c("pause_after_failure"),
        row(
            "reuse_order",
            "reuseOrder",
            "which available connection is handed out",
            "mostRecentlyUsed",
            "or `leastRecentlyUsed`",
        ),
        row("max_lifetime", "maxLifetime", "how long a connection may exist", "0", "0: for ever"),
        row("jitter_seed", "jitterSeed", "by how much lifetimes are shorter", "0", ""),
        row(
            "leak_detection_threshold",
            "leakDetectionThreshold",
            "longer uses are reported",
            "0",
            "0: never",
        )
        .in_traces("heldTooLong"),
        row(
            "experimental_pending_response",
            "experimentalPendingResponse",
            "whether late replies are awaited",
            "false",
            "",
        ),
        row(
            "unanswered_threshold",
            "unansweredThreshold",
            "longer pending connections are reported",
            "0",
            "0: never",
        )
        .in_traces("unanswered"),
        row(
            "max_wait_queue_size",
            "maxWaitQueueSize",
            "the most requests that wait",
            "0",
            "0: no limit",
        ),
        row(
            "codel_target",
            "codelTarget",
            "the delay from which requests are shed",
            "0",
            "0: none; 5 ms if the interval alone is set",
        ),
        row(
            "codel_interval",
            "codelInterval",
            "for how long it has to stand",
            "0",
            "0: none; 100 ms if the target alone is set",
        ),
        row(
            "overload_backoff",
            "overloadBackoff",
            "the base of the backoff after an overload",
            "0",
            "0: none",
        ),
        row(
            "adaptive_connecting",
            "adaptiveConnecting",
            "whether `maxConnecting` follows what connecting takes",
            "false",
            "",
        ),
        row(
            "predictive_min_pool_size",
            "predictiveMinPoolSize",
            "whether the minimum follows the demand",
            "false",
            "",
        ),
    ];

    const fn in_uri(self, key: &'static str) -> Self {
        Self { uri: Some(key), ..self }
    }

    /// As version 1 of traces has it.
    const fn in_traces(self, trace_key: &'static str) -> Self {
        Self { trace_key, ..self }
    }

    const fn in_c(self, c_name: &'static str) -> Self {
        Self { c_name, ..self }
    }
}

const fn row(
    name: &'static str,
    key: &'static str,
    about: &'static str,
    default: &'static str,
    values: &'static str,
) -> OptionSpec {
    OptionSpec { name, key, trace_key: key, c_name: name, uri: None, about, default, values }
}

/// The value of an option, to read and to set, by its type. `None` is "not set".
#[derive(Debug, PartialEq, Eq)]
pub enum OptionValue<'a> {
    /// How many.
    Count(&'a mut Option<u32>),
    /// Any number.
    Number(&'a mut Option<u64>),
    /// How long.
    Time(&'a mut Option<Duration>),
    /// Whether.
    Flag(&'a mut Option<bool>),
    /// When maintenance runs.
    Maintenance(&'a mut Option<Maintenance>),
    /// Which connection comes first.
    ReuseOrder(&'a mut Option<ReuseOrder>),
}

impl OptionValue<'_> {
    /// Whether it is set.
    pub const fn is_set(&self) -> bool {
        match self {
            Self::Count(value) => value.is_some(),
            Self::Number(value) => value.is_some(),
            Self::Time(value) => value.is_some(),
            Self::Flag(value) => value.is_some(),
            Self::Maintenance(value) => value.is_some(),
            Self::ReuseOrder(value) => value.is_some(),
        }
    }
}

/// The value alone, as `Option`s hash.
impl Hash for OptionValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Count(value) => value.hash(state),
            Self::Number(value) => value.hash(state),
            Self::Time(value) => value.hash(state),
            Self::Flag(value) => value.hash(state),
            Self::Maintenance(value) => value.hash(state),
            Self::ReuseOrder(value) => value.hash(state),
        }
    }
}

/// An option that is not set leaves no trace in the hash if it was added after the first version of
/// traces: fingerprints contain this hash, and those of older traces have to stay valid.
impl Hash for PoolOptions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (index, (_, value)) in (0_u8..).zip(self.clone().each()) {
            match index {
                0..=10 => value.hash(state),
                _ if !value.is_set() => {}
                11 | 12 => value.hash(state),
                // With a number of its own, so that it differs from another option of the same value.
                _ => (index - 12, value).hash(state),
            }
        }
    }
}

/// The value alone; nothing, if it is not set.
impl fmt::Display for OptionValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(Some(value)) => value.fmt(f),
            Self::Number(Some(value)) => value.fmt(f),
            Self::Time(Some(value)) => write!(f, "{value:?}"),
            Self::Flag(Some(value)) => value.fmt(f),
            Self::Maintenance(Some(Maintenance::Never)) => f.write_str("never"),
            Self::Maintenance(Some(Maintenance::PauseAfterFailure(pause))) => {
                write!(f, "{pause:?}")
            }
            Self::ReuseOrder(Some(order)) => f.write_str(order.as_str()),
            Self::Count(None)
            | Self::Number(None)
            | Self::Time(None)
            | Self::Flag(None)
            | Self::Maintenance(None)
            | Self::ReuseOrder(None) => Ok(()),
        }
    }
}

/// The options that are set, as `maxPoolSize=20 maxIdleTime=10s maintenance=never`, or `defaults`.
impl fmt::Display for PoolOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("defaults");
        }
        let mut separator = "";
        for (spec, value) in self.clone().each().filter(|(_, value)| value.is_set()) {
            let never = matches!(value, OptionValue::Maintenance(Some(Maintenance::Never)));
            let key = if never { spec.name } else { spec.key };
            write!(f, "{separator}{key}={value}")?;
            separator = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::prelude::v1::*;

    use super::*;
    use crate::pool::options::settings::Settings;

    #[test]
    #[cfg(feature = "protocol")]
    fn connection_strings_have_the_keys_of_the_table() {
        for spec in OptionSpec::TABLE {
            let Some(key) = spec.uri else { continue };
            let value = if key == "loadBalanced" { "true" } else { "7" };
            let uri = std::format!("mongodb://db/?{key}={value}");
            let uri = crate::uri::ConnectionString::parse(&uri).expect("a connection string");
            let mut options = uri.pool_options();
            let set: Vec<_> = options.each().filter(|(_, value)| value.is_set()).collect();
            assert_eq!(set.iter().map(|(spec, _)| spec.name).collect::<Vec<_>>(), [spec.name]);
        }
    }

    /// Set to its default, an option changes nothing.
    #[test]
    fn the_defaults_are_those_of_the_machine() {
        let settings = |options: &PoolOptions| Settings::new(options).expect("they fit");
        for index in 0..OptionSpec::TABLE.len() {
            let mut options = PoolOptions::default();
            let (spec, value) = options.each().nth(index).expect("a row");
            let (default, seconds) = (spec.default, spec.default.trim_end_matches(" s"));
            let time = seconds.parse().ok().map(Duration::from_secs);
            match value {
                OptionValue::Count(value) => *value = default.parse().ok(),
                OptionValue::Number(value) => *value = default.parse().ok(),
                OptionValue::Time(value) => *value = time,
                OptionValue::Flag(value) => *value = default.parse().ok(),
                OptionValue::Maintenance(value) => {
                    *value = time.map(Maintenance::PauseAfterFailure);
                }
                OptionValue::ReuseOrder(value) => {
                    *value = ReuseOrder::ALL.into_iter().find(|order| order.as_str() == default);
                }
            }
            assert_ne!(options, PoolOptions::default(), "{}: {default}", spec.name);
            assert_eq!(settings(&options), settings(&PoolOptions::default()), "{}", spec.name);
        }
    }

    /// Each row sets the field that it names, and no other.
    #[test]
    fn a_row_is_about_the_field_that_it_names() {
        let unset = format!("{:?}", PoolOptions::default());
        for index in 0..PoolOptions::default().each().count() {
            let mut options = PoolOptions::default();
            let (spec, value) = options.each().nth(index).expect("a row");
            match value {
                OptionValue::Count(value) => *value = Some(7),
                OptionValue::Number(value) => *value = Some(7),
                OptionValue::Time(value) => *value = Some(Duration::from_nanos(7)),
                OptionValue::Flag(value) => *value = Some(true),
                OptionValue::Maintenance(value) => *value = Some(Maintenance::Never),
                OptionValue::ReuseOrder(value) => *value = Some(ReuseOrder::LeastRecentlyUsed),
            }
            let set = format!("{options:?}");
            let (before, after) =
                set.split_once(&format!(" {}: Some(", spec.name)).expect("its field");
            assert!(unset.starts_with(before), "{set}");
            let rest = after.split_once("), ").map_or("}", |(_, rest)| rest);
            assert!(unset.ends_with(rest), "{set}");
        }
    }
}
