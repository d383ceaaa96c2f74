//! Whether a file names what is there by then, and compares with what there is to compare with: what
//! serde cannot see.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::PATIENCE;
use super::expect::matching;
use super::format::{
    Action, COMPONENTS, Definition, ExpectLogMessage, ExpectedEvent, File, Operation, RUNNER, Test,
};
use cenote_conform::document::nested::wrong_at;

/// # Errors
///
/// What is wrong, and where.
pub(super) fn check(file: &File) -> Result<(), String> {
    let mut names = Names::default();
    names.define("createEntities", &file.create_entities)?;
    let mut tests = file.tests.iter().enumerate();
    tests.try_for_each(|(index, test)| {
        let checked = names.clone().check_test(test);
        checked.map_err(|what| wrong_at(&format!("tests/{index}"), what))
    })
}

/// What was given a name until now.
#[derive(Clone, Debug, Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn check_test(&mut self, test: &Test) -> Result<(), String> {
        for (index, operation) in test.operations.iter().enumerate() {
            let checked = self.check_operation(operation);
            checked.map_err(|what| wrong_at(&format!("operations/{index}"), what))?;
        }
        for (index, expected) in test.expect_events.iter().enumerate() {
            let place = format!("expectEvents/{index}");
            self.has(&format!("{place}/client"), &expected.client)?;
            for (index, event) in expected.events.iter().enumerate() {
                check_event(&format!("{place}/events/{index}"), event)?;
            }
        }
        for (index, expected) in test.expect_log_messages.iter().enumerate() {
            let place = format!("expectLogMessages/{index}");
            self.has(&format!("{place}/client"), &expected.client)?;
            let lists =
                [("messages", &expected.messages), ("ignoreMessages", &expected.ignore_messages)];
            for (key, messages) in lists {
                for (index, message) in messages.iter().enumerate() {
                    check_message(&format!("{place}/{key}/{index}"), message)?;
                }
            }
        }
        Ok(())
    }

    fn check_operation(&mut self, operation: &Operation) -> Result<(), String> {
        let Operation { object, action, expect_result, save_as, .. } = operation;
        if object != RUNNER {
            self.has("object", object)?;
        }
        if let Some(expected) = expect_result {
            matching::check(expected).map_err(|what| wrong_at("expectResult", what))?;
        }
        self.check_action(action).map_err(|what| wrong_at("arguments", what))?;
        self.0.extend(save_as.clone());
        Ok(())
    }

    fn check_action(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::CreateEntities { entities } => self.define("entities", entities),
            Action::FailPoint { client, fail_point: _ }
            | Action::AssertNumberConnectionsCheckedOut { client, connections: _ }
            | Action::AssertSameLsidOnLastTwoCommands { client } => self.has("client", client),
            Action::RecordTopologyDescription { client, id } => {
                self.has("client", client)?;
                self.0.insert(id.clone());
                Ok(())
            }
            Action::AssertTopologyType { topology_description, topology_type: _ } => {
                self.has("topologyDescription", topology_description)
            }
            Action::WaitForPrimaryChange { client, prior_topology_description, timeout_ms: _ } => {
                self.has("client", client)?;
                self.has("priorTopologyDescription", prior_topology_description)
            }
            Action::WaitForEvent { client, event, count: _ }
            | Action::AssertEventCount { client, event, count: _ } => {
                check_event("event", event)?;
                self.has("client", client)
            }
            Action::RunOnThread { thread, operation } => {
                self.has("thread", thread)?;
                self.check_operation(operation).map_err(|what| wrong_at("operation", what))
            }
            Action::WaitForThread { thread } => self.has("thread", thread),
            Action::Find(find) | Action::CreateFindCursor(find) => {
                find.session.iter().try_for_each(|session| self.has("session", session))
            }
            Action::InsertOne { document: _, session }
            | Action::CountDocuments { filter: _, session } => {
                session.iter().try_for_each(|session| self.has("session", session))
            }
            Action::Wait { ms } if u128::from(*ms) > PATIENCE.as_millis() => {
                Err(wrong_at("ms", format!("{ms} is more than a test may take")))
            }
            Action::Wait { .. }
            | Action::Close
            | Action::AppendMetadata { .. }
            | Action::IterateUntilDocumentOrError
            | Action::StartTransaction
            | Action::CommitTransaction
            | Action::AbortTransaction
            | Action::EndSession
            | Action::RunCommand { .. }
            | Action::BulkWrite { .. }
            | Action::ClientBulkWrite { .. }
            | Action::ListDatabases { .. }
            | Action::ListDatabaseNames
            | Action::ListCollections { .. }
            | Action::ListCollectionNames { .. }
            | Action::ListIndexes { .. }
            | Action::ListIndexNames
            | Action::CreateIndex { .. }
            | Action::DropIndex { .. }
            | Action::DropIndexes
            | Action::FindOne { .. }
            | Action::Aggregate { .. }
            | Action::Count { .. }
            | Action::EstimatedDocumentCount
            | Action::Distinct { .. }
            | Action::InsertMany { .. }
            | Action::UpdateOne { .. }
            | Action::UpdateMany { .. }
            | Action::ReplaceOne { .. }
            | Action::DeleteOne { .. }
            | Action::DeleteMany { .. }
            | Action::FindOneAndDelete { .. }
            | Action::FindOneAndReplace { .. }
            | Action::FindOneAndUpdate { .. }
            | Action::OfDriver { .. } => Ok(()),
        }
    }

    fn define(&mut self, place: &str, definitions: &[Definition]) -> Result<(), String> {
        for (index, definition) in definitions.iter().enumerate() {
            let (kind, id, of) = match definition {
                Definition::Client(it) => ("client", &it.id, None),
                Definition::Database(it) => ("database", &it.id, Some(("client", &it.client))),
                Definition::Collection(it) => {
                    ("collection", &it.id, Some(("database", &it.database)))
                }
                Definition::Bucket(it) => ("bucket", &it.id, Some(("database", &it.database))),
                Definition::Session(it) => ("session", &it.id, Some(("client", &it.client))),
                Definition::Thread(it) => ("thread", &it.id, None),
            };
            let place = format!("{place}/{index}/{kind}");
            if let Some((key, name)) = of {
                self.has(&format!("{place}/{key}"), name)?;
            }
            if !self.0.insert(id.clone()) {
                return Err(wrong_at(&format!("{place}/id"), format!("{id} is there already")));
            }
        }
        Ok(())
    }

    fn has(&self, place: &str, name: &str) -> Result<(), String> {
        let is_there = self.0.contains(name);
        let what = || wrong_at(place, format!("nothing is called {name} by then"));
        is_there.then_some(()).ok_or_else(what)
    }
}

fn check_event(place: &str, event: &ExpectedEvent) -> Result<(), String> {
    let place = format!("{place}/{}", event.name);
    check_fields(&place, &event.fields)
}

/// The levels of messages.
const LEVELS: [&str; 2] = ["debug", "info"];

fn check_message(place: &str, message: &ExpectLogMessage) -> Result<(), String> {
    for (key, seen, known) in
        [("level", &message.level, &LEVELS[..]), ("component", &message.component, &COMPONENTS)]
    {
        if !known.contains(&&**seen) {
            let what =
                format!("`{seen}` is not what clients log, which is {}", known.join(" and "));
            return Err(wrong_at(&format!("{place}/{key}"), what));
        }
    }
    check_fields(&format!("{place}/data"), &message.data)
}

fn check_fields(place: &str, fields: &Map<String, Value>) -> Result<(), String> {
    fields.iter().try_for_each(|(key, expected)| {
        matching::check(expected).map_err(|what| wrong_at(&format!("{place}/{key}"), what))
    })
}
