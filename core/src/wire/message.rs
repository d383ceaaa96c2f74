use core::fmt;

use bson::{RawBsonRef, RawDocument};

use super::reader::Reader;
use super::sequence::{BODY, body_of_checked, check_sections};
use super::{
    DocumentSequence, Flags, Frame, HEADER_LENGTH, Header, OpCode, Sequences, WireError,
    check_document,
};

/// Where the sections begin: behind header and flags.
pub(super) const SECTIONS: usize = HEADER_LENGTH + 4;

/// Bytes of the checksum at the end of a message that has one.
pub(super) const CHECKSUM_LENGTH: usize = 4;

/// An OP_MSG that was received: one body, and any number of document sequences.
///
/// All of it was checked, and all of it still lies where it was received. `Debug` shows header and
/// flags.
#[derive(Clone)]
pub struct Message<'a> {
    header: Header,
    flags: Flags,
    body: &'a RawDocument,
    sections: Reader<'a>,
}

impl<'a> Message<'a> {
    /// Reads a message and checks everything in it: flags, checksum, sections and each document, as
    /// [`check_document`] does. Takes one pass (two with a checksum);
    /// allocates only for more than four document sequences.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedOpCode`] for anything but OP_MSG; a compressed one goes through
    /// [`decompress`](super::decompress) first. Otherwise what the checks find.
    // MS-02
    pub fn parse(frame: Frame<'a>) -> Result<Self, WireError> {
        frame.expect(OpCode::Msg)?;
        // Nearly every message has no flag, and nothing behind its body.
        if frame.bytes().get(HEADER_LENGTH..SECTIONS + 1) == Some(&[0, 0, 0, 0, BODY]) {
            let (body, length) = check_document(frame.bytes(), SECTIONS + 1)?;
            if SECTIONS + 1 + length == frame.bytes().len() {
                let sections = Reader::new(frame.bytes(), SECTIONS);
                return Ok(Self { header: frame.header(), flags: Flags::NONE, body, sections });
            }
        }
        Self::parse_any(frame)
    }

    /// Of whatever sections it consists.
    fn parse_any(frame: Frame<'a>) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame.bytes(), HEADER_LENGTH);
        let flags = Flags::from_bits(reader.u32("flagBits")?)?;
        let checksum = if flags.checksum_present { CHECKSUM_LENGTH } else { 0 };
        let length = reader.left().saturating_sub(checksum);
        let sections = reader.split(length, "sections")?;
        if flags.checksum_present {
            check_checksum(frame.bytes(), reader)?;
        }
        let body = check_sections(sections.clone())?;
        Ok(Self { header: frame.header(), flags, body, sections })
    }

    /// Over a message that [`parse`](Self::parse) has accepted: checks nothing again.
    pub(super) fn of_checked(frame: Frame<'a>, flags: Flags) -> Self {
        let mut reader = Reader::new(frame.bytes(), SECTIONS);
        let checksum = if flags.checksum_present { CHECKSUM_LENGTH } else { 0 };
        let length = reader.left() - checksum;
        let sections = reader.split(length, "sections").expect("the message was checked");
        let body = body_of_checked(&mut sections.clone());
        Self { header: frame.header(), flags, body, sections }
    }

    /// As it was received.
    #[must_use]
    pub fn header(&self) -> Header {
        self.header
    }

    /// Those that are known.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// The document of the section of kind 0: the command, or the reply.
    #[must_use]
    pub fn body(&self) -> &'a RawDocument {
        self.body
    }

    /// The sections of kind 1.
    #[must_use]
    pub fn sequences(&self) -> Sequences<'a> {
        Sequences::of_checked(self.sections.clone())
    }

    /// The section of kind 1 with that name.
    #[must_use]
    pub fn sequence(&self, identifier: &str) -> Option<DocumentSequence<'a>> {
        self.sequences().find(|sequence| sequence.identifier() == identifier)
    }

    /// The name of the command: its first key. `None` when there is none, or no UTF-8.
    #[must_use]
    pub fn command_name(&self) -> Option<&'a str> {
        command_name(self.body)
    }

    /// The `$db` of a command; `None` when it is missing or no string.
    #[must_use]
    pub fn database(&self) -> Option<&'a str> {
        self.body.get("$db").ok().flatten().and_then(RawBsonRef::as_str)
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("header", &self.header)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

pub(super) fn command_name(command: &RawDocument) -> Option<&str> {
    let (name, _) = command.iter().next()?.ok()?;
    Some(name.as_str())
}

// MS-14
fn check_checksum(message: &[u8], mut end: Reader<'_>) -> Result<(), WireError> {
    let covered = end.offset();
    let expected = end.u32("checksum")?;
    let got = crc32c::crc32c(&message[..covered]);
    if got == expected { Ok(()) } else { Err(WireError::Checksum { expected, got }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frame, Message};
    use crate::wire::{HEADER_LENGTH, Header, Ids, MessageLimit, OpCode, some_damaged};

    proptest! {
        /// Behind a body may be another section, half of one, or nothing; and any byte may be wrong.
        #[test]
        fn a_plain_message_is_read_as_any_other(
            document in some_damaged(),
            behind in prop::collection::vec(0_u8..3, 0..8),
            damage in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut rest = [&[0; 5], document.as_bytes(), &behind].concat();
            if let Some((place, byte)) = damage {
                let place = place.index(rest.len());
                rest[place] = byte;
            }
            let message_length = (HEADER_LENGTH + rest.len()) as u32;
            let header = Header { message_length, ids: Ids::request(1), op_code: OpCode::Msg };
            let bytes = [&header.to_bytes()[..], &rest].concat();
            let frame = Frame::new(&bytes, MessageLimit::DEFAULT).unwrap();
            let parts = |message: Message<'_>| {
                let sections = (message.sections.offset(), message.sections.left());
                (message.header, message.flags, message.body.to_owned(), sections)
            };
            prop_assert_eq!(Message::parse(frame).map(parts), Message::parse_any(frame).map(parts));
        }
    }
}
