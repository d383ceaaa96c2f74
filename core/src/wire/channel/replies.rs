//! Takes replies.

use bson::RawDocumentBuf;

use super::{Channel, SMALL};
use crate::wire::{Frame, Message, MessageBuf, OpCode, WireError, decompress};

impl Channel {
    /// The body of the next reply, if all of it came. Replies that go on are not looked out for.
    ///
    /// # Errors
    ///
    /// What is no reply, or not to this request.
    pub fn reply(&mut self) -> Result<Option<RawDocumentBuf>, WireError> {
        if self.framer.is_empty() {
            return Ok(None);
        }
        if self.compressor.is_some() || self.framer.capacity() > SMALL {
            // A large one keeps its memory.
            return Ok(self.reply_message()?.map(MessageBuf::into_body));
        }
        let Some(frame) = self.framer.next_frame()? else { return Ok(None) };
        let reply = Message::parse(decompress(frame, self.limit, &mut self.scratch)?)?;
        // No caller here allows a second reply, so this one is the last.
        let _ = self.exchange.reply(reply.header(), reply.flags())?;
        let body = reply.body().to_owned();
        self.release();
        Ok(Some(body))
    }

    /// The next reply, if all of it came, with its buffer if it is large.
    ///
    /// # Errors
    ///
    /// As [`reply`](Self::reply).
    pub fn reply_message(&mut self) -> Result<Option<MessageBuf>, WireError> {
        let Some(bytes) = self.framer.next_message()? else { return Ok(None) };
        let reply = MessageBuf::parse(self.decompressed(bytes)?, self.limit)?;
        let _ = self.exchange.reply(reply.header(), reply.flags())?;
        self.release();
        Ok(Some(reply))
    }

    fn decompressed(&self, message: Vec<u8>) -> Result<Vec<u8>, WireError> {
        let frame = Frame::new(&message, self.limit)?;
        if frame.header().op_code != OpCode::Compressed {
            return Ok(message);
        }
        let mut whole = Vec::new();
        decompress(frame, self.limit, &mut whole)?;
        Ok(whole)
    }
}
