//! What commands and replies say.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use cenote_core::error::{CommandError, ConnectionError, ReplyPart, Stage};

use super::reauthentication::Reauthentication;
use crate::connection::operation::OperationLimit;

/// The reply to a command that succeeded.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reply {
    /// All of it.
    pub body: RawDocumentBuf,
    /// Its write concern error: see
    /// [`show_write_concern_error`](crate::pool::PooledConnection::show_write_concern_error).
    pub write_concern_error: Option<Box<CommandError>>,
}

/// Makes an error of a reply with `ok: 0`, and with a limit also of one with a part for which the server had no
/// time. Any other write concern error is a reply.
///
/// # Errors
///
/// The server's, without texts that repeat a part of what the connection has authenticated with.
// CS-15.
pub fn judge_within(
    limit: &OperationLimit,
    body: RawDocumentBuf,
    authentication: Option<&Reauthentication>,
) -> Result<Reply, ConnectionError> {
    let late = limit.deadline.and_then(|_| CommandError::timeout_in(&body));
    let is_late = late.is_some();
    let error = match late.or_else(|| CommandError::from_reply(&body)) {
        None => return Ok(Reply { body, write_concern_error: None }),
        Some(error) if error.part == ReplyPart::WriteConcern && !is_late => {
            return Ok(Reply { body, write_concern_error: Some(Box::new(error)) });
        }
        Some(error) => ConnectionError::command(Stage::Operation, error),
    };
    Err(match authentication {
        Some(authentication) => authentication.without_echoes(error),
        None => error,
    })
}

/// Checks that a command has `writeConcern: {w: 0}`, of any numeric type.
///
/// # Errors
///
/// It has not.
pub fn require_unacknowledged(command: &RawDocument) -> Result<(), ConnectionError> {
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
