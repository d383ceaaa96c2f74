//! What an update makes of a document.

use bson::raw::{CStr, RawDocumentBuf, cstr};
use bson::{RawBson, RawBsonRef, RawDocument};

use super::value;
use crate::refusal::{Refusal, code};
use crate::request::{first_key, whole};

/// A replacement, or `$set`, `$inc` and `$unset` of top-level fields.
#[derive(Debug)]
pub(in super::super) enum Update {
    Replace(RawDocumentBuf),
    Change(Vec<Change>),
}

#[derive(Debug)]
pub(in super::super) struct Change {
    field: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Set(RawBson),
    Add(RawBson),
    Unset,
}

impl Update {
    /// # Errors
    ///
    /// An update that this server cannot do.
    pub(in super::super) fn read(update: RawBsonRef<'_>) -> Result<Self, Refusal> {
        let Some(update) = update.as_document() else {
            return Err(Refusal::cannot("an update with a pipeline"));
        };
        if !first_key(update).starts_with('$') {
            return Ok(Self::Replace(update.to_owned()));
        }
        let mut changes = Vec::new();
        for element in update {
            let (operator, fields) = element?;
            let fields = fields.as_document().ok_or_else(|| {
                let message = format!("Modifiers operate on fields: {operator:?} needs an object");
                Refusal::new(code::FAILED_TO_PARSE, message)
            })?;
            for element in fields {
                let (field, value) = element?;
                changes.push(Change::read(operator.as_str(), field.as_str(), value)?);
            }
        }
        Ok(Self::Change(changes))
    }

    /// # Errors
    ///
    /// Another `_id`, or a sum with what is no number.
    pub(in super::super) fn apply(&self, old: &RawDocument) -> Result<RawDocumentBuf, Refusal> {
        let new = match self {
            Self::Replace(new) => replaced(old, new)?,
            Self::Change(changes) => changed(old, changes)?,
        };
        let id = |document: &RawDocument| document.get("_id").ok().flatten().map(value::key);
        match (id(old), id(&new)) {
            (Some(old), new) if new.as_ref() != Some(&old) => {
                let message = "Performing an update on the path '_id' would modify the immutable \
                               field '_id'";
                Err(Refusal::new(code::IMMUTABLE_FIELD, message))
            }
            _ => Ok(new),
        }
    }
}

impl Change {
    fn read(operator: &str, field: &str, value: RawBsonRef<'_>) -> Result<Self, Refusal> {
        if field.contains('.') || field.starts_with('$') {
            return Err(Refusal::cannot(&format!("an update of '{field}'")));
        }
        let kind = match operator {
            "$set" => Kind::Set(value.into()),
            "$inc" => Kind::Add(value.into()),
            "$unset" => Kind::Unset,
            operator => return Err(Refusal::cannot(&format!("'{operator}'"))),
        };
        Ok(Self { field: field.to_owned(), kind })
    }

    /// The field's next value, if it has one.
    fn apply(&self, old: Option<RawBsonRef<'_>>) -> Result<Option<RawBson>, Refusal> {
        match &self.kind {
            Kind::Set(value) => Ok(Some(value.clone())),
            Kind::Unset => Ok(None),
            Kind::Add(value) => match old {
                None => Ok(Some(value.clone())),
                Some(old) => sum(old, value.as_raw_bson_ref()).map(Some).ok_or_else(|| {
                    let message = format!("Cannot apply $inc to the value of '{}'", self.field);
                    Refusal::new(code::TYPE_MISMATCH, message)
                }),
            },
        }
    }
}

/// The fields of the new one; the `_id` of the old one, if it has none of its own.
fn replaced(old: &RawDocument, new: &RawDocument) -> Result<RawDocumentBuf, Refusal> {
    let (own, id) = (new.get("_id")?, old.get("_id")?);
    let mut document = RawDocumentBuf::new();
    if let Some(id) = own.or(id) {
        document.append(cstr!("_id"), id);
    }
    for element in new {
        let (key, value) = element?;
        if key.as_str() != "_id" {
            document.append(key, value);
        }
    }
    Ok(document)
}

/// Fields keep their places; new ones come at the end.
fn changed(old: &RawDocument, changes: &[Change]) -> Result<RawDocumentBuf, Refusal> {
    let mut document = RawDocumentBuf::new();
    for element in old {
        let (key, value) = element?;
        match changes.iter().find(|change| change.field == key.as_str()) {
            None => document.append(key, value),
            Some(change) => append(&mut document, key, change.apply(Some(value))?),
        }
    }
    for change in changes {
        if old.get(&change.field)?.is_none() {
            // It was a key when it came.
            let key = <&CStr>::try_from(change.field.as_str())?;
            append(&mut document, key, change.apply(None)?);
        }
    }
    Ok(document)
}

fn append(document: &mut RawDocumentBuf, key: &CStr, value: Option<RawBson>) {
    if let Some(value) = value {
        document.append(key, value);
    }
}

fn sum(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Option<RawBson> {
    if let (Some(a), Some(b)) = (a.as_i32(), b.as_i32()) {
        return Some(
            a.checked_add(b).map_or(RawBson::Int64(i64::from(a) + i64::from(b)), RawBson::Int32),
        );
    }
    let real = |value: RawBsonRef<'_>| value.as_f64();
    if real(a).is_none() && real(b).is_none() {
        return Some(RawBson::Int64(whole(a)?.checked_add(whole(b)?)?));
    }
    let number = |value| real(value).or_else(|| whole(value).map(|whole| whole as f64));
    Some(RawBson::Double(number(a)? + number(b)?))
}

#[cfg(test)]
mod tests {
    use bson::{RawBsonRef, RawDocumentBuf, rawdoc};

    use super::Update;

    fn apply(update: &RawDocumentBuf, old: &RawDocumentBuf) -> Result<RawDocumentBuf, i32> {
        let update = Update::read(RawBsonRef::Document(update)).map_err(|refusal| refusal.code)?;
        update.apply(old).map_err(|refusal| refusal.code)
    }

    #[test]
    fn fields_keep_their_places() {
        let old = rawdoc! { "_id": 1, "a": 1, "b": 2, "c": 3 };
        let update = rawdoc! { "$set": { "b": "x", "d": 4 }, "$inc": { "a": 2, "e": 1_i64 }, "$unset": { "c": "" } };
        let new = rawdoc! { "_id": 1, "a": 3, "b": "x", "d": 4, "e": 1_i64 };
        assert_eq!(apply(&update, &old), Ok(new));
        assert_eq!(apply(&rawdoc! { "z": 1 }, &old), Ok(rawdoc! { "_id": 1, "z": 1 }));
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        let old = rawdoc! { "_id": 1, "a": "x" };
        assert_eq!(apply(&rawdoc! { "$set": { "_id": 2 } }, &old), Err(66));
        assert_eq!(apply(&rawdoc! { "_id": 2 }, &old), Err(66));
        assert_eq!(apply(&rawdoc! { "$inc": { "a": 1 } }, &old), Err(14));
        assert_eq!(apply(&rawdoc! { "$push": { "a": 1 } }, &old), Err(238));
        assert_eq!(apply(&rawdoc! { "$set": { "a.b": 1 } }, &old), Err(238));
    }
}
