//! A ping's bytes, and nothing done about them.

use bson::RawDocument;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The same bytes as a driver's ping has at least.
pub(crate) struct NoPayload {
    socket: Box<dyn Stream>,
    ping: Vec<u8>,
    reply: Vec<u8>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl NoPayload {
    /// For one command, and replies of that length.
    pub(crate) fn over(
        socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        command: &RawDocument,
        reply: usize,
    ) -> Self {
        let (mut ping, ids) = (Vec::new(), Ids::request(1));
        let writer = MessageWriter::command(&mut ping, ids, Flags::NONE, command, "admin");
        writer.expect("a command").finish(MessageLimit::DEFAULT).expect("short");
        Self { socket: Box::new(socket), ping, reply: vec![0; reply + 1] }
    }

    pub(crate) async fn ping(&mut self) {
        self.socket.write_all(&self.ping).await.expect("an open connection");
        self.socket.flush().await.expect("an open connection");
        let mut got = 0;
        // With a byte more to fill tokio knows that there is no more to read.
        while got + 1 < self.reply.len() {
            let count = self.socket.read(&mut self.reply[got..]).await.expect("a reply");
            assert_ne!(count, 0, "the server closes nothing");
            got += count;
        }
    }
}
