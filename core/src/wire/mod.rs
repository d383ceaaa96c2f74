//! MongoDB's wire protocol without I/O: bytes in, messages out, and back.
//!
//! * [`Framer`] takes bytes in any cut and gives whole messages as a [`Frame`].
//! * [`decompress`] undoes OP_COMPRESSED, [`Compressor::compress`] does it.
//! * [`Message`] reads an OP_MSG without copying it, [`MessageBuf`] keeps one, [`MessageWriter`]
//!   writes one.
//! * [`Query`] and [`Reply`] are the two older messages, which only a legacy hello needs.
//! * [`Exchange`] knows whose turn it is, and whether a connection may go back to its pool.
//! * [`Channel`] is all of that together, for one connection of a client.
//!
//! Everything here expects the worst of the other side. A message is checked as a whole before
//! anything of it is shown, memory follows the bytes that came and not those that were announced,
//! nothing recurses, and each refusal is a [`WireError`] that says what was wrong and where. After
//! one the stream has no trustworthy boundaries any more: the connection has perished.
//!
//! # A command and its reply
//!
//! ```
//! use bson::rawdoc;
//! use cenote_core::wire::{
//!     Exchange, Flags, Framer, Ids, Message, MessageLimit, MessageWriter, Progress, RequestIds,
//!     decompress,
//! };
//!
//! let limit = MessageLimit::DEFAULT;
//! let mut requests = RequestIds::default();
//! let mut exchange = Exchange::default();
//!
//! // The client writes a command,
//! let request_id = requests.next_id();
//! let mut bytes = Vec::new();
//! MessageWriter::command(&mut bytes, Ids::request(request_id), Flags::NONE, &rawdoc! { "ping": 1 }, "admin")?
//!     .finish(limit)?;
//! exchange.begin_request(request_id, Flags::NONE)?;
//! // (here a shell sends the bytes)
//! exchange.request_written();
//! assert!(!exchange.is_reusable());
//!
//! // the server answers,
//! let mut answer = Vec::new();
//! let ids = Ids { request_id: 7, response_to: request_id };
//! MessageWriter::new(&mut answer, ids, Flags::NONE, &rawdoc! { "ok": 1.0 }).finish(limit)?;
//!
//! // and the client reads.
//! let (mut framer, mut scratch) = (Framer::new(limit), Vec::new());
//! framer.push(&answer);
//! let frame = framer.next_frame()?.expect("a whole message was pushed");
//! let reply = Message::parse(decompress(frame, limit, &mut scratch)?)?;
//! assert_eq!(reply.body().get_f64("ok").ok(), Some(1.0));
//! assert_eq!(exchange.reply(reply.header(), reply.flags())?, Progress::Complete);
//! assert!(exchange.is_reusable() && framer.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod channel;
mod compressed;
mod compressor;
mod document;
mod elements;
mod error;
mod exchange;
mod flags;
mod framer;
mod header;
mod legacy;
mod message;
mod message_buf;
mod reader;
mod request_ids;
mod sequence;
#[cfg(test)]
mod tests;
mod writer;

pub use channel::Channel;
pub use compressed::decompress;
pub use compressor::{Compressor, CompressorId, ZlibLevel, may_compress};
pub use document::{MAX_DEPTH, check_document};
pub(crate) use elements::Elements;
#[cfg(test)]
pub(crate) use elements::some_damaged;
pub use error::{Amount, BsonProblem, WireError};
pub use exchange::{Exchange, Progress};
pub use flags::Flags;
pub use framer::{Frame, Framer};
pub use header::{HEADER_LENGTH, Header, Ids, MessageLimit, OpCode};
pub use legacy::{Query, Reply};
pub use message::Message;
pub use message_buf::MessageBuf;
pub use request_ids::RequestIds;
pub use sequence::{DocumentSequence, Documents, Sequences};
pub use writer::MessageWriter;
