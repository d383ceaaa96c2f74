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

use bson::Bson;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::client::Failure;
use super::client::cursor::Cursor;
use super::expect::matching;
use super::format::{Definition, ExpectedEvent, Operation};
use super::world::{Entity, World};

/// An operation and its arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Action {
    // The runner's.
    FailPoint { client: String, fail_point: Map<String, Value> },
    CreateEntities { entities: Vec<Definition> },
    RunOnThread { thread: String, operation: Box<Operation> },
    WaitForThread { thread: String },
    WaitForEvent { client: String, event: ExpectedEvent, count: usize },
    AssertEventCount { client: String, event: ExpectedEvent, count: usize },
    AssertNumberConnectionsCheckedOut { client: String, connections: usize },
    AssertSameLsidOnLastTwoCommands { client: String },
    Wait { ms: u64 },
    // Of clients, cursors and sessions.
    Close,
    AppendMetadata { driver_info_options: DriverInfoOptions },
    IterateUntilDocumentOrError,
    StartTransaction,
    CommitTransaction,
    AbortTransaction,
    EndSession,
    // Commands.
    RunCommand(RunCommand),
    ListDatabases { filter: Map<String, Value> },
    ListCollections { filter: Map<String, Value>, batch_size: Option<i32> },
    ListIndexes { batch_size: Option<i32> },
    CreateIndex { keys: Map<String, Value>, name: String },
    Find(Find),
    CreateFindCursor(Find),
    Aggregate { pipeline: Vec<Value>, batch_size: Option<i32> },
    CreateChangeStream { pipeline: Vec<Value>, batch_size: Option<i32> },
    InsertOne { document: Map<String, Value>, session: Option<String> },
    InsertMany { documents: Vec<Map<String, Value>> },
    UpdateOne { filter: Map<String, Value>, update: Map<String, Value> },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RunCommand {
    pub(super) command: Map<String, Value>,
    pub(super) command_name: String,
    #[serde(rename = "timeoutMS")]
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Find {
    pub(super) filter: Map<String, Value>,
    pub(super) sort: Option<Map<String, Value>>,
    pub(super) batch_size: Option<i32>,
    pub(super) session: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DriverInfoOptions {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) platform: Option<String>,
}

/// Extended JSON as BSON, with the fields in the order of the file.
///
/// # Errors
///
/// What is no extended JSON.
pub(super) fn document(map: &Map<String, Value>) -> Result<bson::Document, String> {
    let Bson::Document(document) = bson(Value::Object(map.clone()))? else {
        return Err("this is extended JSON, but no document".to_owned());
    };
    Ok(document)
}

/// As [`document`], whatever it is.
///
/// # Errors
///
/// What is no extended JSON.
pub(super) fn bson(value: Value) -> Result<Bson, String> {
    Bson::try_from(value).map_err(|error| error.to_string())
}

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
            let id = operation.save_as.as_ref().ok_or("a cursor that nobody keeps")?;
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
