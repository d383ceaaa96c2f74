//! Results in batches.

use bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use bson::{RawBsonRef, rawdoc};

use super::read::count;
use super::{Answer, Context};
use crate::data::{Cursor, Namespace, Source};
use crate::refusal::{Refusal, code};
use crate::request::{self, Request, mismatch, whole};

/// Documents of a first batch, if the client says nothing.
const FIRST_BATCH: u64 = 101;

pub(super) fn first_batch(size: Option<u64>) -> usize {
    usize::try_from(size.unwrap_or(FIRST_BATCH)).unwrap_or(usize::MAX)
}

/// The first batch as `cursor: { batchSize }` has it.
pub(super) fn first_batch_of_cursor(request: &Request) -> Result<usize, Refusal> {
    let options = request.document("cursor")?;
    let size = options.map(|options| request::get(options, "batchSize")).transpose()?.flatten();
    Ok(first_batch(size.and_then(whole).and_then(|size| u64::try_from(size).ok())))
}

/// The first batch of a result, and a cursor for the rest, if there is one and it is wanted.
pub(super) fn give(
    context: &mut Context<'_>,
    namespace: Namespace,
    source: Source,
    size: usize,
    single: bool,
) -> Result<Answer, Refusal> {
    let name = namespace.to_string();
    let mut cursor = Cursor { namespace, source, service: context.session.service };
    let batch = cursor.batch(&context.world.store, Some(size));
    let id = if batch.is_last || single {
        0
    } else {
        let opened = context.world.cursors.open(cursor, &mut context.world.entropy);
        opened.ok_or_else(|| Refusal::new(code::OPERATION_FAILED, "too many cursors are open"))?
    };
    Ok(reply(cstr!("firstBatch"), batch.documents, id, &name))
}

pub(super) fn get_more(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let id = request.first().and_then(whole).ok_or_else(|| mismatch("getMore.getMore", "long"))?;
    let Some(collection) = request.text("collection")? else {
        return Err(mismatch("getMore.collection", "string"));
    };
    // 0 is as none.
    let size = count(request, "batchSize")?.filter(|size| *size > 0);
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let service = context.session.service;
    let Some(mut cursor) = context.world.cursors.take(id, service) else {
        let message = format!("cursor id {id} not found");
        return Err(Refusal::new(code::CURSOR_NOT_FOUND, message));
    };
    let name = cursor.namespace.to_string();
    let database = request.database.as_deref().unwrap_or_default();
    if name != format!("{database}.{collection}") {
        context.world.cursors.put_back(id, cursor);
        let message = format!(
            "Requested getMore on namespace '{database}.{collection}', but cursor belongs to a \
             different namespace {name}"
        );
        return Err(Refusal::new(code::UNAUTHORIZED, message));
    }
    let batch = cursor.batch(&context.world.store, size);
    let id = if batch.is_last {
        0
    } else {
        context.world.cursors.put_back(id, cursor);
        id
    };
    Ok(reply(cstr!("nextBatch"), batch.documents, id, &name))
}

pub(super) fn kill_cursors(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let Some(RawBsonRef::Array(ids)) = context.request.get("cursors")? else {
        return Err(mismatch("killCursors.cursors", "array"));
    };
    let (mut killed, mut not_found) = (RawArrayBuf::new(), RawArrayBuf::new());
    for id in ids {
        let id = id.ok().and_then(whole);
        let id = id.ok_or_else(|| mismatch("killCursors.cursors", "array of longs"))?;
        match context.world.cursors.take(id, context.session.service) {
            Some(_) => killed.push(id),
            None => not_found.push(id),
        }
    }
    Ok(Answer::Reply(rawdoc! {
        "cursorsKilled": killed,
        "cursorsNotFound": not_found,
        "cursorsAlive": [],
        "cursorsUnknown": [],
    }))
}

fn reply(key: &bson::raw::CStr, documents: RawArrayBuf, id: i64, name: &str) -> Answer {
    let mut cursor = RawDocumentBuf::new();
    cursor.append(key, documents);
    cursor.append(cstr!("id"), id);
    cursor.append(cstr!("ns"), name);
    Answer::Reply(rawdoc! { "cursor": cursor })
}
