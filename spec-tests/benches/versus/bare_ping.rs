//! A ping's bytes, and nothing done about them.

use std::net::SocketAddr;

use bson::rawdoc;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server;

/// The same bytes as a driver's ping has at least.
pub(crate) struct NoPayload {
    socket: Box<dyn Stream>,
    ping: Vec<u8>,
    reply: Vec<u8>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl NoPayload {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("the server listens");
        socket.set_nodelay(true).expect("TCP");
        Self::over(socket)
    }

    pub(crate) fn over(socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let mut ping = Vec::new();
        let body = rawdoc! { "ping": 1, "$db": "admin" };
        let writer = MessageWriter::new(&mut ping, Ids::request(1), Flags::NONE, &body);
        writer.finish(MessageLimit::DEFAULT).expect("short");
        Self { socket: Box::new(socket), ping, reply: vec![0; server::reply(&[], 0).len()] }
    }

    pub(crate) async fn ping(&mut self) {
        self.socket.write_all(&self.ping).await.expect("an open connection");
        self.socket.flush().await.expect("an open connection");
        self.socket.read_exact(&mut self.reply).await.expect("a reply");
    }
}
