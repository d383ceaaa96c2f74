use thiserror::Error;

use super::{CompressorId, MAX_DEPTH, OpCode};

/// Why bytes are not a message, or why a message cannot be made.
///
/// Offsets are in bytes from the start of the message, header included; in a compressed message,
/// from the start of what was compressed, as if its header stood before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// A value exceeds its message, document or section.
    #[error("{what} at byte {offset} needs {needed} more bytes, but only {left} are left")]
    Cut {
        /// The field, as the protocol calls it.
        what: &'static str,
        /// Where it begins.
        offset: usize,
        /// How many bytes it has.
        needed: usize,
        /// How many there are.
        left: usize,
    },
    /// The stream ended within a message.
    #[error("the stream ended after {got} bytes of a message of {}", Expected(.expected))]
    EndOfStream {
        /// Bytes of the message that came.
        got: usize,
        /// Its length; `None` when the stream ended within the header.
        expected: Option<u32>,
    },
    /// A header has an invalid length.
    #[error("a message length of {got} is not between 16 and {max} bytes")]
    MessageLength {
        /// The value in the header.
        got: i32,
        /// The limit in force.
        max: u32,
    },
    /// The frame is not as long as its header says.
    #[error("the header says {expected} bytes, but the message has {got}")]
    FrameLength {
        /// The value in the header.
        expected: u32,
        /// How many there are.
        got: usize,
    },
    /// The message is too large for the peer.
    #[error("the message to send has {got} bytes, but the other side takes only {max}")]
    MessageTooLarge {
        /// Bytes of the message.
        got: usize,
        /// The limit in force.
        max: u32,
    },
    /// No kind of message that this crate knows.
    #[error("opcode {got} is unknown")]
    UnknownOpCode {
        /// As the header, or the compressed message, says.
        got: i32,
    },
    /// Another kind of message than the one that has to come here.
    #[error("expected {expected}, got {got}")]
    UnexpectedOpCode {
        /// The only one that makes sense.
        expected: OpCode,
        /// The value in the header.
        got: OpCode,
    },
    /// Required flags that are unknown.
    #[error("required flag bits {bits:#06x} are unknown")]
    UnknownFlags {
        /// Only the unknown ones.
        bits: u32,
    },
    /// A section of unknown kind.
    // MS-05
    #[error("section kind {kind} at byte {offset} is unknown")]
    UnknownSectionKind {
        /// The value in the section.
        kind: u8,
        /// Where the section begins.
        offset: usize,
    },
    /// An OP_MSG without a section of kind 0.
    #[error("the message has no body section")]
    NoBody,
    /// An OP_MSG with two sections of kind 0.
    #[error("a second body section begins at byte {offset}")]
    SecondBody {
        /// Where the second one begins.
        offset: usize,
    },
    /// Two document sequences with one name.
    #[error("the document sequence {identifier:?} comes twice")]
    DuplicateSequence {
        /// The name.
        identifier: String,
    },
    /// The size of a document sequence cannot hold what it has to hold, or exceeds the message.
    #[error("a section size of {got} at byte {offset} is not between 5 and {room} bytes")]
    SectionSize {
        /// The value in the section.
        got: i32,
        /// The offset of the size.
        offset: usize,
        /// From there to the end of the sections.
        room: usize,
    },
    /// A name that is not UTF-8, or that holds a zero byte and cannot be written.
    #[error("{what} is no valid name")]
    BadName {
        /// Whose name.
        what: &'static str,
    },
    /// A document is malformed.
    #[error("bad BSON at byte {offset}: {problem}")]
    Bson {
        /// Where the offending part begins.
        offset: usize,
        /// What is wrong with it.
        problem: BsonProblem,
    },
    /// The message was damaged on its way, or its checksum is wrong.
    #[error("the checksum says {expected:#010x}, but the message has {got:#010x}")]
    Checksum {
        /// The value in the message.
        expected: u32,
        /// As computed.
        got: u32,
    },
    /// Bytes after the end of what a message holds.
    #[error("{count} bytes follow the end of the message at byte {offset}")]
    TrailingBytes {
        /// Where the message should have ended.
        offset: usize,
        /// How many there are.
        count: usize,
    },
    /// An OP_REPLY with more or fewer documents than it says.
    #[error("the reply says {expected} documents, but has {got}")]
    DocumentCount {
        /// The value in the reply.
        expected: i32,
        /// As counted.
        got: usize,
    },
    /// A compressor id from the reserved range.
    #[error("compressor {id} is unknown")]
    UnknownCompressor {
        /// The value in the message.
        id: u8,
    },
    /// This crate was built without the feature of that compressor.
    #[error("this build cannot do {id}")]
    CompressorNotBuilt {
        /// Which one.
        id: CompressorId,
    },
    /// zlib's levels are -1 to 9.
    #[error("a zlib compression level of {got} is not between -1 and 9")]
    ZlibLevel {
        /// As it was given.
        got: i32,
    },
    /// A compressed message may not hold a compressed message.
    #[error("a compressed message holds another compressed message")]
    NestedCompression,
    /// `uncompressedSize` is negative, or more than a message may have.
    #[error("an uncompressed size of {got} is not between 0 and {max} bytes")]
    UncompressedSize {
        /// The value in the message.
        got: i32,
        /// The limit in force, without a header.
        max: u32,
    },
    /// A compressed message holds more or less than its `uncompressedSize`.
    #[error("the message says {expected} uncompressed bytes, but {id} {got}")]
    UncompressedMismatch {
        /// By which compressor.
        id: CompressorId,
        /// The value in the message.
        expected: usize,
        /// The size that the compressor produced.
        got: Amount,
    },
    /// The compressor refuses its input.
    #[error("{id} cannot read the message: {reason}")]
    Corrupt {
        /// Which one.
        id: CompressorId,
        /// In the compressor's words.
        reason: String,
    },
    /// The compressor refuses to write: out of memory, as a rule.
    #[error("{id} cannot compress the message: {reason}")]
    Compress {
        /// Which one.
        id: CompressorId,
        /// In the compressor's words.
        reason: String,
    },
    /// A reply to another request than the last.
    #[error("expected a reply to message {expected}, got one to {got}")]
    ResponseTo {
        /// The only one that makes sense.
        expected: i32,
        /// The value in the header.
        got: i32,
    },
    /// A message without a request.
    #[error("a reply to message {response_to} came although none was due")]
    Unsolicited {
        /// The value in the header.
        response_to: i32,
    },
    /// A reply announces another one, but the request did not allow that.
    #[error("the reply announces another one, which the request did not allow")]
    ExhaustNotAllowed,
    /// A request while replies to the last one are still to come, or after an error.
    #[error("a request cannot be sent now: the last exchange is not complete")]
    NotYourTurn,
    /// A reply was to be received without a request, or whose request allowed none.
    #[error("no reply is due: nothing was asked, or all of it was answered")]
    NothingDue,
    /// A command has a name, which is its first key.
    #[error("the command has no name: its document is empty")]
    EmptyCommand,
    /// `$db` is for [`MessageWriter::command`](super::MessageWriter::command) to add.
    #[error("the command has a $db already")]
    DatabaseTwice,
}

