//! What goes in.

use core::time::Duration;

use bson::RawDocumentBuf;

use super::SocketId;
use crate::connect::ConnectionDescription;
use crate::error::ConnectionError;
use crate::sdam::Verdict;

/// Something that happened. Answers of a socket that is closed by now are ignored: they crossed the
/// `Close`.
#[derive(Clone, Debug)]
pub enum Input {
    /// A socket is open, and hello is answered: a check of its own on the line of checks.
    Opened {
        /// As it came with `Open`.
        socket: SocketId,
        /// The reply of the server.
        hello: Box<ConnectionDescription>,
        /// From the last byte of hello to the last byte of its answer, as near as can be measured:
        /// neither TCP nor TLS belong to it.
        round_trip: Duration,
    },
    /// A reply to a command.
    Replied {
        /// As it came with `Send`.
        socket: SocketId,
        /// The document of the message.
        reply: RawDocumentBuf,
        /// Whether the server streams more replies: the flag `moreToCome`.
        more_to_come: bool,
    },
    /// A socket could not be opened, or failed: an I/O error, the end of the stream, a broken
    /// protocol. After hello the [stage](crate::error::Stage) is `Hello`, too.
    Failed {
        /// As it came with `Open`.
        socket: SocketId,
        /// Why.
        error: ConnectionError,
    },
    /// A caller needs a server and finds none: check as soon as the floor of 500 ms between two
    /// checks allows.
    RequestCheck,
    /// A connection of the application failed, with the verdict of SDAM. What it says of
    /// the pool is the embedder's to do, under the same lock.
    ApplicationFailed {
        /// Why.
        error: ConnectionError,
        /// As [`sdam::verdict`](crate::sdam::verdict()) judged it.
        verdict: Verdict,
    },
    /// A deadline has come. Early, late or twice does no harm.
    Timer,
    /// Stop for good: sockets are closed, nothing is due any more, all inputs are ignored.
    Close,
}
