//! Commands that change documents.

use bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use bson::{RawBsonRef, RawDocument, rawdoc};

use super::{Answer, Context, namespace};
use crate::data::{Collection, Filter, Namespace, Rejection};
use crate::refusal::{Refusal, code};
use crate::request::{self, Request, mismatch, truth, whole};
use crate::world::World;

pub(super) fn insert(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    let mut count = 0;
    let errors = write_each(context, "documents", |world, _, document| {
        if !world.store.create(&namespace) {
            return Err(full());
        }
        insert_one(world, &namespace, document).map(|()| count += 1)
    })?;
    Ok(written(rawdoc! { "n": count }, errors))
}

/// Does each write of a batch, and gives the errors; with `ordered` the first one ends it.
pub(super) fn write_each(
    context: &mut Context<'_>,
    key: &str,
    mut write: impl FnMut(&mut World, i32, &RawDocument) -> Result<(), Refusal>,
) -> Result<RawArrayBuf, Refusal> {
    let writes = batch(context, key)?;
    let ordered = ordered(context.request)?;
    let mut errors = RawArrayBuf::new();
    for (index, document) in (0_i32..).zip(writes) {
        let Err(Refusal { code, message, .. }) = write(context.world, index, document) else {
            continue;
        };
        errors.push(rawdoc! { "index": index, "code": code, "errmsg": message });
        if ordered {
            break;
        }
    }
    Ok(errors)
}

pub(super) fn insert_one(
    world: &mut World,
    namespace: &Namespace,
    document: &RawDocument,
) -> Result<(), Refusal> {
    let (size, most) = (document.as_bytes().len(), world.options.limits.document_size);
    if size > most as usize {
        let message =
            format!("object to insert too large. size in bytes: {size}, max size: {most}");
        return Err(Refusal::new(code::OBJECT_TOO_LARGE, message));
    }
    if !world.store.has_room(Collection::cost(document)) {
        return Err(full());
    }
    let World { store, entropy, .. } = world;
    let inserted = store.change(namespace, |collection| collection.insert(document, entropy));
    match inserted {
        None | Some(Ok(())) => Ok(()),
        Some(Err(Rejection::Duplicate(id))) => {
            let message = format!(
                "E11000 duplicate key error collection: {namespace} index: _id_ dup key: {{ _id: \
                 {id} }}"
            );
            Err(Refusal::new(code::DUPLICATE_KEY, message))
        }
        Some(Err(Rejection::Bson(problem))) => Err(Refusal::new(code::INVALID_BSON, problem)),
        Some(Err(Rejection::BadId)) => {
            let message = "The '_id' value cannot be of type array, regex or undefined";
            Err(Refusal::new(code::BAD_VALUE, message))
        }
    }
}

pub(super) fn delete(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    let mut count = 0;
    let errors = write_each(context, "deletes", |world, _, delete| {
        let removed = delete_some(world, &namespace, delete)?;
        count += i32::try_from(removed).unwrap_or(i32::MAX);
        Ok(())
    })?;
    Ok(written(rawdoc! { "n": count }, errors))
}

fn delete_some(
    world: &mut World,
    namespace: &Namespace,
    delete: &RawDocument,
) -> Result<u64, Refusal> {
    let Some(RawBsonRef::Document(filter)) = request::get(delete, "q")? else {
        return Err(mismatch("delete.deletes.q", "object"));
    };
    let only_first = match request::get(delete, "limit")?.and_then(whole) {
        Some(0) => false,
        Some(1) => true,
        Some(_) | None => {
            let message = "The limit field in delete objects must be 0 or 1.";
            return Err(Refusal::new(code::FAILED_TO_PARSE, message));
        }
    };
    let filter = Filter::read(filter)?;
    let removed = world.store.change(namespace, |it| it.remove(&filter, only_first));
    Ok(removed.unwrap_or_default())
}

/// The documents of a write: beside the body, or within it.
pub(super) fn batch<'a>(context: &Context<'a>, key: &str) -> Result<Vec<&'a RawDocument>, Refusal> {
    let request = context.request;
    let beside = request.sequences.iter().find(|(name, _)| name == key);
    let documents: Vec<&RawDocument> = match (beside, request.get(key)?) {
        (Some((_, documents)), _) => documents.iter().map(|document| &**document).collect(),
        (None, Some(RawBsonRef::Array(documents))) => {
            let documents = documents.into_iter().map(|it| it.ok()?.as_document());
            let documents: Option<Vec<_>> = documents.collect();
            documents.ok_or_else(|| mismatch(key, "array of objects"))?
        }
        (None, _) => return Err(mismatch(&format!("{}.{key}", request.name), "array")),
    };
    let most = context.world.options.limits.write_batch as usize;
    if documents.is_empty() || documents.len() > most {
        let got = documents.len();
        let message =
            format!("Write batch sizes must be between 1 and {most}. Got {got} operations.");
        return Err(Refusal::new(code::INVALID_LENGTH, message));
    }
    Ok(documents)
}

/// Whether the first error ends a batch.
pub(super) fn ordered(request: &Request) -> Result<bool, Refusal> {
    Ok(request.get("ordered")?.and_then(truth).unwrap_or(true))
}

/// The reply to a write: that some documents failed is no error of the command.
pub(super) fn written(mut reply: RawDocumentBuf, errors: RawArrayBuf) -> Answer {
    if !errors.is_empty() {
        reply.append(cstr!("writeErrors"), errors);
    }
    Answer::Reply(reply)
}

pub(super) fn full() -> Refusal {
    Refusal::new(code::OUT_OF_DISK_SPACE, "this server stores no more: see `limits.stored_bytes`")
}
