//! The fields of one document of a trace.

use alloc::string::String;

use bson::{RawArray, RawBsonRef, RawDocument};
use smallvec::SmallVec;

use crate::pool::{ConnId, Instant, Purpose, ServiceId};

use super::documents::what_is_wrong;
use super::error::TraceProblem;

/// What a field is, or what is wrong with it.
pub(super) type Found<T> = Result<T, TraceProblem>;

/// All fields, found in one pass. Of fields with the same name the first counts; what is not asked
/// for is passed over, so that later versions may say more.
pub(super) struct Fields<'a>(Elements<'a>);

/// As many as the usual input has, beside a cause.
type Elements<'a> = SmallVec<[(&'a [u8], RawBsonRef<'a>); 4]>;

impl<'a> Fields<'a> {
    #[inline]
    pub(super) fn of(document: &'a RawDocument) -> Found<Self> {
        let mut fields = SmallVec::new();
        let bytes = document.as_bytes();
        // Between the length and the final zero.
        let mut rest = bytes.get(4..bytes.len() - 1).unwrap_or_default();
        while !rest.is_empty() {
            let Some((key, value, next)) = plain_element(rest) else {
                return Self::of_any(document);
            };
            fields.push((key, value));
            rest = next;
        }
        Ok(Self(fields))
    }

    /// The same for fields of any type.
    #[cold]
    fn of_any(document: &'a RawDocument) -> Found<Self> {
        let mut fields = SmallVec::new();
        for element in document {
            let (key, value) = element.map_err(|_| what_is_wrong(document.as_bytes()))?;
            fields.push((key.as_str().as_bytes(), value));
        }
        Ok(Self(fields))
    }

