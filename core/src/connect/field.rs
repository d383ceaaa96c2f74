//! Fields of replies: what is absent, what has the wrong type, what is damaged.

use bson::oid::ObjectId;
use bson::{RawArray, RawBsonRef, RawDocument};
use thiserror::Error;

use crate::number;

/// Why a reply cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum FieldError {
    #[error("the reply is not well-formed BSON")]
    Damaged,
    #[error("the reply has no `{0}`")]
    Missing(&'static str),
    #[error("`{name}` in the reply is not {expected}")]
    Type { name: &'static str, expected: &'static str },
}

pub(super) type Field<T> = Result<T, FieldError>;

/// Makes a field that may be absent one that must be there.
pub(super) fn required<T>(name: &'static str, value: Option<T>) -> Field<T> {
    value.ok_or(FieldError::Missing(name))
}

pub(super) fn text<'a>(reply: &'a RawDocument, name: &'static str) -> Field<Option<&'a str>> {
    typed(reply, name, "a string", RawBsonRef::as_str)
}

/// Numbers are taken for what they mean to a server: everything but zero is true.
pub(super) fn boolean(reply: &RawDocument, name: &'static str) -> Field<Option<bool>> {
    typed(reply, name, "a boolean", |value| {
        value.as_bool().or_else(|| number::as_f64(value).map(|number| number != 0.0))
    })
}

pub(super) fn whole_number(reply: &RawDocument, name: &'static str) -> Field<Option<i64>> {
    typed(reply, name, "a whole number", number::as_i64)
}

pub(super) fn small_number(reply: &RawDocument, name: &'static str) -> Field<Option<i32>> {
    typed(reply, name, "a whole number of 32 bits", number::as_i32)
}

/// A number of things, of which there must be at least one.
pub(super) fn count(reply: &RawDocument, name: &'static str) -> Field<Option<u32>> {
    typed(reply, name, "a whole number from 1 to 2147483647", |value| {
        number::as_i32(value).filter(|count| *count > 0).map(i32::unsigned_abs)
    })
}

pub(super) fn document<'a>(
    reply: &'a RawDocument,
    name: &'static str,
) -> Field<Option<&'a RawDocument>> {
    typed(reply, name, "a document", RawBsonRef::as_document)
}

pub(super) fn array<'a>(reply: &'a RawDocument, name: &'static str) -> Field<Option<&'a RawArray>> {
    typed(reply, name, "an array", RawBsonRef::as_array)
}

pub(super) fn object_id(reply: &RawDocument, name: &'static str) -> Field<Option<ObjectId>> {
    typed(reply, name, "an ObjectId", RawBsonRef::as_object_id)
}

pub(super) fn binary<'a>(reply: &'a RawDocument, name: &'static str) -> Field<Option<&'a [u8]>> {
    typed(reply, name, "binary data", |value| value.as_binary().map(|binary| binary.bytes))
}

/// `null` counts as absent.
fn typed<'a, T>(
    reply: &'a RawDocument,
    name: &'static str,
    expected: &'static str,
    read: impl FnOnce(RawBsonRef<'a>) -> Option<T>,
) -> Field<Option<T>> {
    match reply.get(name) {
        Err(_) => Err(FieldError::Damaged),
        Ok(None | Some(RawBsonRef::Null)) => Ok(None),
        Ok(Some(value)) => match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(FieldError::Type { name, expected }),
        },
    }
}
