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
