use core::{fmt, ops::Range};

use super::reader::Reader;
use super::sequence::BODY;
use super::{Flags, HEADER_LENGTH, Header, MessageLimit, OpCode, WireError};

/// One whole message as it was received, with its header read, which is all that `Debug` shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    header: Header,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Takes a message that is whole already, without a [`Framer`].
    ///
    /// # Errors
    ///
    /// Those of [`Header::parse`], and [`WireError::FrameLength`] when there are more or fewer
    /// bytes than the header says.
    pub fn new(bytes: &'a [u8], limit: MessageLimit) -> Result<Self, WireError> {
        let header = Header::parse(bytes, limit)?;
        if header.message_length as usize == bytes.len() {
            return Ok(Self { header, bytes });
        }
        Err(WireError::FrameLength { expected: header.message_length, got: bytes.len() })
    }

    /// The first 16 bytes.
    #[must_use]
    pub fn header(&self) -> Header {
        self.header
    }

    /// All bytes, header included.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The flags of an OP_MSG, whatever else is in it.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedOpCode`] for anything but OP_MSG, [`WireError::Cut`],
    /// [`WireError::UnknownFlags`].
    pub fn flags(&self) -> Result<Flags, WireError> {
        self.expect(OpCode::Msg)?;
        Flags::from_bits(Reader::new(self.bytes, HEADER_LENGTH).u32("flagBits")?)
    }

    /// The name of the command in an OP_MSG: the first key of its body. `None` when there is none.
    /// Checks nothing else, and allocates nothing.
    #[must_use]
    pub fn command_name(&self) -> Option<&'a str> {
        const FLAGS: usize = 4;
        let mut sections = Reader::new(self.bytes, HEADER_LENGTH);
        sections.take(FLAGS, "flagBits").ok()?;
        while sections.u8("section kind").ok()? != BODY {
            let size = sections.clone().i32("section size").ok()?;
            sections.take(usize::try_from(size).ok()?, "section").ok()?;
        }
        sections.i32("document length").ok()?;
        sections.u8("element type").ok().filter(|kind| *kind != 0)?;
        sections.name("command name").ok()
    }

    pub(super) fn expect(&self, expected: OpCode) -> Result<(), WireError> {
        let got = self.header.op_code;
        if got == expected { Ok(()) } else { Err(WireError::UnexpectedOpCode { expected, got }) }
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("header", &self.header).finish_non_exhaustive()
    }
}

/// Puts messages together from bytes in any cut.
///
/// Bytes go in by [`push`](Self::push), or without a copy by reading into [`spare`](Self::spare)
/// and saying how many came with [`filled`](Self::filled). Messages come out of
/// [`next_frame`](Self::next_frame), lying in the framer's own buffer, or of
/// [`next_message`](Self::next_message), to keep.
///
/// The buffer is used again and again. It grows by doubling and never beyond the message that it
/// waits for, whatever length that one announces; [`release`](Self::release) gives the memory of
/// an unusually large message back.
///
/// ```
/// use cenote_core::wire::{Framer, MessageLimit, OpCode};
///
/// let mut framer = Framer::new(MessageLimit::DEFAULT);
/// framer.push(&[17, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
/// assert_eq!(framer.next_frame(), Ok(None));
/// framer.push(&[0, 0, 0xDD, 7, 0, 0, 42]);
/// let frame = framer.next_frame()?.expect("17 bytes came");
/// assert_eq!((frame.header().op_code, frame.bytes()[16]), (OpCode::Msg, 42));
/// # Ok::<(), cenote_core::wire::WireError>(())
/// ```
pub struct Framer {
    /// Initialised memory. What was received and not taken yet is `received`.
    buffer: Vec<u8>,
    received: Range<usize>,
    limit: MessageLimit,
    /// The stream has no boundaries after this.
    failed: Option<WireError>,
}

/// What a buffer begins with, and what [`Framer::release`] leaves: a hello reply fits.
const SMALL: usize = 4 * 1024;

impl Framer {
    /// With this limit; allocates nothing yet.
    #[must_use]
    pub const fn new(limit: MessageLimit) -> Self {
        Self { buffer: Vec::new(), received: 0..0, limit, failed: None }
    }

    /// From the next message on: what the hello reply says.
    // CO-20
    pub fn set_limit(&mut self, limit: MessageLimit) {
        self.limit = limit;
    }

