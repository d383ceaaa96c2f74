//! Databases and collections.

use bson::rawdoc;

use super::cursors::{first_batch_of_cursor, give};
use super::read::filter;
use super::write::full;
use super::{Answer, Context, namespace};
use crate::data::{Namespace, Source};
use crate::refusal::{Refusal, code};
use crate::replies;

/// Those that every server has.
const DATABASES: [&str; 3] = ["admin", "config", "local"];

pub(super) fn list_databases(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let filter = filter(context.request, "filter")?;
    let name_only = context.request.boolean("nameOnly")? == Some(true);
    let mut sizes: std::collections::BTreeMap<&str, usize> =
        DATABASES.into_iter().map(|name| (name, 0)).collect();
    for (namespace, collection) in context.world.store.all() {
        *sizes.entry(namespace.database.as_str()).or_default() += collection.bytes();
    }
    let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let mut databases = bson::raw::RawArrayBuf::new();
    for (name, bytes) in &sizes {
        let whole = rawdoc! { "name": *name, "sizeOnDisk": size(*bytes), "empty": *bytes == 0 };
        if filter.matches(&whole) {
            databases.push(if name_only {
                rawdoc! { "name": *name }
            } else {
                whole
            });
        }
    }
    let mut reply = rawdoc! { "databases": databases };
    if !name_only {
        let total = sizes.values().sum();
        reply.append(bson::raw::cstr!("totalSize"), size(total));
        reply.append(bson::raw::cstr!("totalSizeMb"), size(total >> 20));
    }
    Ok(Answer::Reply(reply))
}

pub(super) fn list_collections(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let filter = filter(request, "filter")?;
    let name_only = request.boolean("nameOnly")? == Some(true);
    let database = request.database.clone().unwrap_or_default();
    let described = context.world.store.of_database(&database).map(|(namespace, _)| {
        let name = namespace.collection.as_str();
        let mut document = rawdoc! { "name": name, "type": "collection" };
        if !name_only {
            document.append(bson::raw::cstr!("options"), rawdoc! {});
            document.append(bson::raw::cstr!("info"), rawdoc! { "readOnly": false });
            let index = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
            document.append(bson::raw::cstr!("idIndex"), index);
        }
        document
    });
    let made = described.filter(|document| filter.matches(document)).collect();
    let size = first_batch_of_cursor(request)?;
    let collection = "$cmd.listCollections".to_owned();
    give(context, Namespace { database, collection }, Source::Made(made), size, false)
}

pub(super) fn create(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    if context.world.store.get(&namespace).is_some() {
        let message = format!("Collection {namespace} already exists.");
        return Err(Refusal::new(code::NAMESPACE_EXISTS, message));
    }
    if !context.world.store.create(&namespace) {
        return Err(full());
    }
    Ok(Answer::Reply(replies::done()))
}

/// There being none is no error, as since MongoDB 7.0.
pub(super) fn drop_collection(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    if !context.world.store.drop(&namespace) {
        return Ok(Answer::Reply(replies::done()));
    }
    Ok(Answer::Reply(rawdoc! { "nIndexesWas": 1, "ns": namespace.to_string() }))
}

pub(super) fn drop_database(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let database = context.request.database.clone().unwrap_or_default();
    context.world.store.drop_database(&database);
    Ok(Answer::Reply(rawdoc! { "dropped": database }))
}
