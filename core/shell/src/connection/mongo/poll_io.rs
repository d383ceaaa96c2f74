//! An asynchronous stream for the steps of a [`Transport`](super::Transport).

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use crate::connection::transport_error::TransportError;

/// A stream during one poll: what is pending would block, and wakes the task later. So does what a peer sends without a
/// pause: after some reads others have a turn, on every runtime.
pub(super) struct PollIo<'a, 'b, S> {
    stream: &'a mut S,
    cx: &'a mut Context<'b>,
    /// How often it may be read or written still.
    left: u32,
}

/// About a megabyte.
const AT_ONCE: u32 = 64;

/// What a step fails with, which may only say when it is to be called again.
pub(super) trait StepError {
    fn io_kind(&self) -> Option<ErrorKind>;
}

impl StepError for io::Error {
    fn io_kind(&self) -> Option<ErrorKind> {
        Some(self.kind())
    }
}

impl StepError for TransportError {
    fn io_kind(&self) -> Option<ErrorKind> {
        if let Self::Io(error) = self { Some(error.kind()) } else { None }
    }
}

/// Repeats `step` until it is done or pending, and says `again` before it is repeated.
pub(super) fn poll_steps<S: AsyncRead + AsyncWrite + Unpin, T, E: StepError>(
    stream: &mut S,
    cx: &mut Context<'_>,
    mut step: impl FnMut(&mut PollIo<'_, '_, S>) -> Result<T, E>,
    mut again: impl FnMut(),
) -> Poll<Result<T, E>> {
    let mut io = PollIo { stream, cx, left: AT_ONCE };
    loop {
        let outcome = step(&mut io);
        let kind = outcome.as_ref().err().and_then(StepError::io_kind);
        if kind == Some(ErrorKind::Interrupted) {
            again();
        } else if kind == Some(ErrorKind::WouldBlock) {
            return Poll::Pending;
        } else {
            return Poll::Ready(outcome);
        }
    }
}

impl<S: Unpin> PollIo<'_, '_, S> {
    fn poll<T>(
        &mut self,
        operation: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        let Some(left) = self.left.checked_sub(1) else {
            self.cx.waker().wake_by_ref();
            return Err(ErrorKind::WouldBlock.into());
        };
        self.left = left;
        match operation(Pin::new(self.stream), self.cx) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl<S: AsyncRead + Unpin> Read for PollIo<'_, '_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.poll(|stream, cx| stream.poll_read(cx, buffer))
    }
}

impl<S: AsyncWrite + Unpin> Write for PollIo<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.poll(|stream, cx| stream.poll_write(cx, bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.poll(|stream, cx| stream.poll_write_vectored(cx, parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.poll(AsyncWrite::poll_flush)
    }
}
