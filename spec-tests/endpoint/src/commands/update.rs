//! The command `update`.

use bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use bson::{RawBson, RawBsonRef, RawDocument, rawdoc};

use super::read::{filter, refuse_unless_empty};
use super::write::{full, insert_one, write_each, written};
use super::{Answer, Context, namespace};
use crate::data::{Collection, Filter, Namespace, Update};
use crate::refusal::{Refusal, code};
use crate::request::{self, first_key, mismatch, truth};
use crate::world::World;

pub(super) fn update(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespace = namespace(context.request)?;
    let (mut total, mut upserted) = (Outcome::default(), RawArrayBuf::new());
    let errors = write_each(context, "updates", |world, index, update| {
        let Outcome { matched, modified, inserted } = update_some(world, &namespace, update)?;
        total.matched += matched;
        total.modified += modified;
        if let Some(id) = inserted {
            upserted.push(rawdoc! { "index": index, "_id": id });
        }
        Ok(())
    })?;
    let mut reply = rawdoc! { "n": total.matched, "nModified": total.modified };
    if !upserted.is_empty() {
        reply.append(cstr!("upserted"), upserted);
    }
    Ok(written(reply, errors))
}

/// Changes or removes the first document that fits, and returns it as it was.
pub(super) fn find_and_modify(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let namespace = namespace(request)?;
    refuse_unless_empty(request, &["sort", "fields"])?;
    for key in ["new", "upsert"] {
        if request.boolean(key)? == Some(true) {
            return Err(Refusal::cannot(&format!("'{key}' in findAndModify")));
        }
    }
    let query = filter(request, "query")?;
    let remove = request.boolean("remove")? == Some(true);
    let update = match request.get("update")? {
        Some(update) if !remove => Some(Update::read(update)?),
        None if remove => None,
        Some(_) | None => {
            let message = "Either an update or remove=true must be specified";
            return Err(Refusal::new(code::FAILED_TO_PARSE, message));
        }
    };
    let collection = context.world.store.get(&namespace);
    let first = collection.and_then(|it| it.scan(&query, 0).next());
    let Some(old) = first.map(|(_, document)| document.clone()) else {
        let nothing = rawdoc! { "n": 0, "updatedExisting": false };
        let value = RawBson::Null;
        return Ok(Answer::Reply(rawdoc! { "lastErrorObject": nothing, "value": value }));
    };
    let mut last = rawdoc! { "n": 1 };
    match update {
        Some(update) => {
            change_all(context.world, &namespace, &query, &update, false)?;
            last.append(cstr!("updatedExisting"), true);
        }
        None => {
            context.world.store.change(&namespace, |it| it.remove(&query, true));
        }
    }
    Ok(Answer::Reply(rawdoc! { "lastErrorObject": last, "value": old }))
}

#[derive(Default)]
struct Outcome {
    matched: i32,
    modified: i32,
    /// The `_id` of a document that was inserted because none fitted.
    inserted: Option<RawBson>,
}

fn update_some(
    world: &mut World,
    namespace: &Namespace,
    one: &RawDocument,
) -> Result<Outcome, Refusal> {
    let (Some(RawBsonRef::Document(query)), Some(change)) =
        (request::get(one, "q")?, request::get(one, "u")?)
    else {
        return Err(mismatch("update.updates", "array of objects with q and u"));
    };
    let flag = |key| request::get(one, key).map(|it| it.and_then(truth).unwrap_or_default());
    let (multi, upsert) = (flag("multi")?, flag("upsert")?);
    let (filter, update) = (Filter::read(query)?, Update::read(change)?);
    if multi && matches!(update, Update::Replace(_)) {
        let message = "multi update is not supported for replacement-style update";
        return Err(Refusal::new(code::FAILED_TO_PARSE, message));
    }
    let outcome = change_all(world, namespace, &filter, &update, multi)?;
    if outcome.matched > 0 || !upsert {
        return Ok(outcome);
    }
    let mut new = update.apply(&equalities(query)?)?;
    if request::get(&new, "_id")?.is_none() {
        let mut with_id = rawdoc! { "_id": world.entropy.object_id() };
        new.iter().flatten().for_each(|(key, value)| with_id.append(key, value));
        new = with_id;
    }
    if !world.store.create(namespace) {
        return Err(full());
    }
    insert_one(world, namespace, &new)?;
    let inserted = request::get(&new, "_id")?.map(RawBson::from);
    Ok(Outcome { matched: 1, modified: 0, inserted })
}

/// Changes what fits, all or only the first. A document that cannot be changed ends it.
fn change_all(
    world: &mut World,
    namespace: &Namespace,
    filter: &Filter,
    update: &Update,
    multi: bool,
) -> Result<Outcome, Refusal> {
    let mut outcome = Outcome::default();
    let most = if multi { usize::MAX } else { 1 };
    let found = |collection: &Collection| -> Vec<u64> {
        collection.scan(filter, 0).map(|(at, _)| at).take(most).collect()
    };
    for at in world.store.get(namespace).map(found).unwrap_or_default() {
        let Some(old) = world.store.get(namespace).and_then(|it| it.at(at)) else { continue };
        let new = update.apply(old)?;
        outcome.matched += 1;
        if new == *old {
            continue;
        }
        check_room(world, old, &new)?;
        outcome.modified += 1;
        world.store.change(namespace, |collection| collection.replace(at, new));
    }
    Ok(outcome)
}

fn check_room(world: &World, old: &RawDocument, new: &RawDocument) -> Result<(), Refusal> {
    let (size, most) = (new.as_bytes().len(), world.options.limits.document_size as usize);
    if size > most {
        let message =
            format!("the updated document has {size} bytes, but at most {most} are taken");
        return Err(Refusal::new(code::OBJECT_TOO_LARGE, message));
    }
    let more = Collection::cost(new).saturating_sub(Collection::cost(old));
    if world.store.has_room(more) { Ok(()) } else { Err(full()) }
}

/// What a filter says of a document that is not there yet.
fn equalities(query: &RawDocument) -> Result<RawDocumentBuf, Refusal> {
    let mut document = RawDocumentBuf::new();
    for element in query {
        let (key, value) = element?;
        let tests = value.as_document().is_some_and(|it| first_key(it).starts_with('$'));
        if !tests && !key.as_str().starts_with('$') {
            document.append(key, value);
        }
    }
    Ok(document)
}