    /// The key at this place.
    #[inline]
    pub(super) fn key(&self, place: usize) -> Option<&'a [u8]> {
        self.0.get(place).map(|&(key, _)| key)
    }

    #[inline]
    pub(super) fn get(&self, key: &str) -> Option<RawBsonRef<'a>> {
        self.0.iter().find(|(known, _)| *known == key.as_bytes()).map(|&(_, value)| value)
    }

    #[inline]
    pub(super) fn number_if(&self, key: &str) -> Found<Option<u64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        if let RawBsonRef::Int64(number) = value {
            return Ok(Some(number as u64));
        }
        let RawBsonRef::Int32(number) = value else {
            return Err(wrong(key, "is not a whole number"));
        };
        u64::try_from(number).map(Some).map_err(|_| wrong(key, "is below 0"))
    }

    #[inline]
    pub(super) fn number(&self, key: &str) -> Found<u64> {
        self.number_if(key)?.ok_or_else(|| absent(key))
    }

    #[inline]
    pub(super) fn small_if(&self, key: &str) -> Found<Option<u32>> {
        let Some(number) = self.number_if(key)? else { return Ok(None) };
        u32::try_from(number).map(Some).map_err(|_| wrong(key, "is too large"))
    }

    /// The request id of a command: the number without its sign has 32 bits.
    pub(super) fn request_id_if(&self, key: &str) -> Found<Option<i32>> {
        Ok(self.small_if(key)?.map(|number| number as i32))
    }

    #[inline]
    pub(super) fn time_if(&self, key: &str) -> Found<Option<Instant>> {
        Ok(self.number_if(key)?.map(Instant::from_nanos))
    }

    #[inline]
    pub(super) fn time(&self, key: &str) -> Found<Instant> {
        self.number(key).map(Instant::from_nanos)
    }

    #[inline]
    pub(super) fn boolean_if(&self, key: &str) -> Found<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::Boolean(value)) => Ok(Some(value)),
            Some(_) => Err(wrong(key, "is not true or false")),
        }
    }

    /// What is absent is false.
    #[inline]
    pub(super) fn flag(&self, key: &str) -> Found<bool> {
        Ok(self.boolean_if(key)?.unwrap_or(false))
    }

    #[inline]
    pub(super) fn text_if(&self, key: &str) -> Found<Option<&'a str>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(key, "is not a text")),
        }
    }

    /// One of a few texts.
    pub(super) fn choice_if<T: Copy>(
        &self,
        key: &str,
        choices: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Found<Option<T>> {
        let Some(text) = self.text_if(key)? else { return Ok(None) };
        let chosen = choices.iter().copied().find(|&choice| name(choice) == text);
        chosen.map(Some).ok_or_else(|| wrong(key, "is none of the texts that it can be"))
    }

    pub(super) fn document_if(&self, key: &str) -> Found<Option<Self>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::Document(nested)) => Self::of(nested).map(Some),
            Some(_) => Err(wrong(key, "is not a document")),
        }
    }

    pub(super) fn service_if(&self, key: &str) -> Found<Option<ServiceId>> {
        Ok(self.object_id_if(key)?.map(ServiceId))
    }

    pub(super) fn object_id_if(&self, key: &str) -> Found<Option<[u8; 12]>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::ObjectId(id)) => Ok(Some(id.bytes())),
            Some(_) => Err(wrong(key, "is not an ObjectId")),
        }
    }

    /// A number with a sign.
    pub(super) fn signed_if(&self, key: &str) -> Found<Option<i64>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::Int32(number)) => Ok(Some(number.into())),
            Some(RawBsonRef::Int64(number)) => Ok(Some(number)),
            Some(_) => Err(wrong(key, "is not a whole number")),
        }
    }

    /// All fields, which have to be texts.
    pub(super) fn texts<'s>(
        &'s self,
        key: &'s str,
    ) -> impl Iterator<Item = Found<(&'a str, &'a str)>> + 's {
        self.0.iter().map(move |&(name, value)| match (core::str::from_utf8(name), value) {
            (Ok(name), RawBsonRef::String(text)) => Ok((name, text)),
            _ => Err(wrong(key, "holds something that is not a text")),
        })
    }

    /// Milliseconds since 1970.
    pub(super) fn date_if(&self, key: &str) -> Found<Option<i64>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::DateTime(date)) => Ok(Some(date.timestamp_millis())),
            Some(_) => Err(wrong(key, "is not a date")),
        }
    }

    /// The elements of an array; `None` if there is none.
    pub(super) fn array_if(&self, key: &str) -> Found<Option<&'a RawArray>> {
        match self.get(key) {
            None => Ok(None),
            Some(RawBsonRef::Array(array)) => Ok(Some(array)),
            Some(_) => Err(wrong(key, "is not an array")),
        }
    }

    /// A connection: its number under this key, and its slot.
    #[inline]
    pub(super) fn connection(&self, key: &str) -> Found<ConnId> {
        let number = self.number(key)?;
        let slot = self.small_if("s")?.ok_or_else(|| absent("s"))?;
        Ok(ConnId::from_parts(number, slot))
    }

    #[inline]
    pub(super) fn purpose(&self) -> Found<Purpose> {
        let choices = [Purpose::Cursor, Purpose::Transaction];
        let name = |purpose| match purpose {
            Purpose::Other => "",
            Purpose::Cursor => "cursor",
            Purpose::Transaction => "transaction",
        };
        Ok(self.choice_if("p", &choices, name)?.unwrap_or(Purpose::Other))
    }
}

/// The first element and what follows it, if it is a number or a boolean under an ASCII key: inputs and
/// fingerprints have little else, and `bson`'s iterator takes several times as long.
#[inline]
fn plain_element(bytes: &[u8]) -> Option<(&[u8], RawBsonRef<'_>, &[u8])> {
    let (&kind, bytes) = bytes.split_first()?;
    let end = bytes.iter().position(|&byte| byte == 0 || !byte.is_ascii())?;
    let (key, rest) = bytes.split_at_checked(end)?;
    let (0, rest) = rest.split_first()? else { return None };
    Some(match kind {
        0x08 => match rest.split_first()? {
            (0, rest) => (key, RawBsonRef::Boolean(false), rest),
            (1, rest) => (key, RawBsonRef::Boolean(true), rest),
            _ => return None,
        },
        0x10 => {
            let (number, rest) = rest.split_first_chunk()?;
            (key, RawBsonRef::Int32(i32::from_le_bytes(*number)), rest)
        }
        0x12 => {
            let (number, rest) = rest.split_first_chunk()?;
            (key, RawBsonRef::Int64(i64::from_le_bytes(*number)), rest)
        }
        _ => return None,
    })
}

#[cold]
pub(super) fn wrong(key: &str, problem: &'static str) -> TraceProblem {
    TraceProblem::Field { key: shown(key.as_bytes()), problem }
}

/// A key from a file as part of one line.
pub(super) fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key).chars().take(40).flat_map(char::escape_debug).collect()
}

#[cold]
pub(super) fn absent(key: &str) -> TraceProblem {
    wrong(key, "is missing")
}
