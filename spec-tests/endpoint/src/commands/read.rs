//! Commands that read documents.

use std::collections::{BTreeMap, VecDeque};

use bson::raw::{RawArray, RawDocumentBuf};
use bson::{RawBsonRef, RawDocument, rawdoc};

use super::cursors::{first_batch, first_batch_of_cursor, give};
use super::sort::sort;
use super::{Answer, Context, namespace};
use crate::data::{self, Filter, Namespace, Source};
use crate::refusal::{Refusal, code};
use crate::request::{self, Request, first_key, mismatch, whole};

pub(super) fn find(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let namespace = namespace(request)?;
    refuse_unless_empty(request, &["projection"])?;
    if request.boolean("tailable")? == Some(true) {
        let message = "error processing query: tailable cursor requested on non capped collection";
        return Err(Refusal::new(code::BAD_VALUE, message));
    }
    let limit = count(request, "limit")?.filter(|limit| *limit > 0);
    let (filter, skip) = (filter(request, "filter")?, count(request, "skip")?.unwrap_or_default());
    let source = match request.document("sort")?.filter(|keys| !keys.is_empty()) {
        None => Source::Scan { filter, from: 0, skip, left: limit },
        Some(keys) => {
            let collection = context.world.store.get(&namespace).into_iter();
            let found = collection.flat_map(|collection| collection.scan(&filter, 0));
            let sorted = sort(found.map(|(_, document)| document.clone()).collect(), keys)?;
            let (skip, left) = (size(skip), limit.map_or(usize::MAX, size));
            Source::Made(sorted.into_iter().skip(skip).take(left).collect())
        }
    };
    let single = request.boolean("singleBatch")? == Some(true);
    give(context, namespace, source, first_batch(count(request, "batchSize")?), single)
}

pub(super) fn count_documents(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let namespace = namespace(request)?;
    let filter = filter(request, "query")?;
    let limit = count(request, "limit")?.filter(|limit| *limit > 0).unwrap_or(u64::MAX);
    let skip = count(request, "skip")?.unwrap_or_default();
    let found = count_in(context, &namespace, &filter, skip, limit);
    Ok(Answer::Reply(rawdoc! { "n": int(found) }))
}

/// The different values of a field; not of one below it, nor of the elements of an array.
pub(super) fn distinct(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let namespace = namespace(request)?;
    let filter = filter(request, "query")?;
    let Some(key) = request.text("key")? else { return Err(mismatch("distinct.key", "string")) };
    if key.contains('.') {
        return Err(Refusal::cannot(&format!("'distinct' of '{key}', which is a path")));
    }
    let collection = context.world.store.get(&namespace).into_iter();
    let found = collection.flat_map(|collection| collection.scan(&filter, 0));
    let mut values = BTreeMap::new();
    for (_, document) in found {
        if let Some(value) = request::get(document, key)? {
            values.entry(data::key(value)).or_insert(value);
        }
    }
    let values: bson::raw::RawArrayBuf = values.into_values().collect();
    Ok(Answer::Reply(rawdoc! { "values": values }))
}

/// This server keeps no list of sessions.
fn list_local_sessions(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let database = context.request.database.clone().unwrap_or_default();
    let namespace = Namespace { database, collection: "$cmd.aggregate".to_owned() };
    give(context, namespace, Source::Made(VecDeque::new()), 0, true)
}

/// What drivers need to count, and a little more: `$match`, `$skip`, `$limit` in this order, and
/// then `$group` into one group that is counted, or `$count`.
pub(super) fn aggregate(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let Some(RawBsonRef::Array(pipeline)) = request.get("pipeline")? else {
        return Err(mismatch("aggregate.pipeline", "array"));
    };
    let first = pipeline.into_iter().next().and_then(Result::ok);
    let first = first.and_then(RawBsonRef::as_document).map(first_key);
    if request.first().and_then(whole) == Some(1) && first == Some("$listLocalSessions") {
        return list_local_sessions(context);
    }
    let namespace = namespace(request)?;
    if request.document("cursor")?.is_none() {
        let message = "The 'cursor' option is required, except for aggregate with the explain \
                       argument";
        return Err(Refusal::new(code::FAILED_TO_PARSE, message));
    }
    let size = first_batch_of_cursor(request)?;
    let plan = Plan::read(pipeline)?;
    let source = match plan.counted {
        None => Source::Scan { filter: plan.filter, from: 0, skip: plan.skip, left: plan.limit },
        Some(counted) => {
            let limit = plan.limit.unwrap_or(u64::MAX);
            let found = count_in(context, &namespace, &plan.filter, plan.skip, limit);
            // No group without a document.
            let made = (found > 0).then(|| counted.document(found));
            Source::Made(made.into_iter().collect())
        }
    };
    give(context, namespace, source, size, false)
}

