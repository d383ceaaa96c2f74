//! What needs more than one file of `wire`.

mod bad_input;
mod channel;
mod compression;
mod document;
mod framing;
mod round_trip;

use bson::{RawDocument, RawDocumentBuf};

use super::{Flags, Frame, Header, Ids, Message, MessageLimit, MessageWriter, OpCode, WireError};

const LIMIT: MessageLimit = MessageLimit::DEFAULT;

/// A message of that kind with whatever behind its header.
fn raw(op_code: OpCode, parts: &[&[u8]]) -> Vec<u8> {
    let payload = parts.concat();
    let message_length = 16 + payload.len() as u32;
    let header = Header { message_length, ids: Ids::request(1), op_code };
    [&header.to_bytes(), payload.as_slice()].concat()
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    Frame::new(bytes, LIMIT).unwrap()
}

fn parse(bytes: &[u8]) -> Result<Message<'_>, WireError> {
    Message::parse(Frame::new(bytes, LIMIT)?)
}

fn message(flags: Flags, body: &RawDocument, sequences: &[(&str, Vec<RawDocumentBuf>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, Ids::request(1), flags, body);
    for (identifier, documents) in sequences {
        writer.sequence(identifier, documents).unwrap();
    }
    writer.finish(LIMIT).unwrap();
    bytes
}
