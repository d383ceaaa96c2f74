//! When two values are the same, and which comes first.

use std::cmp::Ordering;

use bson::raw::{RawDocumentBuf, cstr};
use bson::{Bson, RawBsonRef};

/// Bytes that two values share when they are the same: 1, 1.0 and 1 as a long are. Within
/// documents and arrays only numbers of the same type are.
pub(in super::super) fn key(value: RawBsonRef<'_>) -> Vec<u8> {
    match Number::of(value) {
        Some(Number::Whole(whole)) => [&[b'n'][..], &whole.to_le_bytes()].concat(),
        Some(Number::Real(real)) => [&[b'r'][..], &real.to_bits().to_le_bytes()].concat(),
        None => {
            let mut alone = RawDocumentBuf::new();
            alone.append(cstr!(""), value);
            alone.into_bytes()
        }
    }
}

/// Which comes first, of two numbers, texts, dates, ObjectIds or booleans; `None` for values that
/// no range holds both of.
pub(in super::super) fn compare(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return a.compare(b);
    }
    let texts = a.as_str().zip(b.as_str()).map(|(a, b)| a.cmp(b));
    let dates = a.as_datetime().zip(b.as_datetime()).map(|(a, b)| a.cmp(&b));
    let ids = a.as_object_id().zip(b.as_object_id()).map(|(a, b)| a.cmp(&b));
    let booleans = a.as_bool().zip(b.as_bool()).map(|(a, b)| a.cmp(&b));
    texts.or(dates).or(ids).or(booleans)
}

/// As an error message shows it.
pub(super) fn show(value: RawBsonRef<'_>) -> String {
    const MOST: usize = 200;
    let mut text = Bson::try_from(value).map_or_else(|_| "?".to_owned(), |bson| bson.to_string());
    if text.len() > MOST {
        let end = (0..=MOST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    fn of(value: RawBsonRef<'_>) -> Option<Self> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let whole = value.as_i32().map(i64::from).or(value.as_i64());
        whole.map(Self::Whole).or_else(|| {
            let real = value.as_f64()?;
            let is_whole = real.trunc() == real && real.abs() <= EXACT;
            Some(if is_whole { Self::Whole(real as i64) } else { Self::Real(real) })
        })
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }

    fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use bson::{RawBsonRef, rawdoc};

    use super::{compare, key};

    #[test]
    fn numbers_are_the_same_whatever_their_type() {
        let one = key(RawBsonRef::Int32(1));
        assert_eq!(one, key(RawBsonRef::Int64(1)));
        assert_eq!(one, key(RawBsonRef::Double(1.0)));
        assert_eq!(key(RawBsonRef::Double(-0.0)), key(RawBsonRef::Int32(0)));
        assert_ne!(one, key(RawBsonRef::Double(1.5)));
        assert_ne!(one, key(RawBsonRef::String("1")));
        assert_ne!(one, key(RawBsonRef::Boolean(true)));
    }

    #[test]
    fn only_what_is_alike_compares() {
        let (one, two) = (RawBsonRef::Int32(1), RawBsonRef::Double(2.5));
        assert_eq!(compare(one, two), Some(Ordering::Less));
        assert_eq!(
            compare(RawBsonRef::String("b"), RawBsonRef::String("a")),
            Some(Ordering::Greater)
        );
        assert_eq!(compare(one, RawBsonRef::String("a")), None);
        assert_eq!(compare(RawBsonRef::Double(f64::NAN), one), None);
        let document = rawdoc! {};
        assert_eq!(compare(RawBsonRef::Document(&document), RawBsonRef::Document(&document)), None);
    }
}
