use std::time::Duration;

use super::{Problem, query::Query};
use crate::pool::PoolOptions;

/// Which servers there are, and how one of them is chosen.
// OP-21, OP-23
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopologyOptions {
    /// `replicaSet`: the name of the replica set that the hosts belong to.
    pub replica_set: Option<String>,
    /// `directConnection`: whether to talk to the one host alone, without looking for others.
    pub direct_connection: Option<bool>,
    /// `loadBalanced`: whether the one host is a load balancer; default `false`.
    pub load_balanced: Option<bool>,
    /// `serverSelectionTimeoutMS`: how long to look for a suitable server; at least 1 ms.
    pub server_selection_timeout: Option<Duration>,
    /// `localThresholdMS`: how much slower than the fastest a server may be; default 15 ms.
    pub local_threshold: Option<Duration>,
    /// `serverSelectionTryOnce`: for clients of one thread only; others have no use for it.
    pub server_selection_try_once: Option<bool>,
}

/// How servers are watched.
// OP-22
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MonitoringOptions {
    /// `heartbeatFrequencyMS`: the pause between two checks; at least 500 ms, default 10 s.
    pub heartbeat_frequency: Option<Duration>,
    /// `serverMonitoringMode`; default [`ServerMonitoringMode::Auto`].
    pub server_monitoring_mode: Option<ServerMonitoringMode>,
}

/// How a monitor learns of changes.
// OP-30
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ServerMonitoringMode {
    /// Streaming where it is of use, polling in environments that freeze the process.
    #[default]
    Auto,
    /// The server reports changes at once, if it can.
    Stream,
    /// The monitor polls at intervals.
    Poll,
}

/// How long things may take. Zero is "without limit".
// OP-18, OP-19, OP-20
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeoutOptions {
    /// `connectTimeoutMS`: one TCP connect, and each check of a monitor; default 10 s.
    pub connect: Option<Duration>,
    /// `socketTimeoutMS`: one read or write of an application; default without limit. Deprecated in
    /// favour of `timeoutMS`.
    pub socket: Option<Duration>,
    /// `timeoutMS`: a whole operation. Unset is not the same as zero: it leaves the older timeouts
    /// in force. It covers selection, check-out, establishment and the command together.
    pub operation: Option<Duration>,
}

impl TimeoutOptions {
    /// `socketTimeoutMS` if it is in force: it has a limit, and `timeoutMS` is unset.
    // CS-06, CS-07
    #[must_use]
    pub fn socket_in_force(&self) -> Option<Duration> {
        let is_in_force = |timeout: &Duration| self.operation.is_none() && !timeout.is_zero();
        self.socket.filter(is_in_force)
    }
}

/// How messages are compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressionOptions {
    /// `compressors`: those that the client offers, the preferred one first; default none.
    pub compressors: Option<Vec<Compressor>>,
    /// `zlibCompressionLevel`: −1 (zlib's own choice, the default), 0 (none) to 9 (best).
    // OP-28
    pub zlib_compression_level: Option<i32>,
}

/// A way to compress messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Compressor {
    /// Snappy.
    Snappy,
    /// Zlib (deflate).
    Zlib,
    /// Zstandard.
    Zstd,
}

/// Which operations are retried.
// OP-29, OP-31
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryOptions {
    /// `retryReads`; default `true`.
    pub retry_reads: Option<bool>,
    /// `retryWrites`; default `true`.
    pub retry_writes: Option<bool>,
    /// `maxAdaptiveRetries`: how often a command is sent again to an overloaded server; default 2.
    pub max_adaptive_retries: Option<u32>,
    /// `enableOverloadRetargeting`: whether an overloaded server is avoided then; default `false`.
    pub enable_overload_retargeting: Option<bool>,
}

/// The longest `appname`, in bytes.
// OP-26
pub(super) const APP_NAME_MAX: usize = 128;

