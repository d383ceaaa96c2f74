use core::fmt;

use bson::{RawDocument, RawDocumentBuf};

use super::message::SECTIONS;
use super::reader::Reader;
use super::sequence::body_of_checked;
use super::{Flags, Frame, Header, Message, MessageLimit, WireError};

/// An OP_MSG that was received, to keep: a [`Message`] with its bytes.
///
/// ```
/// use bson::rawdoc;
/// use cenote_core::wire::{Flags, Ids, MessageBuf, MessageLimit, MessageWriter};
///
/// let limit = MessageLimit::DEFAULT;
/// let mut bytes = Vec::new();
/// let ids = Ids { request_id: 7, response_to: 1 };
/// MessageWriter::new(&mut bytes, ids, Flags::NONE, &rawdoc! { "ok": 1.0 }).finish(limit)?;
///
/// let reply = MessageBuf::parse(bytes, limit)?;
/// assert_eq!((reply.header().ids, reply.flags()), (ids, Flags::NONE));
/// assert_eq!(reply.into_body(), rawdoc! { "ok": 1.0 });
/// # Ok::<(), cenote_core::wire::WireError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct MessageBuf {
    bytes: Vec<u8>,
    limit: MessageLimit,
    header: Header,
    flags: Flags,
}

impl MessageBuf {
    /// Reads a message and checks everything in it, as [`Message::parse`] does. The bytes stay
    /// where they are.
    ///
    /// # Errors
    ///
    /// Those of [`Frame::new`] and of [`Message::parse`].
    pub fn parse(bytes: Vec<u8>, limit: MessageLimit) -> Result<Self, WireError> {
        let message = Message::parse(Frame::new(&bytes, limit)?)?;
        let (header, flags) = (message.header(), message.flags());
        Ok(Self { bytes, limit, header, flags })
    }

    /// As it was received, or as it would have been without compression.
    #[must_use]
    pub fn header(&self) -> Header {
        self.header
    }

    /// Those that are known.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// The document of the section of kind 0.
    #[must_use]
    pub fn body(&self) -> &RawDocument {
        self.as_message().body()
    }

    /// The body alone. It takes the memory of the message; only where the sections behind the body
    /// were, nothing is left.
    #[must_use]
    pub fn into_body(self) -> RawDocumentBuf {
        let mut sections = Reader::new(&self.bytes, SECTIONS);
        let length = body_of_checked(&mut sections).as_bytes().len();
        let end = sections.offset();
        let mut bytes = self.bytes;
        bytes.truncate(end);
        bytes.drain(..end - length);
        RawDocumentBuf::from_bytes(bytes).expect("the message was checked")
    }

    /// With all of its sections.
    #[must_use]
    pub fn as_message(&self) -> Message<'_> {
        let frame = Frame::new(&self.bytes, self.limit).expect("the message was checked");
        Message::of_checked(frame, self.flags)
    }

    /// All bytes, header included.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What is in a message may be a secret.
impl fmt::Debug for MessageBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageBuf")
            .field("header", &self.header)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}
