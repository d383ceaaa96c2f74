//! Replies on the wire.

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::wire::{
    Flags, Frame, Ids, MessageLimit, MessageWriter, Reply, WireError, may_compress,
};

use super::request::Form;

/// A reply to be sent.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    pub(super) ids: Ids,
    /// How the command came.
    pub(super) form: Form,
    /// The command's name, for some replies may not be compressed.
    pub(super) name: &'a str,
    pub(super) more_to_come: bool,
}

/// Replies are bounded by what they are made of: a batch and a little more.
pub(super) fn no_limit() -> MessageLimit {
    MessageLimit::new(i64::from(i32::MAX)).unwrap_or(MessageLimit::DEFAULT)
}

impl Envelope<'_> {
    /// The reply's bytes: an OP_REPLY for an OP_QUERY, and otherwise an OP_MSG, with a checksum
    /// if the command had one, and compressed as the command was.
    ///
    /// # Errors
    ///
    /// [`WireError::MessageTooLarge`] above 2 GiB, [`WireError::Compress`].
    pub(super) fn write(&self, body: &RawDocument) -> Result<Vec<u8>, WireError> {
        let mut plain = Vec::new();
        if self.form.legacy {
            Reply::write(body, self.ids, no_limit(), &mut plain)?;
        } else {
            let flags = Flags {
                checksum_present: self.form.flags.checksum_present,
                more_to_come: self.more_to_come,
                exhaust_allowed: false,
            };
            MessageWriter::new(&mut plain, self.ids, flags, body).finish(no_limit())?;
        }
        let Some(compressor) = self.form.compressor.filter(|_| may_compress(self.name)) else {
            return Ok(plain);
        };
        let mut compressed = Vec::new();
        compressor.compress(Frame::new(&plain, no_limit())?, no_limit(), &mut compressed)?;
        Ok(compressed)
    }
}

/// A reply that says that all went well, and no more yet.
pub(super) fn done() -> RawDocumentBuf {
    RawDocumentBuf::new()
}
