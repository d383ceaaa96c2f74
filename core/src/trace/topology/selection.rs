//! Requests for a server that waited, as traces hold them.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::client::Selector;
use crate::client::machine::SelectionId;
use crate::error::rounded;

/// A request for a server that waited, when that has ended. One that is answered at once is not recorded.
///
/// `Display` is, for example, `request 17 for the primary waited 612ms for b.example.com:27017`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectionRecord {
    /// The number of the request, as the embedder counts them.
    pub id: SelectionId,
    /// How long it waited.
    pub waited: Duration,
    /// What it was for, as in `the primary`; `one server`, if it was for a certain one.
    pub wanted: String,
    /// What came of it.
    pub outcome: SelectionOutcome,
}

/// What came of a request for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionOutcome {
    /// The choice of these servers: two, if more than one fitted.
    Chosen(Vec<Arc<ServerAddress>>),
    /// It failed for this reason, or the caller gave up.
    Failed(String),
}

impl SelectionRecord {
    /// Of a request with this selector.
    #[must_use]
    pub fn new(
        id: SelectionId,
        selector: &Selector,
        waited: Duration,
        outcome: SelectionOutcome,
    ) -> Self {
        Self { id, waited, wanted: wanted(selector), outcome }
    }

    /// The memory that it takes besides itself.
    pub(super) fn weight(&self) -> usize {
        let outcome = match &self.outcome {
            SelectionOutcome::Chosen(servers) => servers.len() * size_of::<ServerAddress>(),
            SelectionOutcome::Failed(reason) => reason.len(),
        };
        self.wanted.len() + outcome
    }
}

fn wanted(selector: &Selector) -> String {
    match selector {
        Selector::Any => "any server".to_owned(),
        Selector::Primary => "the primary".to_owned(),
        Selector::Secondary => "a secondary".to_owned(),
        Selector::ReadPreference(preference) => format!("a member for {preference}"),
        Selector::Address(_) => "one server".to_owned(),
        Selector::Avoiding { selector, .. } => wanted(selector),
    }
}

impl fmt::Display for SelectionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id: SelectionId(id), waited, wanted, outcome } = self;
        write!(f, "request {id} for {wanted} waited {:?}", rounded(*waited))?;
        match outcome {
            SelectionOutcome::Chosen(servers) => {
                let mut separator = " for ";
                for server in servers {
                    write!(f, "{separator}{server}")?;
                    separator = " or ";
                }
                Ok(())
            }
            SelectionOutcome::Failed(reason) => write!(f, " and failed: {reason}"),
        }
    }
}
