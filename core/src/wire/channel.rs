mod replies;
mod requests;

use std::{fmt, mem};

use zeroize::{Zeroize, Zeroizing};

use super::{Compressor, Exchange, Framer, MessageLimit, RequestIds, WireError};

/// The room that a buffer keeps.
const SMALL: usize = 4096;

/// The messages of one connection, without its stream: bytes to write, bytes read, and
/// whose turn it is. A client's side, which sends one request at a time.
///
/// A request is [begun](Self::begin); then its [bytes](Self::outgoing) go out, all of them, and it
/// is [written](Self::written). What comes in is put where there is [room](Self::spare) for it,
/// until there is a [reply](Self::reply). If anything is refused that came from the other side, or
/// only a part of a request was written, the connection has perished, and is not
/// [reusable](Self::is_reusable).
///
/// Its buffers are reused. Memory that only a large message needed is freed after it.
///
/// ```
/// use bson::rawdoc;
/// use cenote_core::wire::{Channel, Flags, Ids, MessageLimit, MessageWriter};
///
/// let mut channel = Channel::new();
/// channel.begin(&rawdoc! { "ping": 1 }, Some("admin"), Flags::NONE)?;
/// assert!(channel.outgoing().ends_with(b"$db\0\x06\0\0\0admin\0\0")); // A shell sends this.
/// channel.written();
///
/// // What the server answers,
/// let ids = Ids { request_id: 7, response_to: 1 };
/// let mut answer = Vec::new();
/// MessageWriter::new(&mut answer, ids, Flags::NONE, &rawdoc! { "ok": 1.0 })
///     .finish(MessageLimit::DEFAULT)?;
///
/// // in whatever cut it comes.
/// for byte in answer {
///     assert!(channel.reply()?.is_none());
///     channel.spare()[0] = byte;
///     channel.filled(1);
/// }
/// let reply = channel.reply()?.expect("all of it came");
/// assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
/// assert!(channel.is_reusable());
/// # Ok::<(), cenote_core::wire::WireError>(())
/// ```
pub struct Channel {
    framer: Framer,
    exchange: Exchange,
    requests: RequestIds,
    limit: MessageLimit,
    compressor: Option<Compressor>,
    /// May hold credentials, and is overwritten after use.
    outgoing: Zeroizing<Vec<u8>>,
    compressed: Vec<u8>,
    scratch: Vec<u8>,
    begun: Begun,
}

/// Bytes to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Begun {
    #[default]
    Nothing,
    Plain {
        is_secret: bool,
    },
    Compressed,
}

