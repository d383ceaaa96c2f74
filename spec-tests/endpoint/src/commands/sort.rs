//! Documents in the order of their values.

use std::cmp::Ordering;

use bson::raw::RawDocumentBuf;
use bson::{RawBsonRef, RawDocument};

use crate::data::compare;
use crate::refusal::{Refusal, code};
use crate::request::whole;

/// Sorts by the fields that `keys` names, each with 1 or -1. A document without a field comes first.
///
/// # Errors
///
/// Keys that are none, and values that no order holds all of.
pub(super) fn sort(
    mut documents: Vec<RawDocumentBuf>,
    keys: &RawDocument,
) -> Result<Vec<RawDocumentBuf>, Refusal> {
    let mut by = Vec::new();
    for pair in keys {
        let Ok((name, direction)) = pair else { return Err(bad("a sort is no document")) };
        let is_reversed = match whole(direction) {
            Some(1) => false,
            Some(-1) => true,
            _ => return Err(bad("a sort order is 1 or -1")),
        };
        let name = name.as_str();
        check_order(&documents, name)?;
        by.push((name, is_reversed));
    }
    documents.sort_by(|one, other| {
        let orders = by.iter().map(|(name, is_reversed)| {
            let order = order(one, other, name);
            if *is_reversed { order.reverse() } else { order }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    });
    Ok(documents)
}

/// That every value has its place beside every other one.
fn check_order(documents: &[RawDocumentBuf], name: &str) -> Result<(), Refusal> {
    let mut values = documents.iter().filter_map(|document| value(document, name));
    let Some(first) = values.next() else { return Ok(()) };
    let is_comparable =
        |value: RawBsonRef<'_>| compare(first, value).and(compare(value, value)).is_some();
    if is_comparable(first) && values.all(is_comparable) {
        return Ok(());
    }
    Err(Refusal::cannot(&format!("'sort' by '{name}', whose values are of several kinds")))
}

fn order(one: &RawDocument, other: &RawDocument, name: &str) -> Ordering {
    match (value(one, name), value(other, name)) {
        (Some(one), Some(other)) => compare(one, other).unwrap_or(Ordering::Equal),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

fn value<'d>(document: &'d RawDocument, name: &str) -> Option<RawBsonRef<'d>> {
    document.get(name).ok().flatten()
}

fn bad(message: &str) -> Refusal {
    Refusal::new(code::BAD_VALUE, message)
}
