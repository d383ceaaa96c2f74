use super::reader::Reader;
use super::{
    Amount, Compressor, CompressorId, Frame, HEADER_LENGTH, Header, MessageLimit, OpCode, WireError,
};

mod snappy;
mod zlib;
mod zstandard;

/// Header, originalOpcode, uncompressedSize and compressorId.
const PREFIX: usize = HEADER_LENGTH + 4 + 4 + 1;

impl Compressor {
    /// Writes `message`, which must be a whole one, as an OP_COMPRESSED to the end of `buffer` and
    /// gives its length in bytes. Whether it *may* be compressed is
    /// [`may_compress`](super::may_compress)'s to say.
    ///
    /// A message that compression makes larger is sent so all the same: once agreed, every message
    /// that may be compressed is.
    ///
    /// # Errors
    ///
    /// [`WireError::NestedCompression`] for one that is compressed already,
    /// [`WireError::MessageTooLarge`] when the result exceeds the limit, [`WireError::Compress`];
    /// after each the buffer is as it was.
    // CM-07
    pub fn compress(
        self,
        message: Frame<'_>,
        limit: MessageLimit,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, WireError> {
        let start = buffer.len();
        let result = self.append(message, limit, buffer);
        if result.is_err() {
            buffer.truncate(start);
        }
        result
    }

    fn append(
        self,
        message: Frame<'_>,
        limit: MessageLimit,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, WireError> {
        let Header { message_length, ids, op_code } = message.header();
        if op_code == OpCode::Compressed {
            return Err(WireError::NestedCompression);
        }
        let start = buffer.len();
        buffer.extend([0; HEADER_LENGTH]);
        buffer.extend(op_code.number().to_le_bytes());
        buffer.extend((message_length - HEADER_LENGTH as u32).to_le_bytes());
        buffer.push(self.id.number());
        self.append_payload(&message.bytes()[HEADER_LENGTH..], buffer)?;
        let got = buffer.len() - start;
        let message_length = u32::try_from(got).unwrap_or(u32::MAX);
        if message_length > limit.bytes() {
            return Err(WireError::MessageTooLarge { got, max: limit.bytes() });
        }
        let header = Header { message_length, ids, op_code: OpCode::Compressed };
        buffer[start..][..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
        Ok(got)
    }

    fn append_payload(self, input: &[u8], buffer: &mut Vec<u8>) -> Result<(), WireError> {
        match self.id {
            CompressorId::Noop => {
                buffer.extend_from_slice(input);
                Ok(())
            }
            CompressorId::Snappy => snappy::compress(input, buffer),
            CompressorId::Zlib => zlib::compress(input, self.zlib_level, buffer),
            CompressorId::Zstd => zstandard::compress(input, buffer),
        }
    }
}

/// What an OP_COMPRESSED holds; any other message as it is, for a reply may be compressed or not as
/// the server likes, with any compressor.
///
/// `scratch` is where the message is put together again, with a header as if it had come
/// uncompressed; what it held before is gone. It never grows beyond the size that the message says,
/// which is checked first, and no further than the compressed bytes can stand for: only for zstd,
/// where no such ratio exists, it is as large as the message says from the beginning.
///
/// # Errors
///
/// [`WireError::UncompressedSize`], [`WireError::UncompressedMismatch`],
/// [`WireError::UnknownCompressor`], [`WireError::CompressorNotBuilt`],
/// [`WireError::NestedCompression`], [`WireError::UnknownOpCode`], [`WireError::Corrupt`],
/// [`WireError::Cut`].
// CM-08
pub fn decompress<'a>(
    frame: Frame<'a>,
    limit: MessageLimit,
    scratch: &'a mut Vec<u8>,
) -> Result<Frame<'a>, WireError> {
    if frame.header().op_code != OpCode::Compressed {
        return Ok(frame);
    }
    let mut reader = Reader::new(frame.bytes(), HEADER_LENGTH);
    let op_code = OpCode::from_number(reader.i32("originalOpcode")?)?;
    if op_code == OpCode::Compressed {
        return Err(WireError::NestedCompression);
    }
    let size = uncompressed_size(reader.i32("uncompressedSize")?, limit)?;
    let id = CompressorId::from_number(reader.u8("compressorId")?)?;
    let input = &frame.bytes()[PREFIX..];

    let message_length = size + HEADER_LENGTH as u32;
    let header = Header { message_length, ids: frame.header().ids, op_code };
    scratch.clear();
    scratch.extend(header.to_bytes());
    Payload { input, size: size as usize }.append(id, scratch)?;
    Frame::new(scratch, limit)
}

// CM-13
fn uncompressed_size(got: i32, limit: MessageLimit) -> Result<u32, WireError> {
    let max = limit.bytes() - HEADER_LENGTH as u32;
    let size = u32::try_from(got).ok().filter(|size| *size <= max);
    size.ok_or(WireError::UncompressedSize { got, max })
}

/// Compressed bytes, and what they say they stand for.
#[derive(Clone, Copy)]
struct Payload<'a> {
    input: &'a [u8],
    size: usize,
}

impl Payload<'_> {
    fn append(self, id: CompressorId, out: &mut Vec<u8>) -> Result<(), WireError> {
        let before = out.len();
        match id {
            CompressorId::Noop => {
                self.check(id, self.input.len())?;
                out.extend_from_slice(self.input);
            }
            CompressorId::Snappy => snappy::decompress(self, out)?,
            CompressorId::Zlib => zlib::decompress(self, out)?,
            CompressorId::Zstd => zstandard::decompress(self, out)?,
        }
        self.check(id, out.len() - before)
    }

    fn check(self, id: CompressorId, got: usize) -> Result<(), WireError> {
        match got == self.size {
            true => Ok(()),
            false => Err(self.mismatch(id, Amount::Bytes(got as u64))),
        }
    }

    fn mismatch(self, id: CompressorId, got: Amount) -> WireError {
        WireError::UncompressedMismatch { id, expected: self.size, got }
    }
}
