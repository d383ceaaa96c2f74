//! Arbitrary bytes as a stream of messages: no panic, the cuts of the stream make no difference,
//! and a parsed message can be written again with the same meaning.

use bson::{RawBsonRef, RawDocument};
use cenote_core::error::CommandError;
use cenote_core::wire::{
    Flags, Frame, Framer, HEADER_LENGTH, Ids, Message, MessageLimit, MessageWriter, OpCode, Query,
    Reply, WireError, decompress,
};

/// The first byte chooses how the rest is cut.
pub fn wire(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = frames(stream, stream.len().max(1));
    let pieces = frames(stream, usize::from(*cut).max(1));
    assert_eq!(whole, pieces, "the cut makes a difference");
    for frame in whole.0 {
        message(&frame);
    }
}

/// All messages, and the end of the stream.
fn frames(stream: &[u8], cut: usize) -> (Vec<Vec<u8>>, Result<(), WireError>) {
    let mut framer = Framer::new(limit());
    let mut found = Vec::new();
    for piece in stream.chunks(cut) {
        framer.push(piece);
        while let Ok(Some(frame)) = framer.next_frame() {
            found.push(frame.bytes().to_vec());
        }
        let most = stream.len().max(4096) * 2;
        assert!(framer.capacity() <= most, "memory is bounded by the received bytes");
    }
    (found, framer.finish())
}

fn message(bytes: &[u8]) {
    let frame = Frame::new(bytes, limit()).expect("the framer has accepted it");
    let mut scratch = Vec::new();
    let Ok(frame) = decompress(frame, limit(), &mut scratch) else { return };
    match frame.header().op_code {
        OpCode::Msg => drop(Message::parse(frame).map(|message| {
            again(&message);
            looked_at_shortly(message.body());
        })),
        OpCode::Query => drop(Query::parse(frame).map(|query| query_again(&query))),
        OpCode::Reply => drop(Reply::parse(frame).map(|reply| reply.documents().count())),
        OpCode::Compressed | _ => panic!("compressed twice"),
    }
}

fn again(message: &Message<'_>) {
    let flags = Flags { checksum_present: true, ..message.flags() };
    let mut bytes = vec![0; HEADER_LENGTH];
    let mut writer = MessageWriter::new(&mut bytes, message.header().ids, flags, message.body());
    for sequence in message.sequences() {
        writer
            .sequence(sequence.identifier(), sequence.documents())
            .expect("a name that was parsed");
    }
    // Only the checksum differs.
    let largest = MessageLimit::new(i64::from(i32::MAX)).expect("a length that fits the field");
    writer.finish(largest).expect("as large as before");
    let frame = Frame::new(&bytes[HEADER_LENGTH..], largest);
    let second = Message::parse(frame.expect("a whole message")).expect("as it was written");
    assert_eq!(second.body(), message.body());
    assert_eq!(second.flags(), flags);
    assert_eq!(second.command_name(), message.command_name());
    let sequences = second.sequences().zip(message.sequences());
    assert_eq!(second.sequences().count(), message.sequences().count());
    for (a, b) in sequences {
        assert_eq!(a.identifier(), b.identifier());
        assert!(a.documents().eq(b.documents()));
    }
}

/// The usual command and the usual reply are looked at once: as a reader finds them that reads every element.
fn looked_at_shortly(body: &RawDocument) {
    let has_name = body.iter().next().is_some_and(|first| first.is_ok());
    let expected = match body.get("$db") {
        _ if !has_name => Err(WireError::EmptyCommand),
        Ok(Some(_)) => Err(WireError::DatabaseTwice),
        Ok(None) | Err(_) => Ok(()),
    };
    let (mut bytes, ids) = (Vec::new(), Ids::request(1));
    let written = MessageWriter::command(&mut bytes, ids, Flags::NONE, body, "admin").map(drop);
    assert_eq!(written, expected);
    if CommandError::from_reply(body).is_none() {
        let elements = || body.iter_elements().map_while(Result::ok);
        let named = |key| elements().filter(move |it| it.key().as_str() == key);
        let value = |key| named(key).find_map(|it| it.value().ok());
        assert!(
            value("ok").is_some_and(|ok| ok.as_bool() != Some(false) && as_f64(ok) != Some(0.0))
        );
        assert_eq!(value("writeConcernError").and_then(RawBsonRef::as_document), None);
    }
}

fn as_f64(value: RawBsonRef<'_>) -> Option<f64> {
    value.as_f64().or(value.as_i32().map(f64::from)).or(value.as_i64().map(|it| it as f64))
}

fn query_again(query: &Query<'_>) {
    let mut bytes = Vec::new();
    let ids = Ids::request(1);
    let largest = MessageLimit::new(i64::from(i32::MAX)).expect("a length that fits the field");
    query.write(ids, largest, &mut bytes).expect("as large as before");
    let frame = Frame::new(&bytes, largest).expect("a whole message");
    assert_eq!(Query::parse(frame).as_ref(), Ok(query));
}

/// A small limit that a fuzzer reaches.
fn limit() -> MessageLimit {
    MessageLimit::new(1 << 20).expect("a limit above the header")
}

#[cfg(test)]
mod tests {
    use super::wire;

    #[test]
    fn a_few_streams_by_hand() {
        let ping = b"\x1a\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x05\0\0\0\0";
        for cut in [0, 1, 7, 25, 255] {
            wire(&[&[cut], &ping[..], &ping[..], &ping[..9]].concat());
        }
        // `{ ok: 1.0 }` and `{ ping: 1 }` are looked at shortly.
        for body in
            [&b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xF0\x3F\0"[..], b"\x0F\0\0\0\x10ping\0\x01\0\0\0\0"]
        {
            let length = [21 + body.len() as u8, 0, 0, 0];
            wire(&[&[9], &length[..], &ping[4..21], body].concat());
        }
        wire(&[]);
        wire(&[3]);
        wire(&[0xFF; 100]);
    }
}
