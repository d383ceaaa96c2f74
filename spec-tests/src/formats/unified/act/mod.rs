//! What operations do.
//!
//! ```text
//! mod           which operations there are
//! runner        those of the test runner itself
//! crud          those that are commands
//! ```

pub(super) mod crud;
pub(super) mod runner;

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::client::Failure;
use super::client::cursor::Cursor;
use super::expect::matching;
use super::format::Operation;
use super::world::{Entity, World};

/// What came of an operation that went well.
pub(super) enum Outcome {
    Nothing,
    Value(Value),
    Cursor(Cursor),
}

/// Carries an operation out, and compares what came of it with what has to.
///
/// # Errors
///
/// What is different, or why it could not be carried out.
pub(super) fn perform(world: &Arc<World>, operation: &Operation) -> Result<(), String> {
    let outcome = runner::act(world, operation).unwrap_or_else(|| crud::act(world, operation));
    judge(world, operation, outcome).map_err(|what| {
        let name = format!("{:?}", operation.action);
        let name = name.split([' ', '(']).next().unwrap_or_default();
        format!("{name} on {}: {what}", operation.object)
    })
}

fn judge(
    world: &World,
    operation: &Operation,
    outcome: Result<Outcome, Failure>,
) -> Result<(), String> {
    let outcome = match (outcome, &operation.expect_error) {
        (Err(failure), _) if failure.script_error().is_some() => return Err(failure.to_string()),
        (_, _) if operation.ignore_result_and_error => return Ok(()),
        (Err(failure), Some(expected)) => return expected.judge(&failure),
        (Err(failure), None) => return Err(failure.to_string()),
        (Ok(_), Some(expected)) => return Err(format!("expected {expected:?}, but it went well")),
        (Ok(outcome), None) => outcome,
    };
    let value = match outcome {
        Outcome::Cursor(cursor) => {
            let id = operation.save_as.as_ref().ok_or("a cursor without saveResultAsEntity")?;
            return world.save(id, Entity::Cursor(Arc::new(Mutex::new(cursor))));
        }
        Outcome::Value(value) => Some(value),
        Outcome::Nothing => None,
    };
    match &operation.expect_result {
        Some(expected) => matching::root(expected, value.as_ref()),
        None => Ok(()),
    }
}
