//! Replies that are well-formed and too much.

use std::io::Write as _;

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::wire::{CompressorId, HEADER_LENGTH, Header, Ids, OpCode, WireError};
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// An OP_COMPRESSED of a few bytes that holds a reply with so many zeros: a thousandth of them, so
/// nothing here is as large as what comes out of it.
///
/// # Errors
///
/// [`WireError::Compress`].
pub(super) fn inflating(ids: Ids, zeros: u32, claimed: Option<i32>) -> Result<Vec<u8>, WireError> {
    /// What the reply has besides them, and what stays below 2 GiB with it.
    const ROOM: u32 = 1024;
    let zeros = zeros.min(i32::MAX as u32 - ROOM);
    let (before, after) = around(zeros);
    let size = before.len() + zeros as usize + after.len();
    let mut bytes = vec![0; HEADER_LENGTH];
    bytes.extend(OpCode::Msg.number().to_le_bytes());
    bytes.extend(claimed.unwrap_or(size as i32).to_le_bytes());
    bytes.push(CompressorId::Zlib.number());
    let mut encoder = ZlibEncoder::new(&mut bytes, Compression::default());
    let written = encoder
        .write_all(&before)
        .and_then(|()| write_zeros(&mut encoder, zeros as usize))
        .and_then(|()| encoder.write_all(&after))
        .and_then(|()| encoder.try_finish());
    drop(encoder);
    written.map_err(|error| WireError::Compress {
        id: CompressorId::Zlib,
        reason: error.to_string(),
    })?;
    let message_length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let header = Header { message_length, ids, op_code: OpCode::Compressed };
    bytes[..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    Ok(bytes)
}

/// Flags, section and document up to the zeros, and what comes after them.
fn around(zeros: u32) -> (Vec<u8>, Vec<u8>) {
    const NO_FLAGS: [u8; 4] = [0; 4];
    const BODY: u8 = 0;
    const BINARY: u8 = 5;
    const GENERIC: u8 = 0;
    let ok = rawdoc! { "ok": 1.0 };
    let elements = &ok.as_bytes()[4..ok.as_bytes().len() - 1];
    let mut rest = elements.to_vec();
    rest.push(BINARY);
    rest.extend_from_slice(b"bomb\0");
    rest.extend(zeros.to_le_bytes());
    rest.push(GENERIC);
    let document = 4 + rest.len() as u32 + zeros + 1;
    let mut before = NO_FLAGS.to_vec();
    before.push(BODY);
    before.extend(document.to_le_bytes());
    before.extend(rest);
    (before, vec![0])
}

fn write_zeros(encoder: &mut impl std::io::Write, mut left: usize) -> std::io::Result<()> {
    let zeros = vec![0; 64 * 1024];
    while left > 0 {
        let count = left.min(zeros.len());
        encoder.write_all(&zeros[..count])?;
        left -= count;
    }
    Ok(())
}

/// A document with so many documents within each other, and `ok: 1` before them.
pub(super) fn deep(levels: u32) -> RawDocumentBuf {
    const MOST: usize = 1_000_000;
    /// Length, type, `d`, its end, and the end of the document.
    const LEVEL: usize = 8;
    const DOCUMENT: u8 = 3;
    let levels = (levels as usize).min(MOST);
    let mut bytes = Vec::with_capacity(levels * LEVEL + 32);
    // A document and all within it: what is left of the levels, and the empty innermost one.
    let length = |left: usize| (left * LEVEL + 5) as u32;
    let ok = rawdoc! { "ok": 1.0 };
    let elements = &ok.as_bytes()[4..ok.as_bytes().len() - 1];
    bytes.extend((length(levels) + elements.len() as u32).to_le_bytes());
    bytes.extend_from_slice(elements);
    for left in (0..levels).rev() {
        bytes.extend_from_slice(&[DOCUMENT, b'd', 0]);
        bytes.extend(length(left).to_le_bytes());
    }
    bytes.resize(bytes.len() + levels + 1, 0);
    let document = RawDocument::from_bytes(&bytes).map(RawDocument::to_owned);
    document.unwrap_or(ok)
}

#[cfg(test)]
mod tests {
    use bson::RawDocumentBuf;
    use cenote_core::wire::{
        Frame, Ids, MAX_DEPTH, Message, MessageLimit, check_document, decompress,
    };

    use super::{deep, inflating};

    #[test]
    fn a_bomb_that_is_small_enough_is_a_reply() {
        let bytes = inflating(Ids { request_id: 2, response_to: 1 }, 100_000, None).unwrap();
        assert!(bytes.len() < 1000, "{} bytes", bytes.len());
        let (limit, mut scratch) = (MessageLimit::DEFAULT, Vec::new());
        let frame = Frame::new(&bytes, limit).unwrap();
        let message = Message::parse(decompress(frame, limit, &mut scratch).unwrap()).unwrap();
        assert_eq!(message.body().get_f64("ok").ok(), Some(1.0));
        assert_eq!(message.body().get_binary("bomb").unwrap().bytes.len(), 100_000);
    }

    #[test]
    fn levels_are_as_many_as_asked_for() {
        let depth = |document: RawDocumentBuf| check_document(document.as_bytes(), 0).is_ok();
        assert!(depth(deep(0)));
        assert!(depth(deep(MAX_DEPTH as u32 - 1)));
        assert!(!depth(deep(MAX_DEPTH as u32)));
        assert_eq!(deep(0), bson::rawdoc! { "ok": 1.0 });
        assert_eq!(deep(1), bson::rawdoc! { "ok": 1.0, "d": {} });
    }
}
