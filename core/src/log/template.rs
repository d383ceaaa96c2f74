//! How messages read, word for word as the specifications have them.

use super::{Component, Severity};

/// How one message reads.
pub(super) struct Template {
    pub(super) component: Component,
    pub(super) severity: Severity,
    /// The message of a structured record.
    pub(super) message: &'static str,
    /// The line. A piece whose field is absent is left out.
    pub(super) line: &'static [Piece],
}

pub(super) enum Piece {
    Text(&'static str),
    /// The address of the server.
    Address,
    /// Text, the value of the field with this key, text.
    Around(&'static str, &'static str, &'static str),
    /// One of the options that were set.
    Option(&'static str),
}

/// What comes before the first option that was set, and before the others.
pub(super) const FIRST_OPTION: &str = " using options ";
pub(super) const NEXT_OPTION: &str = ", ";

impl Template {
    /// A message of severity `debug`, as all but one are.
    pub(super) const fn debug(
        component: Component,
        message: &'static str,
        line: &'static [Piece],
    ) -> Self {
        Self { component, severity: Severity::Debug, message, line }
    }
}

/// The keys of fields that several components have.
// LG-05
pub(super) mod key {
    pub(in crate::log) const SERVER_HOST: &str = "serverHost";
    pub(in crate::log) const SERVER_PORT: &str = "serverPort";
    pub(in crate::log) const DRIVER_CONNECTION_ID: &str = "driverConnectionId";
    #[cfg(feature = "protocol")]
    pub(in crate::log) const TOPOLOGY_ID: &str = "topologyId";
    pub(in crate::log) const DURATION_MS: &str = "durationMS";
}