    /// Takes a copy of bytes that were received, in whatever cut. After an error it takes none.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.make_room(bytes.len());
        self.buffer[self.received.end..][..bytes.len()].copy_from_slice(bytes);
        self.received.end += bytes.len();
    }

    /// Memory to read into: one byte at least, as a rule some thousand, and the rest of the
    /// message as soon as half of it is there. Empty after an error.
    #[must_use]
    pub fn spare(&mut self) -> &mut [u8] {
        if self.failed.is_some() {
            return &mut [];
        }
        self.make_room(1);
        &mut self.buffer[self.received.end..]
    }

    /// So many bytes of [`spare`](Self::spare) have been filled.
    ///
    /// # Panics
    ///
    /// When there was less to fill.
    pub fn filled(&mut self, count: usize) {
        let end = self.received.end + count;
        assert!(end <= self.buffer.len(), "more bytes filled than were spare");
        self.received.end = end;
    }

    /// The next message, once it is whole; `None` when more bytes must come first. Copies nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Header::parse`], as soon as the header is there, and the same one ever after.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(header) = self.header()? else { return Ok(None) };
        let length = header.message_length as usize;
        if self.received.len() < length {
            return Ok(None);
        }
        let start = self.received.start;
        self.received.start += length;
        Ok(Some(Frame { header, bytes: &self.buffer[start..][..length] }))
    }

    /// As [`next_frame`](Self::next_frame), for callers that keep the message. A small one is
    /// copied; a larger one takes the buffer with it, as it is, and the framer begins a new one.
    ///
    /// # Errors
    ///
    /// Those of [`next_frame`](Self::next_frame).
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let start = self.received.start;
        let Some(frame) = self.next_frame()? else { return Ok(None) };
        let length = frame.bytes().len();
        if length <= SMALL || start > 0 {
            return Ok(Some(frame.bytes().to_vec()));
        }
        let mut message = core::mem::take(&mut self.buffer);
        message.truncate(self.received.end);
        // As a rule there is nothing behind it.
        self.buffer = message.split_off(length);
        self.received = 0..self.buffer.len();
        Ok(Some(message))
    }

    /// Nothing is here that was not taken. A connection at rest must be so: more bytes than
    /// messages asked for are the reply to another request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.received.is_empty() && self.failed.is_none()
    }

    /// The stream has ended.
    ///
    /// # Errors
    ///
    /// [`WireError::EndOfStream`] when that was within a message, or the error of before.
    pub fn finish(&self) -> Result<(), WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.received.len() {
            0 => Ok(()),
            got => Err(WireError::EndOfStream { got, expected: self.announced() }),
        }
    }

    /// Gives memory above 4 KiB back, if nothing is received that was not taken. For a connection
    /// that goes back to its pool after a large message; the next one grows it again.
    pub fn release(&mut self) {
        if self.received.is_empty() {
            self.received = 0..0;
            self.buffer.truncate(SMALL);
            self.buffer.shrink_to(SMALL);
        }
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// What is in a message may be a secret: how much of it there is, is none.
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("received", &self.received.len())
            .field("limit", &self.limit)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Framer {
    fn header(&mut self) -> Result<Option<Header>, WireError> {
        if self.received.len() < HEADER_LENGTH {
            return Ok(None);
        }
        let header = Header::parse(&self.buffer[self.received.clone()], self.limit);
        header.map(Some).inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// The length that the first message says it has, if it may have it.
    fn announced(&self) -> Option<u32> {
        let received = &self.buffer[self.received.clone()];
        Header::parse(received, self.limit).ok().map(|header| header.message_length)
    }

    fn make_room(&mut self, more: usize) {
        if self.received.is_empty() {
            self.received = 0..0;
        }
        if self.buffer.len() - self.received.end >= more {
            return;
        }
        self.buffer.copy_within(self.received.clone(), 0);
        self.received = 0..self.received.len();
        let needed = self.received.len() + more;
        if self.buffer.len() < needed {
            self.grow(needed);
        }
    }

    /// Twice what is there, so that a large message is not copied over and over; but no more than
    /// the message that is waited for, so that its length alone costs nothing.
    fn grow(&mut self, needed: usize) {
        let received = self.received.len();
        let doubled = match self.announced() {
            Some(length) if received < length as usize => (2 * received).min(length as usize),
            Some(_) => 2 * received,
            None => SMALL,
        };
        let length = needed.max(doubled).max(SMALL);
        self.buffer.reserve_exact(length - self.buffer.len());
        self.buffer.resize(length, 0);
    }
}
