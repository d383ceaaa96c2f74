//! `bulkWrite`: several writes, in any collections, in one command.

use bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use bson::{RawBsonRef, RawDocument, rawdoc};

use super::write::{batch, full, insert_one, ordered};
use super::{Answer, Context};
use crate::data::Namespace;
use crate::refusal::{Refusal, code};
use crate::request::{self, first_key, mismatch, whole};

/// Inserts alone. The results are in the first batch, all of them.
pub(super) fn bulk_write(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let namespaces: Result<Vec<_>, _> =
        batch(context, "nsInfo")?.into_iter().map(namespace).collect();
    let (operations, namespaces) = (batch(context, "ops")?, namespaces?);
    let ordered = ordered(context.request)?;
    let only_errors = context.request.boolean("errorsOnly")? == Some(true);
    let (mut inserted, mut errors, mut results) = (0, 0, RawArrayBuf::new());
    for (index, operation) in (0_i32..).zip(operations) {
        let (namespace, document) = insert(operation, &namespaces)?;
        if !context.world.store.create(namespace) {
            return Err(full());
        }
        match insert_one(context.world, namespace, document) {
            Ok(()) => {
                inserted += 1;
                if !only_errors {
                    results.push(rawdoc! { "ok": 1.0, "idx": index, "n": 1 });
                }
            }
            Err(refusal) => {
                errors += 1;
                results.push(failed(index, &refusal));
                if ordered {
                    break;
                }
            }
        }
    }
    Ok(Answer::Reply(rawdoc! {
        "cursor": { "id": 0_i64, "firstBatch": results, "ns": "admin.$cmd.bulkWrite" },
        "nErrors": errors,
        "nInserted": inserted,
        "nMatched": 0,
        "nModified": 0,
        "nUpserted": 0,
        "nDeleted": 0,
    }))
}

fn failed(index: i32, refusal: &Refusal) -> RawDocumentBuf {
    let mut result = rawdoc! { "ok": 0.0, "idx": index, "n": 0, "code": refusal.code };
    result.append(cstr!("errmsg"), refusal.message.as_str());
    result
}

fn namespace(info: &RawDocument) -> Result<Namespace, Refusal> {
    let name = request::get(info, "ns")?.and_then(RawBsonRef::as_str).unwrap_or_default();
    match name.split_once('.') {
        Some((database, collection)) if !database.is_empty() && !collection.is_empty() => {
            Ok(Namespace { database: database.to_owned(), collection: collection.to_owned() })
        }
        Some(_) | None => {
            let message = format!("Invalid namespace specified '{name}'");
            Err(Refusal::new(code::INVALID_NAMESPACE, message))
        }
    }
}

/// `{ insert: index of the namespace, document: … }`.
fn insert<'a>(
    operation: &'a RawDocument,
    namespaces: &'a [Namespace],
) -> Result<(&'a Namespace, &'a RawDocument), Refusal> {
    let name = first_key(operation);
    if name != "insert" {
        return Err(Refusal::cannot(&format!("'{name}' in bulkWrite, but inserts")));
    }
    let index = request::get(operation, name)?.and_then(whole);
    let index = index.and_then(|index| usize::try_from(index).ok());
    let namespace = index.and_then(|index| namespaces.get(index)).ok_or_else(|| {
        Refusal::new(code::BAD_VALUE, "an operation of bulkWrite names no namespace of 'nsInfo'")
    })?;
    let document = request::get(operation, "document")?.and_then(RawBsonRef::as_document);
    Ok((namespace, document.ok_or_else(|| mismatch("bulkWrite.ops.document", "object"))?))
}
