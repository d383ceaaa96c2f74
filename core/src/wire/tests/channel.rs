//! One connection's messages, put together.

use bson::rawdoc;

use super::super::{Channel, Compressor, CompressorId, RequestIds, ZlibLevel};
use super::*;

fn answer(response_to: i32, body: &RawDocument) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ids = Ids { request_id: 7, response_to };
    MessageWriter::new(&mut bytes, ids, Flags::NONE, body).finish(LIMIT).unwrap();
    bytes
}

fn receive(channel: &mut Channel, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let spare = channel.spare();
        let count = spare.len().min(bytes.len());
        spare[..count].copy_from_slice(&bytes[..count]);
        channel.filled(count);
        bytes = &bytes[count..];
    }
}

fn ping(channel: &mut Channel) -> Result<(), WireError> {
    channel.begin(&rawdoc! { "ping": 1 }, Some("admin"), Flags::NONE)
}

#[test]
fn one_thing_at_a_time() {
    let mut channel = Channel::new();
    assert!(channel.is_reusable() && !channel.awaits_reply() && channel.outgoing().is_empty());
    ping(&mut channel).unwrap();
    let begun = channel.outgoing().to_vec();
    assert!(channel.is_writing() && !channel.is_reusable());
    // What is being written stays as it is.
    assert_eq!(ping(&mut channel), Err(WireError::NotYourTurn));
    assert_eq!(channel.outgoing(), begun);
    assert_eq!(channel.begin_message(&begun), Err(WireError::NotYourTurn));
    assert_eq!(channel.begin_borrowed(&begun), Err(WireError::NotYourTurn));
    assert_eq!(channel.lend().err(), Some(WireError::NotYourTurn));
    assert_eq!(channel.outgoing(), begun);
    channel.written();
    assert!(!channel.is_writing() && channel.awaits_reply() && channel.outgoing().is_empty());
    assert_eq!(ping(&mut channel), Err(WireError::NotYourTurn));

    receive(&mut channel, &answer(1, &rawdoc! { "ok": 1 }));
    assert!(!channel.is_reusable());
    assert_eq!(channel.reply().unwrap().unwrap().get_i32("ok").unwrap(), 1);
    assert!(channel.is_reusable() && channel.reply().unwrap().is_none());
    channel.end().unwrap();
    channel.lend().unwrap();
    assert!(!channel.is_reusable());
}

#[test]
fn a_large_reply_keeps_the_memory_into_which_it_was_read() {
    let mut channel = Channel::new();
    ping(&mut channel).unwrap();
    channel.written();
    let body = rawdoc! { "text": "x".repeat(100_000), "ok": 1 };
    let bytes = answer(1, &body);
    receive(&mut channel, &bytes[..90_000]);
    assert!(channel.reply().unwrap().is_none());
    let read_into = channel.spare().as_ptr().addr();
    receive(&mut channel, &bytes[90_000..]);
    let reply = channel.reply().unwrap().unwrap();
    assert_eq!(reply.as_bytes().as_ptr().addr(), read_into - 90_000);
    assert_eq!(reply, body);
    assert!(channel.is_reusable());
}

/// What is not written leaves nothing, whether it is compressed or not.
#[test]
fn what_was_begun_can_be_withdrawn() {
    let mut channel = Channel::new();
    for compressor in [None, Compressor::new(CompressorId::Zlib, ZlibLevel::DEFAULT).ok()] {
        channel.agree(LIMIT, compressor);
        ping(&mut channel).unwrap();
        channel.withdraw();
        assert!(channel.is_reusable() && !channel.is_writing() && channel.outgoing().is_empty());
    }
    ping(&mut channel).unwrap();
    channel.written();
    receive(&mut channel, &answer(3, &rawdoc! { "ok": 1 }));
    assert!(channel.reply().unwrap().is_some(), "the third request is answered");
}

#[test]
#[should_panic(expected = "no request is being written")]
fn nothing_can_be_withdrawn_that_was_not_begun() {
    Channel::new().withdraw();
}

