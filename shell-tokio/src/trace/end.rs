//! The end of a recording.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::error::RecordingError;
use super::scribe::Message;
use crate::connector::Connector;
use crate::pool::Pool;

impl<K: Connector> Pool<K> {
    /// Ends [the recording](crate::Builder::record) and waits until the trace is whole: with all that
    /// happened up to this call. Dumps that were under way are written then, too. The pool goes on,
    /// and so does its flight recorder. Dropping the future ends the recording all the same.
    ///
    /// Without a recording, and when it was ended before, there is nothing to end.
    ///
    /// # Errors
    ///
    /// What kept the trace from being written whole.
    pub async fn end_recording(&self) -> Result<(), RecordingError> {
        let (reply, replied) = oneshot::channel();
        {
            let mut desk = self.shared().lock();
            if desk.clerk.is_none() {
                return Ok(());
            }
            let rest = desk.end_journal();
            if let Some(clerk) = &desk.clerk {
                clerk.send(Message::End { rest, reply: Some(reply) });
            }
        }
        let gone = |_| {
            let error = io::Error::other("the thread that writes has ended");
            Err(RecordingError::Writer(Arc::new(error)))
        };
        replied.await.unwrap_or_else(gone)
    }
}
