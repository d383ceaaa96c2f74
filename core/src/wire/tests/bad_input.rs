use bson::rawdoc;

use super::{frame, message, parse, raw};
use crate::wire::{
    BsonProblem, Flags, Ids, Message, MessageLimit, OpCode, Query, Reply, WireError,
};

const EMPTY: &[u8] = &[5, 0, 0, 0, 0];
const NO_FLAGS: &[u8] = &[0; 4];
const BODY: &[u8] = &[0, 5, 0, 0, 0, 0];

/// A section of kind 1 with one empty document.
fn sequence(name: &str) -> Vec<u8> {
    let size = (4 + name.len() + 1 + EMPTY.len()) as i32;
    [&[1], &size.to_le_bytes()[..], name.as_bytes(), &[0], EMPTY].concat()
}

// MS-05
#[test]
fn each_bad_message_is_refused_for_its_own_reason() {
    use WireError as E;
    let cut = |what, offset, needed, left| E::Cut { what, offset, needed, left };
    let only_sequence = sequence("a");
    let long = |got, room| E::SectionSize { got, offset: 27, room };
    let table: [(&str, Vec<&[u8]>, WireError); 19] = [
        ("nothing", vec![], cut("flagBits", 16, 4, 0)),
        ("half the flags", vec![&[0, 0]], cut("flagBits", 16, 4, 2)),
        ("no section", vec![NO_FLAGS], E::NoBody),
        ("a required flag", vec![&[4, 0, 0, 0], BODY], E::UnknownFlags { bits: 4 }),
        ("no kind 0", vec![NO_FLAGS, &only_sequence], E::NoBody),
        ("two of kind 0", vec![NO_FLAGS, BODY, BODY], E::SecondBody { offset: 26 }),
        ("kind 2", vec![NO_FLAGS, BODY, &[2]], E::UnknownSectionKind { kind: 2, offset: 26 }),
        ("kind 255", vec![NO_FLAGS, &[255]], E::UnknownSectionKind { kind: 255, offset: 20 }),
        ("body without bytes", vec![NO_FLAGS, &[0]], cut("document", 21, 5, 0)),
        (
            "body too long",
            vec![NO_FLAGS, &[0, 6, 0, 0, 0, 0]],
            E::Bson { offset: 21, problem: BsonProblem::Length { got: 6, min: 5, max: 5 } },
        ),
        (
            "body of negative length",
            vec![NO_FLAGS, &[0, 0xFF, 0xFF, 0xFF, 0xFF, 0]],
            E::Bson { offset: 21, problem: BsonProblem::Length { got: -1, min: 5, max: 5 } },
        ),
        ("no section size", vec![NO_FLAGS, BODY, &[1, 9]], cut("section size", 27, 4, 1)),
        ("section of 4", vec![NO_FLAGS, BODY, &[1, 4, 0, 0, 0]], long(4, 4)),
        ("section too long", vec![NO_FLAGS, BODY, &[1, 6, 0, 0, 0, 0]], long(6, 5)),
        ("negative section", vec![NO_FLAGS, BODY, &[1, 0, 0, 0, 0x80, 0]], long(i32::MIN, 5)),
        (
            "name without end",
            vec![NO_FLAGS, BODY, &[1, 5, 0, 0, 0, b'a']],
            cut("sequence identifier", 31, 2, 1),
        ),
        (
            "name of no UTF-8",
            vec![NO_FLAGS, BODY, &[1, 6, 0, 0, 0, 0xFF, 0]],
            E::BadName { what: "sequence identifier" },
        ),
        (
            "half a document in a sequence",
            vec![NO_FLAGS, BODY, &[1, 8, 0, 0, 0, 0, 5, 0, 0]],
            cut("document", 32, 5, 3),
        ),
        ("a flag and no checksum", vec![&[1, 0, 0, 0], &[7, 7]], cut("checksum", 20, 4, 2)),
    ];
    for (name, parts, expected) in table {
        let bytes = raw(OpCode::Msg, &parts);
        let error = parse(&bytes).unwrap_err();
        assert_eq!(error, expected, "{name}");
        assert!(error.to_string().len() < 150 && !error.to_string().contains('\n'), "{error}");
    }
}

// MS-04
#[test]
fn identifiers_come_once_wherever_they_stand() {
    let sections = ["a", "b", "c", "d", "e", "b"].map(sequence).concat();
    let bytes = raw(OpCode::Msg, &[NO_FLAGS, &sections, BODY]);
    let expected = WireError::DuplicateSequence { identifier: "b".into() };
    assert_eq!(parse(&bytes).unwrap_err(), expected);
}

#[test]
fn many_sequences_are_checked_in_no_time() {
    let sections: Vec<u8> = (0..200_000).flat_map(|n| sequence(&n.to_string())).collect();
    let bytes = raw(OpCode::Msg, &[NO_FLAGS, &sections, BODY]);
    assert_eq!(parse(&bytes).unwrap().sequences().count(), 200_000);
}

