use core::fmt;

use bson::RawDocument;

use super::message::{CHECKSUM_LENGTH, SECTIONS, command_name};
use super::sequence::{BODY, SEQUENCE};
use super::{Elements, Flags, HEADER_LENGTH, Header, Ids, MessageLimit, OpCode, WireError};

/// Writes one OP_MSG to the end of a buffer: a body first, then any number of sequences.
///
/// Nothing is written until [`finish`](Self::finish): a writer that is dropped, or that fails,
/// leaves the buffer as it was. Documents are copied once, straight to where they belong; nothing
/// but the buffer grows. `Debug` shows how long the message is so far, and not what it says.
///
/// ```
/// use bson::rawdoc;
/// use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
///
/// let mut buffer = Vec::new();
/// let insert = rawdoc! { "insert": "birds", "ordered": true };
/// let mut message =
///     MessageWriter::command(&mut buffer, Ids::request(1), Flags::NONE, &insert, "zoo")?;
/// message.sequence("documents", [rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }])?;
/// assert_eq!(message.finish(MessageLimit::DEFAULT), Ok(buffer.len()));
/// # Ok::<(), cenote_core::wire::WireError>(())
/// ```
// HS-02
pub struct MessageWriter<'b> {
    buffer: &'b mut Vec<u8>,
    start: usize,
    ids: Ids,
    flags: Flags,
    finished: bool,
}

impl<'b> MessageWriter<'b> {
    /// Begins a message with this body, as it is: a reply, or a command that has its `$db`.
    ///
    /// With [`Flags::checksum_present`] the message will end with its checksum.
    #[must_use = "nothing is written before `finish`"]
    pub fn new(buffer: &'b mut Vec<u8>, ids: Ids, flags: Flags, body: &RawDocument) -> Self {
        let mut writer = Self::begin(buffer, ids, flags);
        writer.put(body.as_bytes());
        writer
    }

    /// Begins a message with this command and appends `$db`, which every command must have. The
    /// caller's document stays as it is.
    ///
    /// # Errors
    ///
    /// [`WireError::EmptyCommand`]; [`WireError::DatabaseTwice`]; [`WireError::BadName`] for a
    /// database with a zero byte in its name.
    // MS-13
    pub fn command(
        buffer: &'b mut Vec<u8>,
        ids: Ids,
        flags: Flags,
        command: &RawDocument,
        database: &str,
    ) -> Result<Self, WireError> {
        check_command(command, database)?;
        let mut writer = Self::begin(buffer, ids, flags);
        writer.put_with_database(command.as_bytes(), database);
        Ok(writer)
    }

    /// Adds a section of kind 1 with these documents. Identifiers must differ, which only the
    /// reader checks; `documents` for insert, `updates` for update, `deletes` for delete.
    ///
    /// # Errors
    ///
    /// [`WireError::BadName`] for an identifier with a zero byte.
    // MS-12
    pub fn sequence<D: AsRef<RawDocument>>(
        &mut self,
        identifier: &str,
        documents: impl IntoIterator<Item = D>,
    ) -> Result<&mut Self, WireError> {
        check_name(identifier, "sequence identifier")?;
        self.put(&[SEQUENCE]);
        let size_at = self.buffer.len();
        self.put(&[0; 4]);
        self.put_name(identifier);
        for document in documents {
            self.put(document.as_ref().as_bytes());
        }
        let size = self.buffer.len() - size_at;
        self.set_length(size_at, size);
        Ok(self)
    }

    /// Bytes of the message so far. Small enough for one more document? That decides where a
    /// batch is cut.
    #[must_use]
    pub fn message_length(&self) -> usize {
        let checksum = if self.flags.checksum_present { CHECKSUM_LENGTH } else { 0 };
        self.buffer.len() - self.start + checksum
    }

    /// Completes the message and gives its length in bytes.
    ///
    /// # Errors
    ///
    /// [`WireError::MessageTooLarge`] above the limit; the buffer is as it was before.
    // MS-03
    pub fn finish(mut self, limit: MessageLimit) -> Result<usize, WireError> {
        let got = self.message_length();
        let refused = WireError::MessageTooLarge { got, max: limit.bytes() };
        let message_length =
            u32::try_from(got).ok().filter(|length| *length <= limit.bytes()).ok_or(refused)?;
        let header = Header { message_length, ids: self.ids, op_code: OpCode::Msg };
        self.buffer[self.start..][..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
        if self.flags.checksum_present {
            let checksum = crc32c::crc32c(&self.buffer[self.start..]);
            self.put(&checksum.to_le_bytes());
        }
        self.finished = true;
        Ok(got)
    }
}

impl fmt::Debug for MessageWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageWriter")
            .field("ids", &self.ids)
            .field("flags", &self.flags)
            .field("message_length", &self.message_length())
            .finish_non_exhaustive()
    }
}

impl<'b> MessageWriter<'b> {
    fn begin(buffer: &'b mut Vec<u8>, ids: Ids, flags: Flags) -> Self {
        let start = buffer.len();
        let mut beginning = [BODY; SECTIONS + 1];
        beginning[HEADER_LENGTH..SECTIONS].copy_from_slice(&flags.bits().to_le_bytes());
        buffer.extend_from_slice(&beginning);
        Self { buffer, start, ids, flags, finished: false }
    }

    /// The command up to its terminator, `$db` as one more element, and the terminator again.
    // MS-11
    fn put_with_database(&mut self, command: &[u8], database: &str) {
        let start = self.buffer.len();
        self.put(&command[..command.len() - 1]);
        self.put(b"\x02$db\0");
        self.put(&length_field(database.len() + 1));
        self.put(database.as_bytes());
        self.put(&[0, 0]); // Ends the string and the document.
        let length = self.buffer.len() - start;
        self.set_length(start, length);
    }

