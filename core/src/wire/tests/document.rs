use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Regex, Timestamp, rawdoc};

use crate::wire::{BsonProblem, MAX_DEPTH, WireError, check_document};

fn problem(bytes: &[u8]) -> (usize, BsonProblem) {
    match check_document(bytes, 0) {
        Err(WireError::Bson { offset, problem }) => (offset, problem),
        other => panic!("{other:?}"),
    }
}

/// A document with one element: its type, the key `k`, and these bytes.
fn one(kind: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((8 + value.len()) as i32).to_le_bytes().to_vec();
    bytes.extend([kind, b'k', 0]);
    bytes.extend(value);
    bytes.push(0);
    bytes
}

fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = vec![5, 0, 0, 0, 0];
    for _ in 1..depth {
        bytes = one(0x03, &bytes);
    }
    bytes
}

#[test]
fn every_type_passes() {
    let document = rawdoc! {
        "double": 1.5, "string": "text", "document": { "a": { "b": [1, 2_i64] } },
        "binary": Binary { subtype: BinarySubtype::Generic, bytes: vec![2, 1, 0] },
        "old": Binary { subtype: BinarySubtype::BinaryOld, bytes: vec![0, 1, 2] },
        "oid": ObjectId::from_bytes([1; 12]), "bool": false,
        "date": bson::DateTime::from_millis(5), "null": bson::RawBson::Null,
        "regex": Regex { pattern: "^a".try_into().unwrap(), options: "i".try_into().unwrap() },
        "code": bson::RawBson::JavaScriptCode("f()".into()),
        "symbol": bson::RawBson::Symbol("s".into()),
        "scope": bson::RawJavaScriptCodeWithScope {
            code: "f()".into(), scope: rawdoc! { "x": 1 },
        },
        "timestamp": Timestamp { time: 1, increment: 2 },
        "decimal": bson::Decimal128::from_bytes([0; 16]),
        "undefined": bson::RawBson::Undefined,
        "min": bson::RawBson::MinKey, "max": bson::RawBson::MaxKey,
    };
    let bytes = document.as_bytes();
    assert_eq!(check_document(bytes, 0), Ok((&*document, bytes.len())));
}

#[test]
fn what_follows_and_what_precedes_does_not_matter() {
    let mut bytes = vec![9; 3];
    bytes.extend(rawdoc! { "a": 1 }.as_bytes());
    bytes.push(9);
    assert_eq!(check_document(&bytes, 3), Ok((&*rawdoc! { "a": 1 }, 12)));
}

#[test]
fn depth_is_bounded_and_does_not_recurse() {
    assert!(check_document(&nested(MAX_DEPTH), 0).is_ok());
    assert_eq!(problem(&nested(MAX_DEPTH + 1)), (MAX_DEPTH * 7, BsonProblem::TooDeep));
    assert_eq!(problem(&nested(20_000)).1, BsonProblem::TooDeep);
}

#[test]
fn each_defect_is_named() {
    use BsonProblem as P;
    let length = |got, min, max| P::Length { got, min, max };
    let value = |needed, left| P::Value { needed, left };
    let table: [(&str, Vec<u8>, usize, BsonProblem); 19] = [
        ("too short", vec![4, 0, 0, 0, 0], 0, length(4, 5, 5)),
        ("negative", vec![0xFF; 9], 0, length(-1, 5, 9)),
        ("too long", vec![6, 0, 0, 0, 0], 0, length(6, 5, 5)),
        ("no terminator", vec![5, 0, 0, 0, 1], 4, P::Unterminated),
        ("key without end", vec![7, 0, 0, 0, 0x0A, b'k', 0], 5, P::Unterminated),
        ("type 0", one(0, &[]), 4, P::UnknownType { got: 0 }),
        ("type 0x14", one(0x14, &[]), 4, P::UnknownType { got: 0x14 }),
        ("cut int32", one(0x10, &[1, 2, 3]), 7, value(4, 3)),
        ("cut double", one(0x01, &[0; 7]), 7, value(8, 7)),
        ("bool 2", one(0x08, &[2]), 7, P::Boolean { got: 2 }),
        ("empty string", one(0x02, &[0, 0, 0, 0]), 7, length(0, 1, 0)),
        ("long string", one(0x02, &[3, 0, 0, 0, b'a', 0]), 7, length(3, 1, 2)),
        ("string without end", one(0x02, &[1, 0, 0, 0, b'a']), 11, P::Unterminated),
        ("long binary", one(0x05, &[2, 0, 0, 0, 0, 9]), 7, length(2, 0, 1)),
        ("old binary", one(0x05, &[5, 0, 0, 0, 2, 3, 0, 0, 0, 9]), 12, length(3, 1, 1)),
        ("long document", one(0x03, &[6, 0, 0, 0, 0]), 7, length(6, 5, 5)),
        ("half a regex", one(0x0B, &[b'a', 0, b'i']), 9, P::Unterminated),
        ("short scope", one(0x0F, &[0; 14]), 7, length(0, 14, 14)),
        (
            "scope beside its length",
            one(0x0F, &[15, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0]),
            16,
            length(5, 6, 6),
        ),
    ];
    for (name, bytes, offset, expected) in table {
        assert_eq!(problem(&bytes), (offset, expected), "{name}");
    }
}

#[test]
fn any_cut_is_an_error() {
    let whole = nested(5);
    for cut in 0..whole.len() {
        assert!(check_document(&whole[..cut], 0).is_err(), "{cut}");
    }
}