impl TopologyOptions {
    pub(super) fn read(query: &mut Query) -> Self {
        Self {
            replica_set: query.text("replicaSet"),
            direct_connection: query.boolean("directConnection"),
            load_balanced: query.boolean("loadBalanced"),
            server_selection_timeout: query.millis("serverSelectionTimeoutMS", 1),
            local_threshold: query.millis("localThresholdMS", 0),
            // SS-18
            server_selection_try_once: query.boolean("serverSelectionTryOnce"),
        }
    }
}

impl MonitoringOptions {
    pub(super) fn read(query: &mut Query) -> Self {
        let name = "serverMonitoringMode";
        Self {
            heartbeat_frequency: query.millis("heartbeatFrequencyMS", 500),
            server_monitoring_mode: query.word(
                name,
                &ServerMonitoringMode::NAMES,
                &ServerMonitoringMode::ALL,
            ),
        }
    }
}

impl ServerMonitoringMode {
    const ALL: [Self; 3] = [Self::Auto, Self::Stream, Self::Poll];
    const NAMES: [&'static str; 3] = ["auto", "stream", "poll"];

    /// As a connection string writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl TimeoutOptions {
    pub(super) fn read(query: &mut Query) -> Self {
        let operation = query.integer("timeoutMS", 0..=i64::MAX);
        Self {
            connect: query.millis("connectTimeoutMS", 0),
            socket: query.millis("socketTimeoutMS", 0),
            operation: operation.map(|millis| Duration::from_millis(millis.unsigned_abs())),
        }
    }
}

impl CompressionOptions {
    pub(super) fn read(query: &mut Query) -> Self {
        Self {
            compressors: compressors(query),
            zlib_compression_level: query.integer("zlibCompressionLevel", -1..=9),
        }
    }
}

// OP-27, CM-12
fn compressors(query: &mut Query) -> Option<Vec<Compressor>> {
    let name = "compressors";
    let pair = query.take(name)?;
    let mut compressors = Vec::new();
    for (entry, position) in pair.text().split(',').zip(1..) {
        match Compressor::ALL.into_iter().find(|compressor| compressor.name() == entry) {
            Some(compressor) if compressors.contains(&compressor) => {}
            Some(compressor) => {
                if !compressor.is_built() {
                    query.warn(name, &pair, Problem::NotBuilt { feature: compressor.name() });
                }
                compressors.push(compressor);
            }
            None => {
                let known = &Compressor::NAMES;
                query.warn(name, &pair, Problem::UnknownEntry { position, known });
            }
        }
    }
    Some(compressors)
}

impl Compressor {
    /// All of them, in the order of their ids.
    pub const ALL: [Self; 3] = [Self::Snappy, Self::Zlib, Self::Zstd];
    const NAMES: [&'static str; 3] = ["snappy", "zlib", "zstd"];

    /// As a connection string and the handshake write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether this build has it: the feature of that [name](Self::name).
    #[must_use]
    pub const fn is_built(self) -> bool {
        match self {
            Self::Snappy => cfg!(feature = "snappy"),
            Self::Zlib => cfg!(feature = "zlib"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }

    /// As `OP_COMPRESSED` carries it.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8 + 1
    }
}

impl RetryOptions {
    pub(super) fn read(query: &mut Query) -> Self {
        Self {
            retry_reads: query.boolean("retryReads"),
            retry_writes: query.boolean("retryWrites"),
            max_adaptive_retries: query
                .integer("maxAdaptiveRetries", 0..=super::query::INTEGER_MAX),
            enable_overload_retargeting: query.boolean("enableOverloadRetargeting"),
        }
    }
}

/// The options that a connection string has for a pool; the others stay unset.
// OP-13, OP-37
pub(super) fn pool(query: &mut Query, topology: &TopologyOptions) -> PoolOptions {
    let max = super::query::INTEGER_MAX;
    PoolOptions {
        max_pool_size: query.integer("maxPoolSize", 0..=max),
        min_pool_size: query.integer("minPoolSize", 0..=max),
        max_idle_time: query.millis("maxIdleTimeMS", 0),
        max_connecting: query.integer("maxConnecting", 1..=max),
        wait_queue_timeout: query.millis("waitQueueTimeoutMS", 0),
        load_balanced: topology.load_balanced,
        ..PoolOptions::default()
    }
}
