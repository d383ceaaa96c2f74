//! The messages about server selection.

use core::fmt;
use core::time::Duration;

use super::template::{Piece, Template, key};
use super::{Component, LogRecord, LogSettings, LogValue, Severity};
use crate::address::ServerAddress;

/// One server selection, as its messages show it. Each has one start, and one end: it succeeds or fails. Between
/// them it is told once at most that a server is waited for.
///
/// ```
/// use cenote_core::client::Selector;
/// use cenote_core::log::Selection;
/// use cenote_core::topology::TopologyDescription;
///
/// let selection = Selection::new(&Selector::Secondary, "find").with_operation_id(7);
/// let record = selection.started(&TopologyDescription::default());
/// assert_eq!(
///     record.to_string(),
///     "Server selection started for operation find with ID 7. \
///      Selector: secondary, router or standalone server, topology description: Unknown"
/// );
/// ```
// SS-17
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    selector: &'a dyn fmt::Display,
    operation: &'a str,
    operation_id: Option<i64>,
    topology_id: Option<&'a str>,
}

impl<'a> Selection<'a> {
    /// The severity of [`waiting`](Self::waiting); that of the others is [`LogRecord::SEVERITY`].
    pub const WAITING_SEVERITY: Severity = Severity::Info;

    /// The selection by this selector, with all parts of a read preference in its text, for an operation: the name of
    /// the command, if it is for one.
    #[must_use]
    pub const fn new(selector: &'a dyn fmt::Display, operation: &'a str) -> Self {
        Self { selector, operation, operation_id: None, topology_id: None }
    }

    /// With the number of the operation, for drivers that number theirs.
    #[must_use]
    pub const fn with_operation_id(mut self, id: i64) -> Self {
        self.operation_id = Some(id);
        self
    }

    /// In the topology with this id, which [its own messages](LogRecord::of_topology) have, too: for processes that have
    /// several clients.
    #[must_use]
    pub const fn with_topology_id(mut self, id: &'a str) -> Self {
        self.topology_id = Some(id);
        self
    }

    /// It begins, with this description of the topology.
    #[must_use]
    pub fn started(&self, topology: &dyn fmt::Display) -> LogRecord<'a> {
        self.about(&STARTED, topology)
    }

    /// No server fits, and one is waited for, for this time at most. To be logged once.
    #[must_use]
    pub fn waiting(
        &self,
        topology: &dyn fmt::Display,
        remaining: Option<Duration>,
    ) -> LogRecord<'a> {
        let whole = |remaining: Duration| {
            LogValue::whole(u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX))
        };
        self.about(&WAITING, topology).with(REMAINING_TIME_MS, remaining.map(whole))
    }

    /// This server was selected.
    #[must_use]
    pub fn succeeded(
        &self,
        topology: &dyn fmt::Display,
        server: &'a ServerAddress,
    ) -> LogRecord<'a> {
        self.about(&SUCCEEDED, topology).with_address(server)
    }

    /// No server was selected, for a reason that does not repeat what the other fields say:
    /// [`SelectionError::reason`](crate::client::SelectionError::reason).
    #[must_use]
    pub fn failed(
        &self,
        topology: &dyn fmt::Display,
        failure: impl fmt::Display,
        settings: &LogSettings,
    ) -> LogRecord<'a> {
        self.about(&FAILED, topology).with(FAILURE, LogValue::text(settings.cut(failure)))
    }

    fn about(&self, template: &'static Template, topology: &dyn fmt::Display) -> LogRecord<'a> {
        LogRecord::about(template)
            .with(SELECTOR, LogValue::text(self.selector.to_string()))
            .with(OPERATION_ID, self.operation_id.map(LogValue::Int))
            .with(OPERATION, LogValue::text(self.operation))
            .with(TOPOLOGY_DESCRIPTION, LogValue::text(topology.to_string()))
            .with(key::TOPOLOGY_ID, self.topology_id.map(LogValue::text))
    }
}

impl fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("selector", &format_args!("{}", self.selector))
            .field("operation", &self.operation)
            .field("operation_id", &self.operation_id)
            .field("topology_id", &self.topology_id)
            .finish()
    }
}

const SELECTOR: &str = "selector";
const OPERATION_ID: &str = "operationId";
const OPERATION: &str = "operation";
const TOPOLOGY_DESCRIPTION: &str = "topologyDescription";
const REMAINING_TIME_MS: &str = "remainingTimeMS";
const FAILURE: &str = "failure";

const fn message(message: &'static str, line: &'static [Piece]) -> Template {
    Template::debug(Component::ServerSelection, message, line)
}

static STARTED: Template = message(
    "Server selection started",
    &[Piece::Text("Server selection started"), FOR_OPERATION, WITH_ID, BY_SELECTOR, IN_TOPOLOGY],
);

static WAITING: Template = Template {
    severity: Selection::WAITING_SEVERITY,
    ..message(
        "Waiting for suitable server to become available",
        &[
            Piece::Text("Waiting for server to become available"),
            FOR_OPERATION,
            WITH_ID,
            Piece::Around(". Remaining time: ", REMAINING_TIME_MS, " ms"),
            BY_SELECTOR,
            IN_TOPOLOGY,
        ],
    )
};

static SUCCEEDED: Template = message(
    "Server selection succeeded",
    &[
        Piece::Text("Server selection succeeded"),
        FOR_OPERATION,
        WITH_ID,
        Piece::Text(". Selected server: "),
        Piece::Address,
        BY_SELECTOR,
        IN_TOPOLOGY,
    ],
);

static FAILED: Template = message(
    "Server selection failed",
    &[
        Piece::Text("Server selection failed"),
        FOR_OPERATION,
        WITH_ID,
        Piece::Around(". Failure: ", FAILURE, ""),
        BY_SELECTOR,
        IN_TOPOLOGY,
    ],
);

const FOR_OPERATION: Piece = Piece::Around(" for operation ", OPERATION, "");
const WITH_ID: Piece = Piece::Around(" with ID ", OPERATION_ID, "");
const BY_SELECTOR: Piece = Piece::Around(". Selector: ", SELECTOR, "");
const IN_TOPOLOGY: Piece = Piece::Around(", topology description: ", TOPOLOGY_DESCRIPTION, "");
