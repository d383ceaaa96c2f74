use bson::rawdoc;

use super::{LIMIT, message};
use crate::wire::{Flags, Framer, Header, Ids, MessageLimit, OpCode, WireError};

fn header(message_length: u32) -> [u8; 16] {
    Header { message_length, ids: Ids::request(1), op_code: OpCode::Msg }.to_bytes()
}

#[test]
fn a_claim_costs_nothing() {
    let mut framer = Framer::new(LIMIT);
    framer.push(&header(48_000_000));
    assert_eq!(framer.next_frame(), Ok(None));
    let mut received = 16;
    while received < 1_000_000 {
        let spare = framer.spare();
        received += spare.len();
        let all = spare.len();
        framer.filled(all);
        assert_eq!(framer.next_frame(), Ok(None));
        assert!(framer.capacity() <= (2 * received).max(8192), "{received}");
    }
}

#[test]
fn memory_ends_with_the_message() {
    const LENGTH: usize = 1_000_000;
    let mut framer = Framer::new(LIMIT);
    framer.push(&header(LENGTH as u32));
    let mut received = 16;
    while received < LENGTH {
        let count = framer.spare().len();
        received += count;
        framer.filled(count);
    }
    assert_eq!((received, framer.capacity()), (LENGTH, LENGTH));
    assert_eq!(framer.next_frame().map(|frame| frame.unwrap().bytes().len()), Ok(LENGTH));
    assert_eq!(framer.spare().len(), LENGTH, "the buffer is used again");
    framer.release();
    assert!(framer.capacity() <= 4096 && framer.is_empty());
}

#[test]
fn small_messages_never_make_it_grow() {
    let bytes = message(Flags::NONE, &rawdoc! { "ok": 1 }, &[]);
    let mut framer = Framer::new(LIMIT);
    for _ in 0..10_000 {
        framer.push(&bytes);
        framer.push(&bytes[..7]);
        assert!(framer.next_frame().unwrap().is_some() && !framer.is_empty());
        framer.push(&bytes[7..]);
        assert!(framer.next_frame().unwrap().is_some() && framer.is_empty());
    }
    assert_eq!(framer.capacity(), 4096);
}

#[test]
fn an_error_stays() {
    let mut framer = Framer::new(LIMIT);
    framer.push(&header(15));
    let error = WireError::MessageLength { got: 15, max: 48_000_000 };
    for _ in 0..2 {
        assert_eq!(framer.next_frame(), Err(error.clone()));
        framer.push(&message(Flags::NONE, &rawdoc! {}, &[]));
        assert!(framer.spare().is_empty() && !framer.is_empty());
    }
    assert_eq!(framer.finish(), Err(error));
}

// CO-20
#[test]
fn the_limit_can_be_set_later() {
    let mut framer = Framer::new(MessageLimit::new(100).unwrap());
    framer.push(&[&header(16)[..], &header(101)].concat());
    assert!(framer.next_frame().unwrap().is_some());
    framer.set_limit(LIMIT);
    assert_eq!(framer.next_frame(), Ok(None));
    framer.set_limit(MessageLimit::new(100).unwrap());
    let error = WireError::MessageLength { got: 101, max: 100 };
    assert_eq!(framer.next_frame(), Err(error));
}

#[test]
fn the_end_of_the_stream_is_fine_between_messages() {
    let bytes = message(Flags::NONE, &rawdoc! {}, &[]);
    for cut in 0..=bytes.len() {
        let mut framer = Framer::new(LIMIT);
        framer.push(&bytes);
        assert!(framer.next_frame().unwrap().is_some());
        framer.push(&bytes[..cut]);
        let expected = (cut >= 16).then_some(26);
        let end =
            if cut == 0 { Ok(()) } else { Err(WireError::EndOfStream { got: cut, expected }) };
        assert_eq!(framer.finish(), end);
    }
}

/// Whatever the size and whatever lies behind it, and the next one is whole, too.
#[test]
fn a_message_can_be_kept() {
    let small = message(Flags::NONE, &rawdoc! { "ok": 1 }, &[]);
    let text = "x".repeat(100_000);
    let large = message(Flags::NONE, &rawdoc! { "text": text.as_str() }, &[]);
    for (first, second) in [(&small, &large), (&large, &small), (&large, &large)] {
        for cut in [0, 1, 15, 17, second.len()] {
            let mut framer = Framer::new(LIMIT);
            framer.push(&first[..first.len() - 1]);
            assert_eq!(framer.next_message(), Ok(None));
            framer.push(&first[first.len() - 1..]);
            framer.push(&second[..cut]);
            assert_eq!(framer.next_message().unwrap().as_ref(), Some(first));
            assert_eq!(framer.is_empty(), cut == 0);
            framer.push(&second[cut..]);
            assert_eq!(framer.next_message().unwrap().as_ref(), Some(second));
            assert!(framer.is_empty());
        }
    }
}

#[test]
fn a_message_can_be_kept_behind_one_that_was_only_read() {
    let small = message(Flags::NONE, &rawdoc! { "ok": 1 }, &[]);
    let text = "x".repeat(100_000);
    let large = message(Flags::NONE, &rawdoc! { "text": text.as_str() }, &[]);
    for second in [small.clone(), large] {
        let mut framer = Framer::new(LIMIT);
        framer.push(&[&*small, &*second].concat());
        assert!(framer.next_frame().unwrap().is_some());
        assert_eq!(framer.next_message(), Ok(Some(second)));
        assert!(framer.is_empty());
    }
}

#[test]
fn a_large_message_is_kept_where_it_was_received() {
    let text = "x".repeat(100_000);
    let large = message(Flags::NONE, &rawdoc! { "text": text.as_str() }, &[]);
    let mut framer = Framer::new(LIMIT);
    for part in large.chunks(4096) {
        framer.push(part);
    }
    let capacity = framer.capacity();
    let kept = framer.next_message().unwrap().unwrap();
    assert_eq!((kept.capacity(), framer.capacity()), (capacity, 0), "the buffer has gone with it");
    assert_eq!(kept, large);
}

#[test]
fn what_a_frame_is_can_be_asked_without_reading_all_of_it() {
    let sequence = [("documents", vec![rawdoc! { "_id": 1 }])];
    let mut bytes = message(Flags::MORE_TO_COME, &rawdoc! { "insert": "c" }, &sequence);
    assert_eq!(super::frame(&bytes).flags(), Ok(Flags::MORE_TO_COME));
    assert_eq!(super::frame(&bytes).command_name(), Some("insert"));
    // The body may come last, and there may be none.
    let body = bytes.split_off(20);
    let (body, sequence) = body.split_at(1 + rawdoc! { "insert": "c" }.as_bytes().len());
    let last = [&bytes, sequence, body].concat();
    assert_eq!(super::frame(&last).command_name(), Some("insert"));
    for length in 16..last.len() {
        let mut cut = last[..length].to_vec();
        cut[..4].copy_from_slice(&(length as u32).to_le_bytes());
        let name = super::frame(&cut).command_name();
        assert!(name.is_none() || length > 20 + sequence.len() + 1 + 5 + 6, "{length}");
    }
    let reply = super::raw(OpCode::Reply, &[&[0; 20]]);
    assert!(super::frame(&reply).flags().is_err());
}

#[test]
fn a_stream_that_ends_too_early_says_how_much_was_there() {
    let ended = |got, expected| WireError::EndOfStream { got, expected }.to_string();
    let within = "the stream ended after 20 bytes of a message of 40";
    assert_eq!(ended(20, Some(40)), within);
    let before = "the stream ended after 3 bytes of a message of unknown length";
    assert_eq!(ended(3, None), before);
}
