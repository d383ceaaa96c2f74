//! The operations that are commands, and those of cursors and sessions.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use cenote_core::connect::DriverInfo;
use serde_json::{Map, Value};

use super::Outcome;
use crate::conform::lock::lock;
use crate::conform::unified::client::command::{Command, Safety, body};
use crate::conform::unified::client::cursor::Cursor;
use crate::conform::unified::client::session::Session;
use crate::conform::unified::client::{Client, Failure};
use crate::conform::unified::extended_json::{bson, document};
use crate::conform::unified::format::{
    Action, CollectionOptions, DriverInfoOptions, Find, Operation, ReadPreference, RunCommand,
};
use crate::conform::unified::world::{Database, Entity, NamedCollection, World};

/// Carries it out.
///
/// # Errors
///
/// The client's, or that this cannot be done.
pub(super) fn act(world: &World, operation: &Operation) -> Result<Outcome, Failure> {
    match world.entity(&operation.object).map_err(Failure::script)? {
        Entity::Client(client) => {
            let client = client.get().map_err(Failure::script)?;
            on_client(&client, &operation.action)
        }
        Entity::Database(database) => on_database(&database, &operation.action),
        Entity::Collection(collection) => {
            Collection::new(world, collection)?.act(&operation.action)
        }
        Entity::Session(session) => on_session(&session, &operation.action),
        Entity::Cursor(cursor) => on_cursor(&cursor, &operation.action),
        Entity::Thread(_) => Err(cannot("a thread", &operation.action)),
    }
}

fn on_client(client: &Arc<Client>, action: &Action) -> Result<Outcome, Failure> {
    if let Action::Close = action {
        return client.close().map(|()| Outcome::Nothing).map_err(Failure::script);
    }
    if let Action::AppendMetadata { driver_info_options } = action {
        let DriverInfoOptions { name, version, platform } = driver_info_options;
        let driver = DriverInfo::new(name, version.as_deref(), platform.as_deref());
        client.append_metadata(driver.map_err(|error| Failure::script(error.to_string()))?);
        return Ok(Outcome::Nothing);
    }
    let Action::ListDatabases { filter } = action else { return Err(cannot("a client", action)) };
    let mut list = body("listDatabases", 1);
    list.insert("filter", filtered(filter)?);
    value(client.run(&Command::new("admin", list, Safety::Read))?.0)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
fn on_database(database: &Database, action: &Action) -> Result<Outcome, Failure> {
    let client = database.client.get().map_err(Failure::script)?;
    match action {
        Action::RunCommand(RunCommand { command, command_name, timeout_ms }) => {
            let command = filtered(command)?;
            if command.keys().next() != Some(command_name) {
                return Err(Failure::script(format!("the command is no {command_name}")));
            }
            let mut command = Command::new(&database.name, command, Safety::Unknown);
            command.deadline =
                timeout_ms.map(|limit| Instant::now() + Duration::from_millis(limit));
            value(client.run(&command)?.0)
        }
        Action::ListCollections { filter, batch_size } => {
            let mut list = body("listCollections", 1);
            list.insert("filter", filtered(filter)?);
            list.insert("cursor", batch(*batch_size));
            let command = Command::new(&database.name, list, Safety::Read);
            all(Cursor::open(&client, command, None, *batch_size)?)
        }
        other => Err(cannot("a database", other)),
    }
}

/// A collection of a client.
struct Collection<'w> {
    world: &'w World,
    client: Arc<Client>,
    database: String,
    name: String,
    options: Option<CollectionOptions>,
}

