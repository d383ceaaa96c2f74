//! What a server has seen, for tests to ask.

use std::collections::BTreeMap;

use bson::RawDocumentBuf;

/// What a server has seen.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Connections that are open now.
    pub open: u64,
    /// Connections that were ever accepted; the last one has this ordinal.
    pub accepted: u64,
    /// Connections that are open now, by the name of their application; those that have none, or
    /// have not told it yet, are under the empty name.
    pub open_by_app_name: BTreeMap<String, u64>,
    /// What the client said of itself that introduced itself last.
    pub last_client: Option<RawDocumentBuf>,
    /// Commands that came, by name (`isMaster` for both its spellings), whatever became of them.
    pub commands: BTreeMap<&'static str, u64>,
    /// `maxTimeMS` of the command that came last, unless that was of the handshake or a monitor's; `None` if it had
    /// none.
    pub last_max_time: Option<i64>,
    /// Commands that came compressed, by the name of the compressor. All but a few replies are
    /// compressed as their commands were.
    pub compressed_commands: BTreeMap<&'static str, u64>,
    /// Commands that the server does not know.
    pub unknown_commands: u64,
    /// Connections that were closed because what came was no message.
    pub protocol_errors: u64,
    /// What was wrong with the last of those.
    pub last_protocol_error: Option<String>,
    /// How often a fault of a [`Script`](crate::Script) has happened: on how many replies, and on how many
    /// connections as they were accepted.
    pub faults: u64,
    /// Logins that failed.
    pub failed_logins: u64,
}
