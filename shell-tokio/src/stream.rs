use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use cenote_shell::runtime::BoxedStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connected stream of the application's, for
/// [`MongoConnector::establish`](cenote_shell::connection::MongoConnector::establish): made from any tokio
/// stream, such as one through a tunnel or in a simulated network.
pub struct OpenStream(BoxedStream);

impl OpenStream {
    pub(crate) fn into_inner(self) -> BoxedStream {
        self.0
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> From<S> for OpenStream {
    fn from(stream: S) -> Self {
        Self(Box::new(TokioStream(stream)))
    }
}

impl fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStream").finish_non_exhaustive()
    }
}

/// A tokio stream with the traits of futures-io. Unlike tokio-util's `Compat` it forwards vectored writes,
/// with which several TLS records leave in one system call.
pub(crate) struct TokioStream<S>(pub(crate) S);

impl<S: AsyncRead + Unpin> futures_io::AsyncRead for TokioStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<S: AsyncWrite + Unpin> futures_io::AsyncWrite for TokioStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
