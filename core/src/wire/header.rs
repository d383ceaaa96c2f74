use core::fmt;

use super::WireError;
use super::reader::Reader;

/// Bytes of the header that every message begins with.
pub const HEADER_LENGTH: usize = 16;

/// What every message begins with: its length, its names, and what it is.
// MS-02
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole message, this header included: 16 at least.
    pub message_length: u32,
    /// The message's own name and the name that it answers to.
    pub ids: Ids,
    /// What follows the header.
    pub op_code: OpCode,
}

/// The two names in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Chosen by the sender: see [`RequestIds`](super::RequestIds).
    pub request_id: i32,
    /// The `request_id` of the message that this one answers; 0 in a request.
    pub response_to: i32,
}

/// The kinds of messages that this crate reads and writes. All others were removed from the
/// protocol years ago.
// MS-01
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OpCode {
    /// `OP_REPLY`, 1: the answer to an `OP_QUERY`.
    Reply,
    /// `OP_QUERY`, 2004: what a legacy hello comes in.
    Query,
    /// `OP_COMPRESSED`, 2012: any other message, made smaller.
    Compressed,
    /// `OP_MSG`, 2013: everything else.
    Msg,
}

/// The most bytes that a message may have: `maxMessageSizeBytes` of the connection's own hello
/// reply.
///
/// ```
/// use cenote_core::wire::MessageLimit;
///
/// assert_eq!(MessageLimit::DEFAULT.bytes(), 48_000_000);
/// assert_eq!(MessageLimit::new(1 << 20).map(MessageLimit::bytes), Some(1_048_576));
/// assert_eq!(MessageLimit::new(-1), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageLimit(u32);

impl Header {
    /// Reads the first 16 bytes of a message. Any length from 16 to `limit` and any known opcode is
    /// accepted; nothing is allocated.
    ///
    /// # Errors
    ///
    /// [`WireError::Cut`] on fewer bytes, [`WireError::MessageLength`],
    /// [`WireError::UnknownOpCode`].
    // MS-15
    pub fn parse(bytes: &[u8], limit: MessageLimit) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes, 0);
        let message_length = limit.check(reader.i32("messageLength")?)?;
        let request_id = reader.i32("requestID")?;
        let response_to = reader.i32("responseTo")?;
        let op_code = OpCode::from_number(reader.i32("opCode")?)?;
        Ok(Self { message_length, ids: Ids { request_id, response_to }, op_code })
    }

    /// The 16 bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0..4].copy_from_slice(&self.message_length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.ids.request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.ids.response_to.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.op_code.number().to_le_bytes());
        bytes
    }
}

impl Ids {
    /// The names of a request, which answers nothing.
    #[must_use]
    pub const fn request(request_id: i32) -> Self {
        Self { request_id, response_to: 0 }
    }
}

impl OpCode {
    /// Reads the number.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownOpCode`] for every other number.
    pub const fn from_number(number: i32) -> Result<Self, WireError> {
        match number {
            1 => Ok(Self::Reply),
            2004 => Ok(Self::Query),
            2012 => Ok(Self::Compressed),
            2013 => Ok(Self::Msg),
            got => Err(WireError::UnknownOpCode { got }),
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Reply => 1,
            Self::Query => 2004,
            Self::Compressed => 2012,
            Self::Msg => 2013,
        }
    }
}

impl fmt::Display for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reply => "OP_REPLY",
            Self::Query => "OP_QUERY",
            Self::Compressed => "OP_COMPRESSED",
            Self::Msg => "OP_MSG",
        })
    }
}

impl MessageLimit {
    /// 48,000,000 bytes: what servers say, and what holds until they have said it.
    pub const DEFAULT: Self = Self(48_000_000);

    /// 1 MiB: for replies to hello and of authentication, before a server is known, and for all of a monitor's. One that
    /// describes a replica set of 50 members has less than 20 KB.
    pub const HANDSHAKE: Self = Self(1 << 20);

    /// `None` unless a header fits, which is 16 bytes, and a length field can say it, which is
    /// up to 2,147,483,647.
    #[must_use]
    pub fn new(bytes: i64) -> Option<Self> {
        let bytes = u32::try_from(i32::try_from(bytes).ok()?).ok()?;
        (bytes >= HEADER_LENGTH as u32).then_some(Self(bytes))
    }

    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    fn check(self, got: i32) -> Result<u32, WireError> {
        let refused = WireError::MessageLength { got, max: self.0 };
        let length = u32::try_from(got).map_err(|_| refused.clone())?;
        let allowed = HEADER_LENGTH as u32..=self.0;
        if allowed.contains(&length) { Ok(length) } else { Err(refused) }
    }
}

impl Default for MessageLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, Ids, MessageLimit, OpCode};
    use crate::wire::WireError;

    fn with(length: i32, op_code: i32) -> Result<Header, WireError> {
        let fields = [length, 5, -6, op_code];
        let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        Header::parse(&bytes, MessageLimit::DEFAULT)
    }

    // MS-02
    #[test]
    fn is_written_as_it_was_read() {
        let header = Header {
            message_length: 48_000_000,
            ids: Ids { request_id: 5, response_to: -6 },
            op_code: OpCode::Msg,
        };
        assert_eq!(with(48_000_000, 2013), Ok(header));
        assert_eq!(Header::parse(&header.to_bytes(), MessageLimit::DEFAULT), Ok(header));
    }

    #[test]
    fn only_lengths_from_16_to_the_limit_pass() {
        for got in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
            assert_eq!(with(got, 2013), Err(WireError::MessageLength { got, max: 48_000_000 }));
        }
        assert_eq!(with(16, 2013).map(|header| header.message_length), Ok(16));
    }

    // MS-01
    #[test]
    fn only_four_opcodes_pass() {
        for op_code in [OpCode::Reply, OpCode::Query, OpCode::Compressed, OpCode::Msg] {
            assert_eq!(with(16, op_code.number()).map(|header| header.op_code), Ok(op_code));
        }
        for got in [0, 2, 1000, 2001, 2010, 2011, 2014, -2013] {
            assert_eq!(with(16, got), Err(WireError::UnknownOpCode { got }));
        }
    }

    #[test]
    fn a_cut_header_is_named() {
        let error = Header::parse(&[16, 0, 0, 0, 1, 0], MessageLimit::DEFAULT);
        let expected = WireError::Cut { what: "requestID", offset: 4, needed: 4, left: 2 };
        assert_eq!(error, Err(expected));
    }

    #[test]
    fn a_limit_holds_a_header_and_fits_into_the_field() {
        assert_eq!(MessageLimit::new(15), None);
        assert_eq!(MessageLimit::new(16).map(MessageLimit::bytes), Some(16));
        assert_eq!(MessageLimit::new(1 << 31), None);
        assert_eq!(
            MessageLimit::new((1 << 31) - 1).map(MessageLimit::bytes),
            Some(i32::MAX as u32)
        );
    }
}
