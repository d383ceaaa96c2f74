//! The bytes of what the server says, which may be no message at all.

use bson::RawDocumentBuf;
use cenote_core::wire::{Compressor, Frame, MessageLimit, ZlibLevel};
use serde_json::{Value, json};

use super::expectation::Heard;
use super::scram::Scram;
use super::script::{Checksum, Flag, Says};
use super::value;

/// What a message said of itself, for what follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    request_id: i32,
    is_followed: bool,
}

const OP_MSG: i32 = 2013;
const HEADER: usize = 16;
const CHECKSUM: usize = 4;
/// That of a server whose script says none.
const WIRE_VERSION: i32 = 25;
/// The number of the server's first message.
const FIRST: i32 = 1000;

/// # Errors
///
/// What stands in the file cannot be said.
pub(super) fn say(
    says: &Says,
    heard: &Heard,
    before: Option<Said>,
    scram: &mut Scram,
) -> Result<(Said, Vec<u8>), String> {
    let request_id = before.map_or(FIRST, |before| before.request_id + 1);
    // A reply that follows another one answers that (MS-09).
    let due = before.filter(|before| before.is_followed).map(|before| before.request_id);
    let response_to = says.response_to.or(due).unwrap_or(heard.request_id);
    let mut body = says.body.clone();
    if let Some(how) = &says.scram {
        let payload = scram.answer(how, &heard.body)?;
        // Within hello, the conversation is a document of its own (HS-45).
        let place = match body.get_mut("speculativeAuthenticate") {
            Some(Value::Object(within)) => within,
            Some(_) | None => &mut body,
        };
        place.insert("payload".to_owned(), json!({ "$text": payload }));
    }
    let is_hello = ["hello", "ismaster"].contains(&heard.command.to_ascii_lowercase().as_str());
    if is_hello && !body.contains_key("maxWireVersion") && body.get("ok") == Some(&json!(1)) {
        body.insert("maxWireVersion".to_owned(), json!(WIRE_VERSION));
    }
    let mut sections = vec![0];
    sections.extend_from_slice(value::written(&body)?.as_bytes());
    for sequence in &says.sequences {
        let documents: Result<Vec<_>, _> = sequence.documents.iter().map(value::written).collect();
        sections.push(1);
        sections.extend(section(&sequence.identifier, &documents?));
    }
    if let Some(kind) = says.section {
        sections.push(kind);
        sections.extend(section("", &[]));
    }
    let flags = Flag::bits(&says.flags) | says.flag_bits;
    let mut message = vec![0; HEADER];
    message.extend(flags.to_le_bytes());
    message.extend(sections);
    let checksum = says.checksum.map_or(0, |_| CHECKSUM);
    let length = number(message.len() + checksum)?;
    for (at, number) in [(0, length), (4, request_id), (8, response_to), (12, OP_MSG)] {
        put(&mut message, at, number);
    }
    if let Some(checksum) = says.checksum {
        let right = crc32c(&message);
        let said = if checksum == Checksum::Right { right } else { !right };
        message.extend(said.to_le_bytes());
    }
    let mut message = compressed(says, message)?;
    let lies = [(0, says.message_length), (12, says.op_code), (20, says.uncompressed_size)];
    for (at, lie) in lies {
        lie.into_iter().for_each(|number| put(&mut message, at, number));
    }
    if let (Some(lie), Some(id)) = (says.compressor_id, message.get_mut(24)) {
        *id = lie;
    }
    let is_followed = flags & Flag::MoreToCome.bit() != 0;
    Ok((Said { request_id, is_followed }, message))
}

fn compressed(says: &Says, message: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some(id) = says.compressed else {
        if says.uncompressed_size.is_some() || says.compressor_id.is_some() {
            return Err("what is not compressed cannot lie about how it is".to_owned());
        }
        return Ok(message);
    };
    let compress = || {
        let limit = MessageLimit::DEFAULT;
        let mut compressed = Vec::new();
        let compressor = Compressor::new(id, ZlibLevel::DEFAULT)?;
        compressor.compress(Frame::new(&message, limit)?, limit, &mut compressed)?;
        Ok(compressed)
    };
    compress().map_err(|error: cenote_core::wire::WireError| error.to_string())
}

/// A section of documents, without its kind.
fn section(identifier: &str, documents: &[RawDocumentBuf]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(identifier.bytes().chain([0]));
    documents.iter().for_each(|document| bytes.extend(document.as_bytes()));
    let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    put(&mut bytes, 0, length);
    bytes
}

/// The checksum of OP_MSG, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    let step = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ POLYNOMIAL };
    let add = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(!0, add)
}

fn number(length: usize) -> Result<i32, String> {
    i32::try_from(length).map_err(|_| "no message is so long".to_owned())
}

fn put(message: &mut [u8], at: usize, number: i32) {
    if let Some(place) = message.get_mut(at..at + 4) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}
