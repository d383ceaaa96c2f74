//! Begins requests.

use std::mem;

use bson::RawDocument;
use zeroize::Zeroizing;

use super::{Begun, Channel};
use crate::wire::{Flags, Frame, Ids, MessageWriter, WireError, may_compress};

/// What a message is longer than its command: headers, the name of the database.
pub(super) const OVERHEAD: usize = 256;

impl Channel {
    /// Begins a request. `database` is `None` for a command that names its own, and may hold a
    /// secret: its bytes are overwritten when they are written. Allocates as much as the command is
    /// long.
    ///
    /// # Errors
    ///
    /// A command that is too large or names a database, or a request that is not over. No byte is
    /// to be written then.
    pub fn begin(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<(), WireError> {
        self.check_turn()?;
        let ids = Ids::request(self.next_request_id());
        let mut outgoing = mem::take(&mut self.outgoing);
        outgoing.clear();
        // Room for all of it, so that growing leaves no copy behind.
        outgoing.reserve(command.as_bytes().len() + OVERHEAD);
        let writer = match database {
            Some(database) => MessageWriter::command(&mut outgoing, ids, flags, command, database)?,
            None => MessageWriter::new(&mut outgoing, ids, flags, command),
        };
        writer.finish(self.limit)?;
        let is_secret = database.is_none();
        if self.compressor.is_some() {
            return self.begin_outgoing(outgoing, is_secret);
        }
        // What was just written is not read again.
        self.outgoing = outgoing;
        self.exchange.begin_request(ids.request_id, flags)?;
        self.begun = Begun::Plain { is_secret };
        Ok(())
    }

    /// Begins with one whole OP_MSG, uncompressed, with its header, of which this takes a copy.
    ///
    /// # Errors
    ///
    /// What is no such message, or a request that is not over. No byte is to be written then.
    pub fn begin_message(&mut self, message: &[u8]) -> Result<(), WireError> {
        self.check_turn()?;
        let mut outgoing = mem::take(&mut self.outgoing);
        outgoing.clear();
        outgoing.extend_from_slice(message);
        self.begin_outgoing(outgoing, false)
    }

    /// As [`begin_message`](Self::begin_message) without a copy, for callers that write all of it
    /// at once: gives the bytes that are to be written.
    ///
    /// # Errors
    ///
    /// As [`begin_message`](Self::begin_message).
    pub fn begin_borrowed<'a>(&'a mut self, message: &'a [u8]) -> Result<&'a [u8], WireError> {
        self.check_turn()?;
        let is_compressed = self.prepare(message)?;
        self.begun =
            if is_compressed { Begun::Compressed } else { Begun::Plain { is_secret: false } };
        Ok(if is_compressed { &self.compressed } else { message })
    }

    /// Whatever becomes of it, the buffer stays.
    fn begin_outgoing(
        &mut self,
        outgoing: Zeroizing<Vec<u8>>,
        is_secret: bool,
    ) -> Result<(), WireError> {
        let prepared = self.prepare(&outgoing);
        self.outgoing = outgoing;
        self.begun = if prepared? { Begun::Compressed } else { Begun::Plain { is_secret } };
        Ok(())
    }

    /// Compresses the message into its buffer, if it may be, and returns whether it was. Messages
    /// with secrets are not, nor is any before a compressor is agreed.
    // CM-09, CM-10
    fn prepare(&mut self, message: &[u8]) -> Result<bool, WireError> {
        let message = Frame::new(message, self.limit)?;
        let flags = message.flags()?;
        let may_be_compressed = message.command_name().is_some_and(may_compress);
        let compressor = self.compressor.filter(|_| may_be_compressed);
        if let Some(compressor) = compressor {
            self.compressed.clear();
            compressor.compress(message, self.limit, &mut self.compressed)?;
        }
        self.exchange.begin_request(message.header().ids.request_id, flags)?;
        Ok(compressor.is_some())
    }
}