/// How much a compressed message turned out to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// More than it says; how much is not known.
    More,
    /// Not what it says: the compressed bytes are too few to stand for so much.
    Impossible,
}

/// What is wrong with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BsonProblem {
    /// A length that does not fit into what surrounds it.
    #[error("a length of {got} is not between {min} and {max} bytes")]
    Length {
        /// As the document says.
        got: i32,
        /// The least that makes sense.
        min: usize,
        /// The most that has room.
        max: usize,
    },
    /// A value goes on beyond its document.
    #[error("a value of {needed} bytes where {left} are left")]
    Value {
        /// Bytes that a value of its type has.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A key, a string or a document has no zero byte at its end.
    #[error("no zero byte at the end")]
    Unterminated,
    /// An element of a type that BSON does not have.
    #[error("element type {got:#04x} is unknown")]
    UnknownType {
        /// As the element says.
        got: u8,
    },
    /// A boolean that is neither 0 nor 1.
    #[error("a boolean of {got}")]
    Boolean {
        /// As the element says.
        got: u8,
    },
    /// Documents within documents within documents.
    #[error("nested deeper than {MAX_DEPTH}")]
    TooDeep,
}

struct Expected<'a>(&'a Option<u32>);

impl core::fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(length) => write!(f, "{length}"),
            None => f.write_str("unknown length"),
        }
    }
}

impl core::fmt::Display for Amount {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "gives {bytes}"),
            Self::More => f.write_str("gives more"),
            Self::Impossible => f.write_str("cannot give so many for its input"),
        }
    }
}