    fn put_name(&mut self, name: &str) {
        self.put(name.as_bytes());
        self.put(&[0]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    fn set_length(&mut self, at: usize, length: usize) {
        self.buffer[at..at + 4].copy_from_slice(&length_field(length));
    }
}

impl Drop for MessageWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.buffer.truncate(self.start);
        }
    }
}

/// What does not fit into the field is beyond every limit: `finish` will refuse it.
fn length_field(length: usize) -> [u8; 4] {
    i32::try_from(length).unwrap_or(i32::MAX).to_le_bytes()
}

fn check_command(command: &RawDocument, database: &str) -> Result<(), WireError> {
    if !is_plainly_a_command(command) {
        check_any_command(command)?;
    }
    check_name(database, "$db")
}

const DOUBLE: u8 = 0x01;
const STRING: u8 = 0x02;
const INT32: u8 = 0x10;

/// Whether it has a name and no `$db`, as nearly every one. `false` says nothing.
fn is_plainly_a_command(command: &RawDocument) -> bool {
    let mut elements = Elements::of(command);
    let Some((kind, name, value)) = elements.next() else { return false };
    let is_read = match kind {
        STRING => core::str::from_utf8(&value[4..]).is_ok(),
        INT32 | DOUBLE => true,
        _ => false,
    };
    is_read && name != b"$db" && elements.all(|(_, key, _)| key != b"$db") && elements.is_complete()
}

fn check_any_command(command: &RawDocument) -> Result<(), WireError> {
    command_name(command).ok_or(WireError::EmptyCommand)?;
    // A key that cannot be read is the server's to refuse; it cannot be `$db` either.
    if matches!(command.get("$db"), Ok(Some(_))) { Err(WireError::DatabaseTwice) } else { Ok(()) }
}

fn check_name(name: &str, what: &'static str) -> Result<(), WireError> {
    if name.contains('\0') { Err(WireError::BadName { what }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, rawdoc};

    use super::MessageWriter;
    use crate::wire::{Flags, Ids, MessageLimit, WireError};

    const IDS: Ids = Ids::request(1);
    const NO_DOCUMENTS: [RawDocumentBuf; 0] = [];

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let mut bytes = vec![0xEE];
        let ids = Ids { request_id: 1, response_to: 2 };
        let mut writer = MessageWriter::new(&mut bytes, ids, Flags::NONE, &rawdoc! {});
        writer.sequence("d", [rawdoc! {}]).unwrap();
        assert_eq!(writer.finish(MessageLimit::DEFAULT), Ok(38));
        #[rustfmt::skip]
        let expected = [
            0xEE,
            38, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0xDD, 7, 0, 0,
            0, 0, 0, 0,
            0, 5, 0, 0, 0, 0,
            1, 11, 0, 0, 0, b'd', 0, 5, 0, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_checksum_covers_all_before_it() {
        let mut bytes = Vec::new();
        let writer = MessageWriter::new(&mut bytes, IDS, Flags::CHECKSUM_PRESENT, &rawdoc! {});
        assert_eq!(writer.finish(MessageLimit::DEFAULT), Ok(30));
        let (covered, checksum) = bytes.split_at(26);
        assert_eq!(checksum, crc32c::crc32c(covered).to_le_bytes());
        // The check value of CRC-32C, so that it is no other polynomial.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn a_command_gets_its_database_and_stays_as_it_is() {
        let command = rawdoc! { "ping": 1 };
        let (mut appended, mut written) = (Vec::new(), Vec::new());
        let writer = MessageWriter::command(&mut appended, IDS, Flags::NONE, &command, "admin");
        writer.unwrap().finish(MessageLimit::DEFAULT).unwrap();
        let by_hand = rawdoc! { "ping": 1, "$db": "admin" };
        let writer = MessageWriter::new(&mut written, IDS, Flags::NONE, &by_hand);
        writer.finish(MessageLimit::DEFAULT).unwrap();
        assert_eq!(appended, written);
        assert_eq!(command, rawdoc! { "ping": 1 });
    }

    #[test]
    fn bad_commands_are_refused() {
        let mut bytes = vec![7];
        let mut refuse = |command: RawDocumentBuf, database| {
            let result = MessageWriter::command(&mut bytes, IDS, Flags::NONE, &command, database);
            result.map(|_| ()).unwrap_err()
        };
        assert_eq!(refuse(rawdoc! {}, "a"), WireError::EmptyCommand);
        assert_eq!(refuse(rawdoc! { "ping": 1, "$db": "a" }, "a"), WireError::DatabaseTwice);
        assert_eq!(refuse(rawdoc! { "ping": 1 }, "a\0b"), WireError::BadName { what: "$db" });
        assert_eq!(bytes, [7]);
    }

    #[test]
    fn what_is_not_finished_leaves_no_trace() {
        let mut bytes = vec![7];
        let mut writer = MessageWriter::new(&mut bytes, IDS, Flags::NONE, &rawdoc! {});
        assert!(writer.sequence("a\0", NO_DOCUMENTS).is_err());
        drop(writer);
        assert_eq!(bytes, [7]);
        let writer = MessageWriter::new(&mut bytes, IDS, Flags::NONE, &rawdoc! {});
        let limit = MessageLimit::new(25).unwrap();
        assert_eq!(writer.finish(limit), Err(WireError::MessageTooLarge { got: 26, max: 25 }));
        assert_eq!(bytes, [7]);
    }

    proptest::proptest! {
        #[test]
        fn a_plain_command_is_checked_as_any_other(command in crate::wire::some_damaged()) {
            let checked = super::check_command(&command, "admin");
            proptest::prop_assert_eq!(checked, super::check_any_command(&command));
        }
    }
}
