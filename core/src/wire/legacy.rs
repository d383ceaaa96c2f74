//! The two messages from before OP_MSG, as far as a hello from an old client needs them. Cenote's
//! own clients never send one; its endpoint answers them.

use core::fmt;

use bson::RawDocument;

use super::reader::Reader;
use super::{Documents, Frame, HEADER_LENGTH, Header, Ids, MessageLimit, OpCode, WireError};

/// An OP_QUERY that was received, or is to be sent. `Debug` does not show its document.
#[derive(Clone, Copy, PartialEq)]
pub struct Query<'a> {
    /// As they came: none of them means anything to a hello.
    pub flags: u32,
    /// The full name: `admin.$cmd` for a command.
    pub collection: &'a str,
    /// Documents to leave out; 0 for a command.
    pub skip: i32,
    /// Documents to give; -1 or 1 for a command.
    pub limit: i32,
    /// The command.
    pub document: &'a RawDocument,
}

impl<'a> Query<'a> {
    /// Reads an OP_QUERY and checks all of it. A selector of fields is checked and left aside.
    /// Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedOpCode`] for anything else, and what the checks find.
    pub fn parse(frame: Frame<'a>) -> Result<Self, WireError> {
        frame.expect(OpCode::Query)?;
        let mut reader = Reader::new(frame.bytes(), HEADER_LENGTH);
        let flags = reader.u32("flags")?;
        let collection = reader.name("fullCollectionName")?;
        let skip = reader.i32("numberToSkip")?;
        let limit = reader.i32("numberToReturn")?;
        let document = reader.document()?;
        if reader.left() > 0 {
            reader.document()?;
        }
        reader.finish()?;
        Ok(Self { flags, collection, skip, limit, document })
    }

    /// The database, if this is a command: `admin` of `admin.$cmd`.
    #[must_use]
    pub fn database(&self) -> Option<&'a str> {
        self.collection.strip_suffix(".$cmd")
    }

    /// Writes it to the end of `buffer` and gives its length in bytes.
    ///
    /// # Errors
    ///
    /// [`WireError::BadName`] for a zero byte in the collection's name,
    /// [`WireError::MessageTooLarge`]; the buffer is then as it was.
    pub fn write(
        &self,
        ids: Ids,
        limit: MessageLimit,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, WireError> {
        if self.collection.contains('\0') {
            return Err(WireError::BadName { what: "fullCollectionName" });
        }
        let flags = self.flags.to_le_bytes();
        let (skip, limit_field) = (self.skip.to_le_bytes(), self.limit.to_le_bytes());
        let name = self.collection.as_bytes();
        let parts = [&flags, name, &[0], &skip, &limit_field, self.document.as_bytes()];
        write(OpCode::Query, ids, limit, &parts, buffer)
    }
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("flags", &self.flags)
            .field("collection", &self.collection)
            .field("skip", &self.skip)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// An OP_REPLY that was received.
#[derive(Clone, Debug)]
pub struct Reply<'a> {
    header: Header,
    flags: u32,
    cursor_id: i64,
    documents: Reader<'a>,
}

impl<'a> Reply<'a> {
    /// The flag that says that the query failed: its one document is `{ $err, code }`.
    pub const QUERY_FAILURE: u32 = 1 << 1;

    /// Reads an OP_REPLY and checks all of it, the number of its documents included. Allocates
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedOpCode`] for anything else, [`WireError::DocumentCount`], and what
    /// the other checks find.
    pub fn parse(frame: Frame<'a>) -> Result<Self, WireError> {
        frame.expect(OpCode::Reply)?;
        let mut reader = Reader::new(frame.bytes(), HEADER_LENGTH);
        let flags = reader.u32("responseFlags")?;
        let cursor_id = reader.i64("cursorID")?;
        reader.i32("startingFrom")?;
        let expected = reader.i32("numberReturned")?;
        let documents = reader.clone();
        let mut got = 0;
        while reader.left() > 0 {
            reader.document()?;
            got += 1;
        }
        if usize::try_from(expected) != Ok(got) {
            return Err(WireError::DocumentCount { expected, got });
        }
        Ok(Self { header: frame.header(), flags, cursor_id, documents })
    }

    /// As it was received.
    #[must_use]
    pub fn header(&self) -> Header {
        self.header
    }

    /// As they came; see [`QUERY_FAILURE`](Self::QUERY_FAILURE).
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// 0 for a command.
    #[must_use]
    pub fn cursor_id(&self) -> i64 {
        self.cursor_id
    }

    /// One for a command.
    #[must_use]
    pub fn documents(&self) -> Documents<'a> {
        Documents::of_checked(self.documents.clone())
    }

    /// Writes the reply to a command, with that one document, to the end of `buffer` and gives
    /// its length in bytes.
    ///
    /// # Errors
    ///
    /// [`WireError::MessageTooLarge`]; the buffer is then as it was.
    pub fn write(
        document: &RawDocument,
        ids: Ids,
        limit: MessageLimit,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, WireError> {
        /// Servers set it in every reply.
        const AWAIT_CAPABLE: u32 = 1 << 3;
        let flags = AWAIT_CAPABLE.to_le_bytes();
        // cursorID and startingFrom are zero, numberReturned is one.
        let parts = [&flags[..], &[0; 12], &1_i32.to_le_bytes(), document.as_bytes()];
        write(OpCode::Reply, ids, limit, &parts, buffer)
    }
}

fn write(
    op_code: OpCode,
    ids: Ids,
    limit: MessageLimit,
    parts: &[&[u8]],
    buffer: &mut Vec<u8>,
) -> Result<usize, WireError> {
    let got = HEADER_LENGTH + parts.iter().map(|part| part.len()).sum::<usize>();
    let message_length = u32::try_from(got).unwrap_or(u32::MAX);
    if message_length > limit.bytes() {
        return Err(WireError::MessageTooLarge { got, max: limit.bytes() });
    }
    buffer.extend(Header { message_length, ids, op_code }.to_bytes());
    for part in parts {
        buffer.extend_from_slice(part);
    }
    Ok(got)
}