fn count_in(
    context: &Context<'_>,
    namespace: &Namespace,
    filter: &Filter,
    skip: u64,
    limit: u64,
) -> u64 {
    let collection = context.world.store.get(namespace);
    let found = collection.map_or(0, |collection| collection.scan(filter, 0).count() as u64);
    found.saturating_sub(skip).min(limit)
}

/// A pipeline that this server can do.
#[derive(Default)]
struct Plan {
    filter: Filter,
    skip: u64,
    limit: Option<u64>,
    counted: Option<Counted>,
}

/// One document with a count in it.
struct Counted {
    /// The constant that all are grouped by, if they are.
    group: Option<RawDocumentBuf>,
    field: String,
}

impl Plan {
    fn read(pipeline: &RawArray) -> Result<Self, Refusal> {
        let mut plan = Self::default();
        for stage in pipeline {
            let stage = stage.ok().and_then(RawBsonRef::as_document);
            let stage = stage.ok_or_else(|| mismatch("aggregate.pipeline", "array of objects"))?;
            plan.add(stage)?;
        }
        Ok(plan)
    }

    fn add(&mut self, stage: &RawDocument) -> Result<(), Refusal> {
        let name = first_key(stage);
        let value = request::get(stage, name)?;
        let value = value.ok_or_else(|| mismatch("aggregate.pipeline", "array of stages"))?;
        let cut = self.skip > 0 || self.limit.is_some();
        let number = whole(value).and_then(|number| u64::try_from(number).ok());
        match (name, value.as_document(), number) {
            ("$match", Some(filter), _) if !cut && self.counted.is_none() => {
                self.filter = std::mem::take(&mut self.filter).and(Filter::read(filter)?);
            }
            ("$skip", _, Some(skip)) if !cut && self.counted.is_none() => self.skip = skip,
            ("$limit", _, Some(limit)) if limit > 0 && self.counted.is_none() => {
                self.limit = Some(self.limit.map_or(limit, |before| before.min(limit)));
            }
            ("$group", Some(group), _) if self.counted.is_none() => {
                self.counted = Some(Counted::of_group(group)?);
            }
            ("$count", _, _) if self.counted.is_none() && value.as_str().is_some() => {
                let field = value.as_str().unwrap_or_default().to_owned();
                self.counted = Some(Counted { group: None, field });
            }
            _ => {
                let others = "match, skip, limit and count, in this order";
                return Err(Refusal::cannot(&format!("'{name}' here, but {others}")));
            }
        }
        Ok(())
    }
}

impl Counted {
    /// `{ _id: constant, field: { $sum: 1 } }`.
    fn of_group(group: &RawDocument) -> Result<Self, Refusal> {
        let cannot = || Refusal::cannot("more in '$group' than { _id: constant, n: { $sum: 1 } }");
        let mut fields = group.into_iter().flatten();
        let (Some((id, constant)), Some((field, sum)), None) =
            (fields.next(), fields.next(), fields.next())
        else {
            return Err(cannot());
        };
        let is_path = constant.as_str().is_some_and(|text| text.starts_with('$'));
        let is_constant = !is_path && constant.as_document().is_none();
        let sum = sum.as_document().and_then(|sum| request::get(sum, "$sum").ok().flatten());
        let counts = sum.and_then(whole) == Some(1);
        if id.as_str() != "_id" || !is_constant || !counts {
            return Err(cannot());
        }
        let mut group = RawDocumentBuf::new();
        group.append(id, constant);
        Ok(Self { group: Some(group), field: field.as_str().to_owned() })
    }

    fn document(self, count: u64) -> RawDocumentBuf {
        let mut document = self.group.unwrap_or_default();
        // A key of BSON, or the text of one: one with a zero byte cannot have come as a key.
        if let Ok(field) = <&bson::raw::CStr>::try_from(self.field.as_str()) {
            document.append(field, int(count));
        }
        document
    }
}

pub(super) fn filter(request: &Request, key: &str) -> Result<Filter, Refusal> {
    request.document(key)?.map_or_else(|| Ok(Filter::default()), Filter::read)
}

/// A number from 0 on.
pub(super) fn count(request: &Request, key: &str) -> Result<Option<u64>, Refusal> {
    let Some(number) = request.whole(key)? else { return Ok(None) };
    let number = u64::try_from(number).map_err(|_| {
        let name = &request.name;
        let message = format!("BSON field '{name}.{key}' must be >= 0, actual value '{number}'");
        Refusal::new(code::BAD_VALUE, message)
    })?;
    Ok(Some(number))
}

/// What would change the result, and is not done here.
pub(super) fn refuse_unless_empty(request: &Request, keys: &[&str]) -> Result<(), Refusal> {
    for key in keys {
        if request.document(key)?.is_some_and(|document| !document.is_empty()) {
            return Err(Refusal::cannot(&format!("'{key}'")));
        }
    }
    Ok(())
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn int(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
