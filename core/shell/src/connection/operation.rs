//! What becomes of what is done with a connection.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use cenote_core::error::{CommandError, ConnectionError, ReplyPart, Stage};

/// A refusal is an error; a write concern error is a reply.
///
/// # Errors
///
/// The server's `ok: 0`.
pub fn judge(reply: RawDocumentBuf) -> Result<RawDocumentBuf, ConnectionError> {
    match CommandError::from_reply(&reply) {
        Some(error) if error.part == ReplyPart::Command => {
            Err(ConnectionError::command(Stage::Operation, error))
        }
        Some(_) | None => Ok(reply),
    }
}

/// MS-08: whether a command says `w: 0`, as whatever kind of number.
///
/// # Errors
///
/// It does not: a server that takes it for an acknowledged one would keep its reply to itself.
pub fn has_to_be_unacknowledged(command: &RawDocument) -> Result<(), ConnectionError> {
    let concern = command.get_document("writeConcern");
    let w = concern.ok().and_then(|concern| concern.get("w").ok().flatten());
    let is_unacknowledged = w.is_some_and(|w| {
        w == RawBsonRef::Int32(0) || w == RawBsonRef::Int64(0) || w == RawBsonRef::Double(0.0)
    });
    if is_unacknowledged {
        return Ok(());
    }
    let reason = "a command without a reply has to say `writeConcern: {w: 0}`";
    Err(ConnectionError::configuration(Stage::Operation, reason))
}

/// What is wrong with a connection that comes back: something is under way, unread, or broken (CO-19).
#[must_use]
pub fn fault(is_reusable: bool) -> Option<ConnectionError> {
    let reason = "checked in in the middle of an exchange";
    (!is_reusable).then(|| ConnectionError::protocol(Stage::Operation, reason))
}