// MS-04
#[test]
fn the_body_may_come_last_and_in_the_middle() {
    let (before, after) = (sequence("a"), sequence("b"));
    let bytes = raw(OpCode::Msg, &[NO_FLAGS, &before, BODY, &after]);
    let message = parse(&bytes).unwrap();
    let names: Vec<&str> = message.sequences().map(|sequence| sequence.identifier()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(message.body().is_empty());
}

// MS-14
#[test]
fn a_damaged_byte_shows_in_the_checksum() {
    let whole = message(Flags::CHECKSUM_PRESENT, &rawdoc! { "ok": 1.5 }, &[]);
    assert!(parse(&whole).is_ok());
    // Not the flags, which say that there is a checksum, and not what the framer looks at.
    for at in (4..12).chain(20..whole.len()) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(matches!(parse(&damaged), Err(WireError::Checksum { .. })), "byte {at}");
    }
}

#[test]
fn every_cut_of_a_message_is_an_error() {
    let documents = vec![rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }];
    let body = rawdoc! { "insert": "birds" };
    let whole = message(Flags::NONE, &body, &[("documents", documents)]);
    // Right behind the body a message may end, if its header says so.
    let good_end = 16 + 4 + 1 + body.as_bytes().len();
    for end in (16..whole.len()).filter(|end| *end != good_end) {
        let cut = raw(OpCode::Msg, &[&whole[16..end]]);
        assert!(parse(&cut).is_err(), "{end}");
    }
}

// MS-01
#[test]
fn other_messages_are_no_substitute() {
    let compressed = raw(OpCode::Compressed, &[&[0; 20]]);
    let expected = WireError::UnexpectedOpCode { expected: OpCode::Msg, got: OpCode::Compressed };
    assert_eq!(Message::parse(frame(&compressed)).unwrap_err(), expected);
    let msg = message(Flags::NONE, &rawdoc! {}, &[]);
    assert!(Query::parse(frame(&msg)).is_err() && Reply::parse(frame(&msg)).is_err());
    let expected = WireError::FrameLength { expected: 26, got: 25 };
    assert_eq!(parse(&msg[..25]).unwrap_err(), expected);
}

#[test]
fn legacy_messages_may_be_as_large_as_the_limit() {
    let document = rawdoc! { "isMaster": 1 };
    let query =
        Query { flags: 0, collection: "admin.$cmd", skip: 0, limit: -1, document: &document };
    let mut bytes = Vec::new();
    let length = query.write(Ids::request(1), MessageLimit::DEFAULT, &mut bytes).unwrap();
    let [exact, less] =
        [length, length - 1].map(|bytes| MessageLimit::new(bytes as i64).expect("a limit"));
    assert_eq!(query.write(Ids::request(1), exact, &mut bytes), Ok(length));
    let refused = query.write(Ids::request(1), less, &mut bytes);
    assert_eq!(refused, Err(WireError::MessageTooLarge { got: length, max: less.bytes() }));
    assert_eq!(bytes.len(), 2 * length);
}

#[test]
fn legacy_messages_end_where_they_say() {
    let query: &[u8] = &[0, 0, 0, 0, b'a', 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let with = |rest: &[&[u8]]| raw(OpCode::Query, &[&[query], rest].concat());
    assert!(Query::parse(frame(&with(&[EMPTY]))).is_ok());
    assert!(Query::parse(frame(&with(&[EMPTY, EMPTY]))).is_ok());
    let trailing = WireError::TrailingBytes { offset: 40, count: 1 };
    assert_eq!(Query::parse(frame(&with(&[EMPTY, EMPTY, &[1]]))), Err(trailing));
    assert!(Query::parse(frame(&with(&[]))).is_err());

    let (flags, cursor, starting) = (8_u32.to_le_bytes(), 5_i64.to_le_bytes(), [0; 4]);
    let head = [&flags[..], &cursor, &starting].concat();
    let reply = |count: i32| raw(OpCode::Reply, &[&head, &count.to_le_bytes(), EMPTY, EMPTY]);
    let good = reply(2);
    let good = Reply::parse(frame(&good)).unwrap();
    assert_eq!((good.flags(), good.cursor_id(), good.documents().count()), (8, 5, 2));
    for expected in [-1, 0, 1, 3] {
        let error = Reply::parse(frame(&reply(expected))).unwrap_err();
        assert_eq!(error, WireError::DocumentCount { expected, got: 2 });
    }
    // Bit 1 of its flags says that the query failed.
    let failed = raw(OpCode::Reply, &[&2_u32.to_le_bytes(), &[0; 16]]);
    assert_eq!(Reply::parse(frame(&failed)).unwrap().flags(), Reply::QUERY_FAILURE);
}