#[test]
fn what_the_other_side_does_wrong_is_told_and_costs_the_connection() {
    let mut channel = Channel::new();
    ping(&mut channel).unwrap();
    channel.written();
    let reply = answer(1, &rawdoc! { "ok": 1 });
    receive(&mut channel, &reply[..reply.len() - 1]);
    assert!(channel.reply().unwrap().is_none());
    assert!(matches!(channel.end(), Err(WireError::EndOfStream { .. })));

    let mut channel = Channel::new();
    ping(&mut channel).unwrap();
    channel.written();
    receive(&mut channel, &answer(2, &rawdoc! { "ok": 1 }));
    channel.reply().unwrap_err();
    assert!(!channel.is_reusable());
}

#[cfg(feature = "zlib")]
#[test]
fn what_may_be_compressed_is_so_as_soon_as_that_is_agreed() {
    use super::super::{Compressor, CompressorId, ZlibLevel};

    let mut channel = Channel::new();
    let large = rawdoc! { "insert": "c", "text": "a".repeat(4000) };
    let mut plain = Vec::new();
    let ids = Ids::request(1);
    MessageWriter::command(&mut plain, ids, Flags::NONE, &large, "db")
        .unwrap()
        .finish(LIMIT)
        .unwrap();
    assert_eq!(channel.begin_borrowed(&plain).unwrap().as_ptr(), plain.as_ptr(), "no copy");
    channel.written();
    receive(&mut channel, &answer(1, &rawdoc! { "ok": 1 }));
    let _: super::super::MessageBuf = channel.reply_message().unwrap().unwrap();

    let zlib = Compressor::new(CompressorId::Zlib, ZlibLevel::DEFAULT).unwrap();
    channel.agree(LIMIT, Some(zlib));
    for borrowed in [true, false] {
        let length = if borrowed {
            channel.begin_borrowed(&plain).unwrap().len()
        } else {
            channel.begin_message(&plain).unwrap();
            channel.outgoing().len()
        };
        assert!(length < 200, "{length} bytes");
        channel.written();
        receive(&mut channel, &answer(1, &rawdoc! { "ok": 1 }));
        channel.reply().unwrap().unwrap();
    }
    // CM-10.
    channel.begin(&rawdoc! { "hello": 1, "$db": "admin" }, None, Flags::NONE).unwrap();
    assert_eq!(frame(channel.outgoing()).header().op_code, OpCode::Msg);
}

#[test]
fn a_write_without_a_reply_is_over_when_it_is_written() {
    let mut channel = Channel::new();
    let insert = rawdoc! { "insert": "c", "writeConcern": { "w": 0 } };
    channel.begin(&insert, Some("db"), Flags::MORE_TO_COME).unwrap();
    channel.written();
    assert!(channel.is_reusable() && !channel.awaits_reply());
}

#[test]
fn messages_are_as_large_as_the_server_allows() {
    let mut channel = Channel::new();
    assert_eq!(channel.limit(), MessageLimit::DEFAULT);
    let limit = MessageLimit::new(50_000).unwrap();
    channel.agree(limit, None);
    assert_eq!(channel.limit(), limit);
    let body = rawdoc! { "insert": "x".repeat(50_000) };
    let refused = channel.begin(&body, None, Flags::NONE).unwrap_err();
    assert!(matches!(refused, WireError::MessageTooLarge { .. }), "{refused:?}");
    ping(&mut channel).unwrap();
}

/// A server that streams may answer the request again and again, to monitors.
#[test]
fn monitors_are_lenient_with_streams() {
    for (mut channel, is_lenient) in [(Channel::new(), false), (Channel::lenient(), true)] {
        channel.begin(&rawdoc! { "hello": 1 }, Some("admin"), Flags::EXHAUST_ALLOWED).unwrap();
        channel.written();
        let mut bytes = Vec::new();
        let ids = Ids { request_id: 7, response_to: 1 };
        let body = rawdoc! { "ok": 1 };
        MessageWriter::new(&mut bytes, ids, Flags::MORE_TO_COME, &body).finish(LIMIT).unwrap();
        receive(&mut channel, &bytes);
        assert!(channel.reply().unwrap().is_some());
        receive(&mut channel, &bytes);
        assert_eq!(channel.reply().is_ok(), is_lenient);
    }
}

#[test]
fn a_connection_numbers_its_requests_from_where_it_is_told() {
    let mut channel = Channel::new().with_request_ids(RequestIds::after(i32::MAX - 1));
    for id in [i32::MAX, 1] {
        ping(&mut channel).unwrap();
        channel.written();
        receive(&mut channel, &answer(id, &rawdoc! { "ok": 1 }));
        assert!(channel.reply().unwrap().is_some());
    }
}
