use std::collections::BTreeMap;

use bson::error::ErrorKind;
use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{LIMIT, frame, message, parse, raw};
use crate::wire::{
    Compressor, CompressorId, Flags, Framer, Ids, Message, MessageBuf, OpCode, Query, Reply,
    ZlibLevel, check_document, decompress,
};

fn value() -> impl Strategy<Value = RawBson> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(RawBson::Int32),
        any::<i64>().prop_map(RawBson::Int64),
        any::<bool>().prop_map(RawBson::Boolean),
        "\\PC{0,12}".prop_map(RawBson::String),
        Just(RawBson::Null),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4)
                .prop_map(|values| RawBson::Array(RawArrayBuf::from_iter(values))),
            btree_map("[a-z]{0,5}", inner, 0..4)
                .prop_map(|map| RawBson::Document(document_of(map))),
        ]
    })
}

fn document_of(map: BTreeMap<String, RawBson>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (key, value) in map {
        document.append(bson::raw::CString::try_from(key).unwrap(), value);
    }
    document
}

fn document() -> impl Strategy<Value = RawDocumentBuf> {
    btree_map("[a-z]{1,5}", value(), 0..5).prop_map(document_of)
}

prop_compose! {
    fn flags()(bits in 0_u8..8) -> Flags {
        Flags {
            checksum_present: bits & 1 != 0,
            more_to_come: bits & 2 != 0,
            exhaust_allowed: bits & 4 != 0,
        }
    }
}

type Parts = (Flags, RawDocumentBuf, Vec<(String, Vec<RawDocumentBuf>)>);

fn parts() -> impl Strategy<Value = Parts> {
    // MS-12
    let sequences = btree_map("[a-z]{0,5}", vec(document(), 0..4), 0..6);
    (flags(), document(), sequences.prop_map(|map| map.into_iter().collect()))
}

