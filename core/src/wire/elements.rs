//! The elements of a document, one level deep.

use bson::RawDocument;

/// Goes through the elements of a document. Ends early at a type that it does not know and at damage: then the document is
/// not [complete](Self::is_complete), and a caller takes the general way.
pub(crate) struct Elements<'a> {
    /// Without the terminator of the document.
    rest: &'a [u8],
}

/// The type, the key and the value of an element.
pub(crate) type Element<'a> = (u8, &'a [u8], &'a [u8]);

impl<'a> Elements<'a> {
    pub(crate) fn of(document: &'a RawDocument) -> Self {
        let bytes = document.as_bytes();
        Self { rest: bytes.get(size_of::<i32>()..bytes.len() - 1).unwrap_or_default() }
    }

    /// Whether the last element was the document's last one.
    pub(crate) const fn is_complete(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (kind, rest) = self.rest.split_first()?;
        let (key, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == 0)?)?;
        if !key.is_ascii() {
            return None;
        }
        let rest = &rest[1..];
        let (value, rest) = rest.split_at_checked(value_length(*kind, rest)?)?;
        self.rest = rest;
        Some((*kind, key, value))
    }
}

/// Of a value at the beginning of these bytes, if it is one.
fn value_length(kind: u8, bytes: &[u8]) -> Option<usize> {
    let counted = || usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok();
    let terminated =
        |length: usize| (bytes.get(length.checked_sub(1)?) == Some(&0)).then_some(length);
    match kind {
        0x0A | 0x06 | 0x7F | 0xFF => Some(0),
        0x08 => (*bytes.first()? <= 1).then_some(1),
        0x10 => Some(4),
        0x01 | 0x09 | 0x11 | 0x12 => Some(8),
        0x07 => Some(12),
        0x13 => Some(16),
        // A length that does not count itself,
        0x02 | 0x0D | 0x0E => terminated(4 + counted().filter(|length| *length > 0)?),
        0x05 => Some(5 + counted()?),
        // and one that does.
        0x03 | 0x04 => terminated(counted().filter(|length| *length >= 5)?),
        _ => None,
    }
}

/// Documents of elements that callers look for, and of others; one byte of some is damaged.
#[cfg(test)]
pub(crate) fn some_damaged() -> impl proptest::strategy::Strategy<Value = bson::RawDocumentBuf> {
    use bson::raw::{CString, cstr};
    use bson::{Binary, RawBson, RawDocumentBuf, Regex, rawbson};
    use proptest::prelude::*;

    let key = prop::sample::select(vec!["ok", "writeConcernError", "$db", "n", "größe"]);
    let values = [
        rawbson!(1.0),
        rawbson!(0.0),
        rawbson!(1),
        rawbson!(true),
        rawbson!(null),
        rawbson!("text"),
        rawbson!({ "code": 64 }),
        RawBson::MinKey,
        RawBson::RegularExpression(Regex {
            pattern: cstr!("a").into(),
            options: cstr!("i").into(),
        }),
        RawBson::Binary(Binary { subtype: 2.into(), bytes: vec![7; 3] }),
    ];
    let elements = prop::collection::vec((key, prop::sample::select(values.to_vec())), 0..5);
    (elements, any::<prop::sample::Index>(), prop::option::of(any::<u8>())).prop_map(
        |(elements, place, byte)| {
            let mut document = RawDocumentBuf::new();
            for (key, value) in elements {
                document.append(CString::try_from(key).expect("no zero"), value);
            }
            let mut bytes = document.into_bytes();
            let room = bytes.len() - 5;
            if let (Some(byte), 1..) = (byte, room) {
                bytes[4 + place.index(room)] = byte;
            }
            RawDocumentBuf::from_bytes(bytes).expect("length and terminator are as they were")
        },
    )
}