impl<'w> Collection<'w> {
    fn new(world: &'w World, named: NamedCollection) -> Result<Self, Failure> {
        let NamedCollection { database, name, options } = named;
        let client = database.client.get().map_err(Failure::script)?;
        Ok(Self { world, client, database: database.name, name, options })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
    fn act(&self, action: &Action) -> Result<Outcome, Failure> {
        match action {
            Action::Find(find) => all(self.find(find)?),
            Action::CreateFindCursor(find) => self.find(find).map(Outcome::Cursor),
            Action::Aggregate { pipeline, batch_size } => {
                let command = self.aggregate(pipeline.clone(), *batch_size)?;
                all(Cursor::open(&self.client, command, None, *batch_size)?)
            }
            Action::CreateChangeStream { pipeline, batch_size } => {
                let mut stages = vec![serde_json::json!({ "$changeStream": {} })];
                stages.extend(pipeline.iter().cloned());
                let command = self.aggregate(stages, *batch_size)?;
                let cursor = Cursor::open(&self.client, command, None, *batch_size)?;
                Ok(Outcome::Cursor(cursor))
            }
            Action::ListIndexes { batch_size } => {
                let mut list = body("listIndexes", self.name.as_str());
                list.insert("cursor", batch(*batch_size));
                let command = self.command(list, Safety::Read);
                all(Cursor::open(&self.client, command, None, *batch_size)?)
            }
            Action::CreateIndex { keys, name } => {
                let mut create = body("createIndexes", self.name.as_str());
                create.insert("indexes", vec![doc! { "name": name, "key": filtered(keys)? }]);
                self.run(create, Safety::Unknown, None)
            }
            Action::InsertOne { document, session } => {
                let insert = self.insert(std::slice::from_ref(document))?;
                self.run(insert, Safety::Write, session.as_deref())?;
                let id = document.get("_id").cloned().unwrap_or_default();
                Ok(Outcome::Value(serde_json::json!({ "insertedId": id })))
            }
            Action::InsertMany { documents } => {
                self.run(self.insert(documents)?, Safety::Write, None)
            }
            Action::UpdateOne { filter, update } => {
                let mut command = body("update", self.name.as_str());
                let update = doc! { "q": filtered(filter)?, "u": filtered(update)? };
                command.insert("updates", vec![update]);
                self.run(command, Safety::Write, None)
            }
            other => Err(cannot("a collection", other)),
        }
    }

    fn find(&self, find: &Find) -> Result<Cursor, Failure> {
        let mut command = body("find", self.name.as_str());
        command.insert("filter", filtered(&find.filter)?);
        if let Some(sort) = &find.sort {
            command.insert("sort", filtered(sort)?);
        }
        if let Some(CollectionOptions { read_preference: ReadPreference { mode } }) = &self.options
        {
            command.insert("$readPreference", doc! { "mode": mode });
        }
        if let Some(size) = find.batch_size {
            command.insert("batchSize", size);
        }
        let session = self.session(find.session.as_deref())?;
        let command = self.command(command, Safety::Read);
        Cursor::open(&self.client, command, session, find.batch_size)
    }

    fn aggregate(&self, pipeline: Vec<Value>, size: Option<i32>) -> Result<Command, Failure> {
        let pipeline = bson(Value::Array(pipeline)).map_err(Failure::script)?;
        let mut aggregate = body("aggregate", self.name.as_str());
        aggregate.insert("pipeline", pipeline);
        aggregate.insert("cursor", batch(size));
        Ok(self.command(aggregate, Safety::Read))
    }

    fn insert(&self, documents: &[Map<String, Value>]) -> Result<Document, Failure> {
        let documents: Result<Vec<_>, _> = documents.iter().map(filtered).collect();
        let mut insert = body("insert", self.name.as_str());
        insert.insert("documents", documents?);
        Ok(insert)
    }

    fn run(
        &self,
        body: Document,
        safety: Safety,
        session: Option<&str>,
    ) -> Result<Outcome, Failure> {
        let command = self.command(body, safety);
        match self.session(session)? {
            Some(session) => value(session.run(&command)?),
            None => value(self.client.run(&command)?.0),
        }
    }

    fn command(&self, body: Document, safety: Safety) -> Command {
        Command::new(&self.database, body, safety)
    }

    fn session(&self, id: Option<&str>) -> Result<Option<Arc<Session>>, Failure> {
        id.map(|id| self.world.session(id)).transpose().map_err(Failure::script)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
fn on_session(session: &Session, action: &Action) -> Result<Outcome, Failure> {
    match action {
        Action::StartTransaction => session.start_transaction(),
        Action::CommitTransaction => session.commit()?,
        Action::AbortTransaction => session.abort(),
        Action::EndSession => session.end(),
        other => return Err(cannot("a session", other)),
    }
    Ok(Outcome::Nothing)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
fn on_cursor(cursor: &Mutex<Cursor>, action: &Action) -> Result<Outcome, Failure> {
    let mut cursor = lock(cursor);
    match action {
        Action::IterateUntilDocumentOrError => match cursor.next()? {
            Some(document) => value(document),
            None => Err(Failure::script("there is no document any more")),
        },
        Action::Close => {
            cursor.close();
            Ok(Outcome::Nothing)
        }
        other => Err(cannot("a cursor", other)),
    }
}

fn all(cursor: Cursor) -> Result<Outcome, Failure> {
    let documents = cursor.drain()?.into_iter().map(Bson::Document).collect();
    Ok(Outcome::Value(Bson::Array(documents).into_relaxed_extjson()))
}

fn value(reply: Document) -> Result<Outcome, Failure> {
    Ok(Outcome::Value(Bson::Document(reply).into_relaxed_extjson()))
}

fn filtered(map: &Map<String, Value>) -> Result<Document, Failure> {
    document(map).map_err(Failure::script)
}

fn batch(size: Option<i32>) -> Document {
    size.map(|size| doc! { "batchSize": size }).unwrap_or_default()
}

fn cannot(object: &str, action: &Action) -> Failure {
    Failure::script(format!("{object} cannot do this: {action:?}"))
}