fn encode((flags, body, sequences): &Parts) -> Vec<u8> {
    let sequences: Vec<_> =
        sequences.iter().map(|(name, documents)| (name.as_str(), documents.clone())).collect();
    message(*flags, body, &sequences)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_written_is_read(parts in parts()) {
        let bytes = encode(&parts);
        let message = parse(&bytes).unwrap();
        let sequences: Vec<_> = message.sequences().map(|sequence| {
            let documents = sequence.documents().map(ToOwned::to_owned).collect::<Vec<_>>();
            (sequence.identifier().to_owned(), documents)
        }).collect();
        for (name, _) in &parts.2 {
            prop_assert!(message.sequence(name).is_some());
        }
        prop_assert_eq!((message.flags(), message.body().to_owned(), sequences), parts);
    }

    #[test]
    fn compression_changes_nothing(parts in parts(), level in -1..10, number in 0_u8..4) {
        let id = CompressorId::from_number(number).unwrap();
        prop_assume!(id.is_built());
        let bytes = encode(&parts);
        let compressor = Compressor::new(id, ZlibLevel::new(level).unwrap()).unwrap();
        let (mut compressed, mut scratch) = (Vec::new(), Vec::new());
        compressor.compress(frame(&bytes), LIMIT, &mut compressed).unwrap();
        let back = decompress(frame(&compressed), LIMIT, &mut scratch).unwrap();
        prop_assert_eq!(back, frame(&bytes));
    }

    #[test]
    fn any_cut_gives_the_same_messages(
        messages in vec(parts(), 1..5),
        cuts in vec(1_usize..70, 1..40),
        copy in any::<bool>(),
    ) {
        let messages: Vec<Vec<u8>> = messages.iter().map(encode).collect();
        let stream = messages.concat();
        let (mut framer, mut found, mut at) = (Framer::new(LIMIT), Vec::new(), 0);
        for cut in cuts.into_iter().cycle() {
            let end = (at + cut).min(stream.len());
            at += feed(&mut framer, &stream[at..end], copy);
            while let Some(frame) = framer.next_frame().unwrap() {
                found.push(frame.bytes().to_vec());
            }
            if at == stream.len() {
                break;
            }
        }
        prop_assert_eq!(found, messages);
        prop_assert!(framer.is_empty());
        prop_assert_eq!(framer.finish(), Ok(()));
    }

    #[test]
    fn noise_is_refused_without_a_panic(op_code in 0_usize..4, noise in vec(any::<u8>(), 0..200)) {
        let op_code = [OpCode::Msg, OpCode::Compressed, OpCode::Query, OpCode::Reply][op_code];
        let bytes = raw(op_code, &[&noise]);
        let mut scratch = Vec::new();
        let _ = decompress(frame(&bytes), LIMIT, &mut scratch).map(|frame| frame.bytes().len());
        let _ = (parse(&bytes), Query::parse(frame(&bytes)), Reply::parse(frame(&bytes)));
    }

    #[test]
    fn a_document_with_noise_in_it_is_read_as_bson_reads_it(
        document in document(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = document.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok((document, _)) = check_document(&bytes, 0) {
            // Only what is UTF-8 is left to the reader.
            for error in document.iter().filter_map(Result::err) {
                prop_assert!(matches!(error.kind, ErrorKind::Utf8Encoding { .. }), "{error:?}");
            }
        }
    }
}

fn feed(framer: &mut Framer, bytes: &[u8], copy: bool) -> usize {
    if copy {
        framer.push(bytes);
        return bytes.len();
    }
    let spare = framer.spare();
    let count = spare.len().min(bytes.len());
    spare[..count].copy_from_slice(&bytes[..count]);
    framer.filled(count);
    count
}

#[test]
fn a_legacy_hello_and_its_reply() {
    let (mut bytes, ids) = (Vec::new(), Ids { request_id: 9, response_to: 4 });
    let document = rawdoc! { "isMaster": 1 };
    let query =
        Query { flags: 4, collection: "admin.$cmd", skip: 0, limit: -1, document: &document };
    assert_eq!(query.write(Ids::request(4), LIMIT, &mut bytes), Ok(bytes.len()));
    assert_eq!(Query::parse(frame(&bytes)), Ok(query));
    assert_eq!(query.database(), Some("admin"));

    bytes.clear();
    let answer = rawdoc! { "ok": 1 };
    assert_eq!(Reply::write(&answer, ids, LIMIT, &mut bytes), Ok(bytes.len()));
    let reply = Reply::parse(frame(&bytes)).unwrap();
    assert_eq!((reply.header().ids, reply.cursor_id(), reply.flags()), (ids, 0, 8));
    assert_eq!(reply.documents().collect::<Vec<_>>(), [&*answer]);
}

// MS-11, MS-13
#[test]
fn a_command_says_its_name_and_database() {
    let bytes = message(Flags::NONE, &rawdoc! { "ping": 1, "$db": "admin" }, &[]);
    let ping = parse(&bytes).unwrap();
    assert_eq!((ping.command_name(), ping.database()), (Some("ping"), Some("admin")));
    let bytes = message(Flags::NONE, &rawdoc! {}, &[]);
    let empty = parse(&bytes).unwrap();
    assert_eq!((empty.command_name(), empty.database()), (None, None));
}

#[test]
fn a_message_that_is_kept_is_the_message() {
    let sequence = [("documents", vec![rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }])];
    for flags in [Flags::NONE, Flags::MORE_TO_COME, Flags::CHECKSUM_PRESENT] {
        let body = rawdoc! { "insert": "c", "$db": "d" };
        let bytes = message(flags, &body, &sequence);
        let kept = MessageBuf::parse(bytes.clone(), LIMIT).unwrap();
        let read = parse(&bytes).unwrap();
        assert_eq!((kept.header(), kept.flags()), (read.header(), flags));
        assert_eq!(kept.body(), read.body());
        let documents = |message: &Message<'_>| {
            let sequence = message.sequence("documents").unwrap();
            sequence.documents().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(documents(&kept.as_message()), documents(&read));
        assert_eq!(kept.as_bytes(), bytes);
        assert_eq!(kept.into_body(), body);
    }
    let mut damaged = message(Flags::NONE, &rawdoc! { "ok": 1 }, &[]);
    damaged[20] = 9;
    assert!(MessageBuf::parse(damaged, LIMIT).is_err());
}
