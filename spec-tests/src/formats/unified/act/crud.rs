//! The operations that are commands, and those of cursors and sessions.

use std::slice;
use std::sync::{Arc, Mutex};

use bson::{Bson, Document, doc};
use cenote_core::client::Selector;
use cenote_core::connect::DriverInfo;
use serde_json::{Map, Value};

use super::Outcome;
use crate::formats::lock::lock;
use crate::formats::read_preference::Preference;
use crate::formats::unified::client::command::{Command, Safety, body};
use crate::formats::unified::client::cursor::Cursor;
use crate::formats::unified::client::session::Session;
use crate::formats::unified::client::{Client, Failure};
use crate::formats::unified::extended_json::{bson, document};
use crate::formats::unified::format::{
    Action, CollectionOptions, DriverInfoOptions, Find, Limits, Operation, WriteModel, WriteRequest,
};
use crate::formats::unified::world::{Database, Entity, NamedCollection, World};

/// Carries it out.
///
/// # Errors
///
/// The client's, or that this cannot be done.
pub(super) fn act(world: &World, operation: &Operation) -> Result<Outcome, Failure> {
    match world.entity(&operation.object).map_err(Failure::script)? {
        Entity::Client(client) => {
            let client = client.get().map_err(Failure::script)?;
            on_client(&client, operation)
        }
        Entity::Database(database) => on_database(&database, operation),
        Entity::Collection(collection) => {
            Collection::new(world, collection, operation.limits)?.act(&operation.action)
        }
        Entity::Session(session) => on_session(&session, &operation.action),
        Entity::Cursor(cursor) => on_cursor(&cursor, &operation.action),
        Entity::Topology(_) => Err(cannot("a topology description", &operation.action)),
        Entity::Bucket => Err(cannot("a bucket", &operation.action)),
        Entity::Thread(_) => Err(cannot("a thread", &operation.action)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
fn on_client(client: &Arc<Client>, operation: &Operation) -> Result<Outcome, Failure> {
    let mut list = body("listDatabases", 1);
    match &operation.action {
        Action::Close => {
            return client.close().map(|()| Outcome::Nothing).map_err(Failure::script);
        }
        Action::AppendMetadata { driver_info_options } => {
            let DriverInfoOptions { name, version, platform } = driver_info_options;
            let driver = DriverInfo::new(name, version.as_deref(), platform.as_deref());
            client.append_metadata(driver.map_err(|error| Failure::script(error.to_string()))?);
            return Ok(Outcome::Nothing);
        }
        Action::ClientBulkWrite { models } => {
            let bulk = Command::new("admin", bulk_write(models)?, Safety::Write);
            return value(client.run(&bulk)?.0);
        }
        Action::ListDatabases { filter } => list.insert("filter", filtered(filter)?),
        Action::ListDatabaseNames => list.insert("nameOnly", true),
        other => return Err(cannot("a client", other)),
    };
    let mut list = Command::new("admin", list, Safety::Read);
    list.limits = operation.limits;
    value(client.run(&list)?.0)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
fn on_database(database: &Database, operation: &Operation) -> Result<Outcome, Failure> {
    let client = database.client.get().map_err(Failure::script)?;
    let limits = operation.limits.or_timeout(database.timeout);
    let command = |body, safety| {
        let mut command = Command::new(&database.name, body, safety);
        command.limits = limits;
        command
    };
    match &operation.action {
        Action::RunCommand { command: fields, command_name, read_preference } => {
            // The order of the keys is not that of the file.
            let mut rest = filtered(fields)?;
            let no_name = || Failure::script(format!("the command is no {command_name}"));
            let mut body = body(command_name, rest.remove(command_name).ok_or_else(no_name)?);
            body.extend(rest);
            let mut command = command(body, Safety::Unknown);
            prefer(&mut command, read_preference.as_ref())?;
            value(client.run(&command)?.0)
        }
        Action::ListCollections { filter, batch_size } => {
            let list = command(list_collections(filter, *batch_size)?, Safety::Read);
            all(Cursor::open(&client, list, None, *batch_size)?)
        }
        Action::ListCollectionNames { filter } => {
            let mut list = list_collections(filter, None)?;
            list.insert("nameOnly", true);
            all(Cursor::open(&client, command(list, Safety::Read), None, None)?)
        }
        Action::Aggregate { pipeline, batch_size } => {
            let aggregate = aggregate(1, pipeline, *batch_size)?;
            all(Cursor::open(&client, command(aggregate, Safety::Read), None, *batch_size)?)
        }
        other => Err(cannot("a database", other)),
    }
}

fn list_collections(
    filter: &Map<String, Value>,
    batch_size: Option<i32>,
) -> Result<Document, Failure> {
    Ok(doc! { "listCollections": 1, "filter": filtered(filter)?, "cursor": batch(batch_size) })
}

fn aggregate(
    of: impl Into<Bson>,
    pipeline: &[Value],
    batch_size: Option<i32>,
) -> Result<Document, Failure> {
    let pipeline = bson(Value::Array(pipeline.to_vec())).map_err(Failure::script)?;
    let mut aggregate = body("aggregate", of);
    aggregate.insert("pipeline", pipeline);
    aggregate.insert("cursor", batch(batch_size));
    Ok(aggregate)
}

/// A collection of a client.
struct Collection<'w> {
    world: &'w World,
    client: Arc<Client>,
    database: String,
    name: String,
    read_preference: Option<Preference>,
    limits: Limits,
}

impl<'w> Collection<'w> {
    fn new(world: &'w World, named: NamedCollection, limits: Limits) -> Result<Self, Failure> {
        let NamedCollection { database, name, options } = named;
        let Database { client, name: database, timeout } = database;
        let CollectionOptions { read_preference, timeout_ms } = options;
        let client = client.get().map_err(Failure::script)?;
        let limits = limits.or_timeout(timeout_ms.or(timeout));
        Ok(Self { world, client, database, name, read_preference, limits })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever it cannot do is refused")]
    fn act(&self, action: &Action) -> Result<Outcome, Failure> {
        match action {
            Action::Find(find) => all(self.find(find)?),
            Action::CreateFindCursor(find) => self.find(find).map(Outcome::Cursor),
            Action::FindOne { filter } => {
                let find = doc! { "find": &self.name, "filter": filtered(filter)?, "limit": 1 };
                self.list(find, None)
            }
            Action::Aggregate { pipeline, batch_size } => {
                self.list(aggregate(self.name.as_str(), pipeline, *batch_size)?, *batch_size)
            }
            Action::ListIndexes { batch_size } => {
                let list = doc! { "listIndexes": &self.name, "cursor": batch(*batch_size) };
                self.list(list, *batch_size)
            }
            Action::ListIndexNames => self.list(body("listIndexes", self.name.as_str()), None),
            Action::CreateIndex { keys, name } => {
                let indexes = vec![doc! { "name": name, "key": filtered(keys)? }];
                self.other(doc! { "createIndexes": &self.name, "indexes": indexes })
            }
            Action::DropIndex { name } => {
                self.other(doc! { "dropIndexes": &self.name, "index": name })
            }
            Action::DropIndexes => self.other(doc! { "dropIndexes": &self.name, "index": "*" }),
            Action::Count { filter } => {
                self.read(doc! { "count": &self.name, "query": filtered(filter)? })
            }
            Action::EstimatedDocumentCount => self.read(doc! { "count": &self.name }),
            Action::CountDocuments { filter, session } => {
                let count = doc! { "_id": 1, "n": { "$sum": 1 } };
                let stages = vec![doc! { "$match": filtered(filter)? }, doc! { "$group": count }];
                let cursor = doc! {};
                let count = doc! { "aggregate": &self.name, "pipeline": stages, "cursor": cursor };
                self.run(count, Safety::Read, session.as_deref())
            }
            Action::Distinct { field_name, filter } => {
                let query = filtered(filter)?;
                self.read(doc! { "distinct": &self.name, "key": field_name, "query": query })
            }
            Action::InsertOne { document, session } => {
                let insert = self.insert(slice::from_ref(document))?;
                self.run(insert, Safety::Write, session.as_deref())?;
                let id = document.get("_id").cloned().unwrap_or_default();
                Ok(Outcome::Value(serde_json::json!({ "insertedId": id })))
            }
            Action::InsertMany { documents } => {
                self.run(self.insert(documents)?, Safety::Write, None)
            }
            Action::BulkWrite { requests } => self.bulk_write(requests),
            Action::UpdateOne { filter, update } => self.update(filter, update, false),
            Action::UpdateMany { filter, update } => self.update(filter, update, true),
            Action::ReplaceOne { filter, replacement } => self.update(filter, replacement, false),
            Action::DeleteOne { filter } => self.delete(filter, 1),
            Action::DeleteMany { filter } => self.delete(filter, 0),
            Action::FindOneAndDelete { filter } => self.modify(filter, "remove", true),
            Action::FindOneAndReplace { filter, replacement: update }
            | Action::FindOneAndUpdate { filter, update } => {
                self.modify(filter, "update", filtered(update)?)
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
        if let Some(size) = find.batch_size {
            command.insert("batchSize", size);
        }
        let session = self.session(find.session.as_deref())?;
        let mut command = self.command(command, Safety::Read);
        prefer(&mut command, self.read_preference.as_ref())?;
        Cursor::open(&self.client, command, session, find.batch_size)
    }

    /// A command for each request, all within the time of one operation.
    fn bulk_write(&self, requests: &[WriteRequest]) -> Result<Outcome, Failure> {
        let operation_id = Some(self.client.next_operation());
        let deadline = self.client.deadline(self.limits);
        for request in requests {
            let body = match request {
                WriteRequest::InsertOne { document } => self.insert(slice::from_ref(document))?,
                WriteRequest::ReplaceOne { filter, replacement } => {
                    let update = doc! { "q": filtered(filter)?, "u": filtered(replacement)? };
                    doc! { "update": &self.name, "updates": [update] }
                }
            };
            let mut command = self.command(body, Safety::Write);
            command.operation_id = operation_id;
            command.limits.deadline = deadline;
            self.client.run(&command)?;
        }
        Ok(Outcome::Nothing)
    }

    /// The documents of a command that opens a cursor.
    fn list(&self, body: Document, batch_size: Option<i32>) -> Result<Outcome, Failure> {
        let command = self.command(body, Safety::Read);
        all(Cursor::open(&self.client, command, None, batch_size)?)
    }

    fn read(&self, body: Document) -> Result<Outcome, Failure> {
        self.run(body, Safety::Read, None)
    }

    fn other(&self, body: Document) -> Result<Outcome, Failure> {
        self.run(body, Safety::Unknown, None)
    }

    fn update(
        &self,
        filter: &Map<String, Value>,
        update: &Map<String, Value>,
        all: bool,
    ) -> Result<Outcome, Failure> {
        let mut update = doc! { "q": filtered(filter)?, "u": filtered(update)? };
        if all {
            update.insert("multi", true);
        }
        self.write(doc! { "update": &self.name, "updates": [update] }, all)
    }

    fn delete(&self, filter: &Map<String, Value>, limit: i32) -> Result<Outcome, Failure> {
        let delete = doc! { "q": filtered(filter)?, "limit": limit };
        self.write(doc! { "delete": &self.name, "deletes": [delete] }, limit == 0)
    }

    fn modify(
        &self,
        filter: &Map<String, Value>,
        how: &str,
        value: impl Into<Bson>,
    ) -> Result<Outcome, Failure> {
        let query = filtered(filter)?;
        self.write(doc! { "findAndModify": &self.name, "query": query, how: value }, false)
    }

    /// A write of several documents is not safe to send twice.
    fn write(&self, body: Document, several: bool) -> Result<Outcome, Failure> {
        self.run(body, if several { Safety::Unknown } else { Safety::Write }, None)
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
        let mut command = Command::new(&self.database, body, safety);
        command.limits = self.limits;
        command
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

/// Inserts into any collections, by one command.
fn bulk_write(models: &[WriteModel]) -> Result<Document, Failure> {
    let (mut operations, mut namespaces) = (Vec::new(), Vec::new());
    for WriteModel::InsertOne { namespace, document } in models {
        let known = namespaces.iter().position(|known| known == namespace);
        let index = known.unwrap_or_else(|| {
            namespaces.push(namespace.clone());
            namespaces.len() - 1
        });
        let index = i32::try_from(index).map_err(|error| Failure::script(error.to_string()))?;
        operations.push(doc! { "insert": index, "document": filtered(document)? });
    }
    let namespaces: Vec<_> = namespaces.iter().map(|name| doc! { "ns": name }).collect();
    Ok(doc! { "bulkWrite": 1, "ops": operations, "nsInfo": namespaces })
}

/// Sends a command to a server that the read preference allows, which is told of it.
fn prefer(command: &mut Command, preference: Option<&Preference>) -> Result<(), Failure> {
    if let Some(preference) = preference {
        let document = preference.document().map_err(Failure::script)?;
        command.body.insert("$readPreference", document);
        let preference = preference.read().map_err(Failure::script)?;
        command.selector = Selector::ReadPreference(preference);
    }
    Ok(())
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
