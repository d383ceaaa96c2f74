//! Fields of replies: absent, of the wrong type, or damaged.

use bson::oid::ObjectId;
use bson::{RawArray, RawBsonRef, RawDocument};
use thiserror::Error;

use crate::error::{CommandError, ReplyPart};
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

/// The fields of a reply that matter, found in one pass: a reply may be as long as a message, and
/// looking through it for one field after the other would take as many times as long.
pub(super) struct Fields<'a> {
    names: &'static [&'static str],
    found: Vec<(&'a str, RawBsonRef<'a>)>,
}

impl<'a> Fields<'a> {
    /// The first field of each of these names.
    ///
    /// # Errors
    ///
    /// [`FieldError::Damaged`], wherever in the reply that is.
    pub(super) fn of(reply: &'a RawDocument, names: &'static [&'static str]) -> Field<Self> {
        let mut fields = Self { names, found: Vec::new() };
        for element in reply {
            let (name, value) = element.map_err(|_| FieldError::Damaged)?;
            let name = name.as_str();
            if names.contains(&name) && fields.get(name).is_none() {
                fields.found.push((name, value));
            }
        }
        Ok(fields)
    }

    fn get(&self, name: &str) -> Option<RawBsonRef<'a>> {
        debug_assert!(self.names.contains(&name), "{name} was not asked for");
        self.found.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }
}

/// What the server refuses; `None` when it does not. A reply that says neither is no reply: it
/// would otherwise pass for a refusal without a reason.
pub(super) fn refusal(reply: &RawDocument) -> Field<Option<CommandError>> {
    required("ok", boolean(&Fields::of(reply, &["ok"])?, "ok")?)?;
    let error = CommandError::from_reply(reply);
    Ok(error.filter(|error| error.part == ReplyPart::Command))
}

/// Makes a field that may be absent one that must be there.
pub(super) fn required<T>(name: &'static str, value: Option<T>) -> Field<T> {
    value.ok_or(FieldError::Missing(name))
}

pub(super) fn text<'a>(reply: &Fields<'a>, name: &'static str) -> Field<Option<&'a str>> {
    typed(reply, name, "a string", RawBsonRef::as_str)
}

/// Numbers are taken for what they mean to a server: everything but zero is true.
pub(super) fn boolean(reply: &Fields<'_>, name: &'static str) -> Field<Option<bool>> {
    typed(reply, name, "a boolean", |value| {
        value.as_bool().or_else(|| number::as_f64(value).map(|number| number != 0.0))
    })
}

pub(super) fn whole_number(reply: &Fields<'_>, name: &'static str) -> Field<Option<i64>> {
    typed(reply, name, "a whole number", number::as_i64)
}

pub(super) fn small_number(reply: &Fields<'_>, name: &'static str) -> Field<Option<i32>> {
    typed(reply, name, "a whole number of 32 bits", number::as_i32)
}

/// A number of things, of which there must be at least one.
pub(super) fn count(reply: &Fields<'_>, name: &'static str) -> Field<Option<u32>> {
    typed(reply, name, "a whole number from 1 to 2147483647", |value| {
        number::as_i32(value).filter(|count| *count > 0).map(i32::unsigned_abs)
    })
}

pub(super) fn document<'a>(
    reply: &Fields<'a>,
    name: &'static str,
) -> Field<Option<&'a RawDocument>> {
    typed(reply, name, "a document", RawBsonRef::as_document)
}

pub(super) fn array<'a>(reply: &Fields<'a>, name: &'static str) -> Field<Option<&'a RawArray>> {
    typed(reply, name, "an array", RawBsonRef::as_array)
}

pub(super) fn object_id(reply: &Fields<'_>, name: &'static str) -> Field<Option<ObjectId>> {
    typed(reply, name, "an ObjectId", RawBsonRef::as_object_id)
}

/// Milliseconds since 1970.
pub(super) fn date_ms(reply: &Fields<'_>, name: &'static str) -> Field<Option<i64>> {
    typed(reply, name, "a date", |value| {
        value.as_datetime().map(bson::DateTime::timestamp_millis).or_else(|| number::as_i64(value))
    })
}

pub(super) fn binary<'a>(reply: &Fields<'a>, name: &'static str) -> Field<Option<&'a [u8]>> {
    typed(reply, name, "binary data", |value| value.as_binary().map(|binary| binary.bytes))
}

/// A value of any type.
pub(super) fn any<'a>(reply: &Fields<'a>, name: &'static str) -> Option<RawBsonRef<'a>> {
    reply.get(name)
}

/// `null` counts as absent.
fn typed<'a, T>(
    reply: &Fields<'a>,
    name: &'static str,
    expected: &'static str,
    read: impl FnOnce(RawBsonRef<'a>) -> Option<T>,
) -> Field<Option<T>> {
    match reply.get(name) {
        None | Some(RawBsonRef::Null) => Ok(None),
        Some(value) => match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(FieldError::Type { name, expected }),
        },
    }
}