impl Channel {
    /// Of a new connection: nothing is agreed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Exchange::default())
    }

    /// As monitors read: [`Exchange::lenient`].
    #[must_use]
    pub fn lenient() -> Self {
        Self::with(Exchange::lenient())
    }

    fn with(exchange: Exchange) -> Self {
        Self {
            framer: Framer::new(MessageLimit::DEFAULT),
            exchange,
            requests: RequestIds::default(),
            limit: MessageLimit::DEFAULT,
            compressor: None,
            outgoing: Zeroizing::default(),
            compressed: Vec::new(),
            scratch: Vec::new(),
            begun: Begun::Nothing,
        }
    }

    /// Numbers its requests with these, instead of from 1 on: random ones for each
    /// connection let them notice replies to each other's requests.
    #[must_use]
    pub fn with_request_ids(mut self, requests: RequestIds) -> Self {
        self.requests = requests;
        self
    }

    /// What hello negotiated.
    pub fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.limit = limit;
        self.framer.set_limit(limit);
        self.compressor = compressor;
    }

    /// How large messages may be.
    #[must_use]
    pub const fn limit(&self) -> MessageLimit {
        self.limit
    }

    /// A number for a request that the caller writes by itself.
    pub fn next_request_id(&mut self) -> i32 {
        self.requests.next_id()
    }

    /// Whether the connection may go back to its pool: nothing is under way.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.exchange.is_reusable() && self.framer.is_empty()
    }

    /// Whether a request was begun that is not written.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.begun != Begun::Nothing
    }

    /// Whether a reply must come next.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        self.exchange.awaits_reply()
    }

    /// The request whose only reply is still to come: [`Exchange::pending_response`].
    #[must_use]
    pub fn pending_response(&self) -> Option<i32> {
        self.exchange.pending_response()
    }

    /// The message that was begun, as it goes over the wire.
    #[must_use]
    pub fn outgoing(&self) -> &[u8] {
        match self.begun {
            Begun::Nothing => &[],
            Begun::Plain { .. } => &self.outgoing,
            Begun::Compressed => &self.compressed,
        }
    }

    /// All of it is written.
    pub fn written(&mut self) {
        self.exchange.request_written();
        self.forget_begun();
        if !self.exchange.awaits_reply() {
            self.release();
        }
    }

    /// The room for bytes that are read: never empty, except after an error.
    pub fn spare(&mut self) -> &mut [u8] {
        self.framer.spare()
    }

    /// That many bytes were read into it.
    ///
    /// # Panics
    ///
    /// When there was not so much room.
    pub fn filled(&mut self, count: usize) {
        self.framer.filled(count);
    }

    /// The other side has ended the stream.
    ///
    /// # Errors
    ///
    /// In the middle of a message.
    pub fn end(&self) -> Result<(), WireError> {
        self.framer.finish()
    }

    /// The connection carries messages of the caller, of which nothing is known here until it is
    /// [taken back](Exchange::take_back).
    ///
    /// # Errors
    ///
    /// When something is under way.
    pub fn lend(&mut self) -> Result<&mut Exchange, WireError> {
        self.check_turn()?;
        if !self.framer.is_empty() {
            return Err(WireError::NotYourTurn);
        }
        self.exchange.lend()?;
        Ok(&mut self.exchange)
    }

    /// No byte of what was begun is written, and none will be: its time was over before. The
    /// connection is as it was.
    ///
    /// # Panics
    ///
    /// When nothing was begun.
    pub fn withdraw(&mut self) {
        self.exchange.request_withdrawn();
        self.forget_begun();
        self.release();
    }

    /// What is being written is not to be overwritten.
    fn check_turn(&self) -> Result<(), WireError> {
        if self.is_writing() { Err(WireError::NotYourTurn) } else { Ok(()) }
    }

    /// Clears the message, and overwrites a secret.
    fn forget_begun(&mut self) {
        if mem::take(&mut self.begun) == (Begun::Plain { is_secret: true }) {
            self.outgoing.zeroize();
        }
    }

    /// Frees memory that only a large message needed: a pool may keep thousands of these.
    fn release(&mut self) {
        self.framer.release();
        for buffer in [&mut *self.outgoing, &mut self.compressed, &mut self.scratch] {
            buffer.clear();
            buffer.shrink_to(SMALL);
        }
    }
}

impl Default for Channel {
    fn default() -> Self {
        Self::new()
    }
}

/// Without what it holds.
impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("exchange", &self.exchange)
            .field("limit", &self.limit)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::requests::OVERHEAD;
    use super::*;
    use crate::wire::Flags;

    #[test]
    fn a_secret_is_forgotten_when_it_is_written() {
        let mut channel = Channel::new();
        channel.begin(&rawdoc! { "saslContinue": 1 }, None, Flags::NONE).unwrap();
        channel.written();
        assert!(channel.outgoing.is_empty());
    }

    #[test]
    fn what_only_a_large_message_needed_is_given_back() {
        let mut channel = Channel::new();
        let body = rawdoc! { "insert": "x".repeat(4 * SMALL) };
        channel.begin(&body, Some("shop"), Flags::MORE_TO_COME).unwrap();
        let room = body.as_bytes().len() + OVERHEAD;
        assert!((SMALL..=room).contains(&channel.outgoing.capacity()));
        channel.written();
        assert!(channel.outgoing.capacity() <= SMALL);
    }
}
