use core::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{RawBsonRef, RawDocument};

use crate::printable::is_unprintable;

/// A document as relaxed
/// [Extended JSON](https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md).
/// on one line, without control characters. It ends where the document is damaged.
///
/// ```
/// use bson::rawdoc;
/// use cenote_core::log::ExtendedJson;
///
/// let document = rawdoc! { "waiting": 3_i64, "cause": "reset\nby peer" };
/// let text = r#"{"waiting":3,"cause":"reset\u000aby peer"}"#;
/// assert_eq!(ExtendedJson(&document).to_string(), text);
/// ```
// LG-49
#[derive(Clone, Copy, Debug)]
pub struct ExtendedJson<'a>(pub &'a RawDocument);

impl fmt::Display for ExtendedJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (index, element) in self.0.into_iter().map_while(Result::ok).enumerate() {
            let (key, value) = element;
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{}:{}", Text(key.as_str()), Value(value))?;
        }
        f.write_char('}')
    }
}

struct Value<'a>(RawBsonRef<'a>);

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RawBsonRef::Double(value) if value.is_finite() => write!(f, "{value:?}"),
            RawBsonRef::Double(value) => {
                let sign = if value == f64::NEG_INFINITY { "-" } else { "" };
                let name = if value.is_nan() { "NaN" } else { "Infinity" };
                write!(f, r#"{{"$numberDouble":"{sign}{name}"}}"#)
            }
            RawBsonRef::String(text) => Text(text).fmt(f),
            RawBsonRef::Array(array) => {
                f.write_char('[')?;
                for (index, value) in array.into_iter().map_while(Result::ok).enumerate() {
                    let separator = if index == 0 { "" } else { "," };
                    write!(f, "{separator}{}", Value(value))?;
                }
                f.write_char(']')
            }
            RawBsonRef::Document(document) => ExtendedJson(document).fmt(f),
            RawBsonRef::Boolean(value) => value.fmt(f),
            RawBsonRef::Null => f.write_str("null"),
            RawBsonRef::Int32(value) => value.fmt(f),
            RawBsonRef::Int64(value) => value.fmt(f),
            RawBsonRef::Timestamp(at) => {
                write!(f, r#"{{"$timestamp":{{"t":{},"i":{}}}}}"#, at.time, at.increment)
            }
            RawBsonRef::Binary(binary) => {
                let (bytes, kind) = (STANDARD.encode(binary.bytes), u8::from(binary.subtype));
                write!(f, r#"{{"$binary":{{"base64":"{bytes}","subType":"{kind:02x}"}}}}"#)
            }
            RawBsonRef::ObjectId(id) => write!(f, r#"{{"$oid":"{id}"}}"#),
            RawBsonRef::DateTime(at) => {
                let is_common = (0..FAR).contains(&at.timestamp_millis());
                match at.try_to_rfc3339_string() {
                    Ok(text) if is_common => write!(f, r#"{{"$date":"{text}"}}"#),
                    Ok(_) | Err(_) => {
                        let millis = at.timestamp_millis();
                        write!(f, r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#)
                    }
                }
            }
            RawBsonRef::Decimal128(value) => write!(f, r#"{{"$numberDecimal":"{value}"}}"#),
            RawBsonRef::Symbol(text) => write!(f, r#"{{"$symbol":{}}}"#, Text(text)),
            RawBsonRef::JavaScriptCode(code) => write!(f, r#"{{"$code":{}}}"#, Text(code)),
            RawBsonRef::MinKey => f.write_str(r#"{"$minKey":1}"#),
            RawBsonRef::MaxKey => f.write_str(r#"{"$maxKey":1}"#),
            // No reply to hello has these.
            RawBsonRef::RegularExpression(_)
            | RawBsonRef::JavaScriptCodeWithScope(_)
            | RawBsonRef::DbPointer(_)
            | RawBsonRef::Undefined => f.write_str(r#"{"$undefined":true}"#),
        }
    }
}

/// The first millisecond of the year 10000.
const FAR: i64 = 253_402_300_800_000;

/// A string in quotes.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                _ if is_unprintable(character) => {
                    let mut units = [0; 2];
                    for unit in character.encode_utf16(&mut units) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
                _ => f.write_char(character)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use bson::oid::ObjectId;
    use bson::{Binary, DateTime, Timestamp, rawdoc, spec::BinarySubtype};

    use super::ExtendedJson;

    // LG-49
    #[test]
    fn a_reply_to_hello() {
        let reply = rawdoc! {
            "ok": 1.0, "setName": "r\"s\n\u{202e}", "hosts": ["a:1", "b:2"], "hidden": false,
            "topologyVersion": { "processId": ObjectId::from_bytes([1; 12]), "counter": 7_i64 },
            "localTime": DateTime::from_millis(1_500), "early": DateTime::from_millis(-1),
            "$clusterTime": { "clusterTime": Timestamp { time: 5, increment: 6 } },
            "hash": Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2, 3] },
            "none": bson::RawBson::Null, "limit": f64::INFINITY, "maxWireVersion": 25,
        };
        let expected = concat!(
            r#"{"ok":1.0,"setName":"r\"s\u000a\u202e","hosts":["a:1","b:2"],"hidden":false,"#,
            r#""topologyVersion":{"processId":{"$oid":"010101010101010101010101"},"counter":7},"#,
            r#""localTime":{"$date":"1970-01-01T00:00:01.5Z"},"early":{"$date":{"$numberLong":"-1"}},"#,
            r#""$clusterTime":{"clusterTime":{"$timestamp":{"t":5,"i":6}}},"#,
            r#""hash":{"$binary":{"base64":"AQID","subType":"00"}},"none":null,"#,
            r#""limit":{"$numberDouble":"Infinity"},"maxWireVersion":25}"#,
        );
        assert_eq!(ExtendedJson(&reply).to_string(), expected);
    }
}
