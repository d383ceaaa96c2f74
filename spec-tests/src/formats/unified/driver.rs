//! Tests that need more of a driver than there is here.

use super::format::{Action, Operation, Test};

/// Operations that are more than one command, or whose command the endpoint does not know.
pub(super) const OPERATIONS: [&str; 2] = ["createChangeStream", "withTransaction"];

/// The first operation of a test that cannot be played, as the reason why the test is not applicable.
pub(super) fn needed_by(test: &Test) -> Option<String> {
    let needed = test.operations.iter().find_map(needed)?;
    Some(format!("needs the driver's operation {needed}"))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are played")]
fn needed(operation: &Operation) -> Option<String> {
    let limited =
        |name: &str| operation.limits.timeout.map(|_| format!("`{name}` under timeoutMS"));
    match &operation.action {
        Action::OfDriver { name } => Some(format!("`{name}`")),
        Action::RunOnThread { thread: _, operation } => needed(operation),
        Action::CommitTransaction => limited("commitTransaction"),
        Action::AbortTransaction => limited("abortTransaction"),
        Action::CreateFindCursor(_) => limited("createFindCursor"),
        Action::IterateUntilDocumentOrError => limited("iterateUntilDocumentOrError"),
        Action::Close => limited("close"),
        _ => None,
    }
}
