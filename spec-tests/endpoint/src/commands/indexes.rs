//! Indexes, as far as clients ask for them: they are told, and make nothing faster.

use bson::{RawBsonRef, rawdoc};

use super::cursors::{first_batch_of_cursor, give};
use super::write::{batch, full};
use super::{Answer, Context, namespace};
use crate::data::{Collection, Source};
use crate::refusal::{Refusal, code};
use crate::request::{self, mismatch};

pub(super) fn create_indexes(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    let mut indexes = Vec::new();
    for index in batch(context, "indexes")? {
        let name = request::get(index, "name")?.and_then(RawBsonRef::as_str);
        let key = request::get(index, "key")?.and_then(RawBsonRef::as_document);
        let (Some(name), Some(key)) = (name, key) else {
            return Err(mismatch("createIndexes.indexes", "array of objects with name and key"));
        };
        indexes.push((name, key));
    }
    let is_new = context.world.store.get(&namespace).is_none();
    let bytes = indexes.iter().map(|(_, key)| Collection::cost(key)).sum();
    if !context.world.store.has_room(bytes) || !context.world.store.create(&namespace) {
        return Err(full());
    }
    let added = context.world.store.change(&namespace, |collection| {
        let before = count(collection);
        for (name, key) in indexes {
            collection.add_index(name, key);
        }
        (before, count(collection))
    });
    let (before, after) = added.unwrap_or_default();
    Ok(Answer::Reply(rawdoc! {
        "numIndexesBefore": before, "numIndexesAfter": after,
        "createdCollectionAutomatically": is_new,
    }))
}

/// One by its name, or `*` for all but that of `_id`.
pub(super) fn drop_indexes(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    let Some(name) = context.request.text("index")? else {
        return Err(mismatch("dropIndexes.index", "string"));
    };
    let dropped = context.world.store.change(&namespace, |collection| {
        let before = count(collection);
        (collection.drop_indexes(name) || name == "*").then_some(before)
    });
    match dropped {
        None => {
            let message = format!("ns not found {namespace}");
            Err(Refusal::new(code::NAMESPACE_NOT_FOUND, message))
        }
        Some(None) => {
            let message = format!("index not found with name [{name}]");
            Err(Refusal::new(code::INDEX_NOT_FOUND, message))
        }
        Some(Some(before)) => Ok(Answer::Reply(rawdoc! { "nIndexesWas": before })),
    }
}

pub(super) fn list_indexes(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    let Some(collection) = context.world.store.get(&namespace) else {
        let message = format!("ns does not exist: {namespace}");
        return Err(Refusal::new(code::NAMESPACE_NOT_FOUND, message));
    };
    let first = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let others = collection.indexes();
    let others = others.map(|(name, key)| rawdoc! { "v": 2, "key": key.to_owned(), "name": name });
    let made = std::iter::once(first).chain(others).collect();
    let size = first_batch_of_cursor(context.request)?;
    give(context, namespace, Source::Made(made), size, false)
}

/// With the one of `_id`.
fn count(collection: &Collection) -> i32 {
    i32::try_from(1 + collection.indexes().count()).unwrap_or(i32::MAX)
}
