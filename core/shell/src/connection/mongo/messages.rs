//! Messages on an asynchronous stream, with time limits.

use std::io::{self, ErrorKind};
use std::task::{Context, Poll, Waker};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Flags, MessageBuf};

use super::drive::drive;
use super::limit::Limit;
use super::poll_io::{PollIo, poll_steps};
use super::transport::Transport;
use crate::connection::operation::OperationLimit;
use crate::connection::transport_error::TransportError;
use crate::runtime::Network;

/// A socket on its runtime, and the messages on it.
pub(super) struct Messages<R: Network> {
    pub(super) runtime: R,
    pub(super) stream: R::Stream,
    pub(super) transport: Transport,
}

impl<R: Network> Messages<R> {
    /// The TLS handshake, if there is TLS.
    pub(super) async fn shake(&mut self, limit: Limit) -> Result<(), TransportError> {
        let Self { runtime, stream, transport } = self;
        drive(runtime, stream, limit, |io| Ok(transport.shake(io)?)).await
    }

    /// `database` is `None` for a command that names its own.
    pub(super) async fn send(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
        limit: Limit,
    ) -> Result<(), TransportError> {
        let Self { runtime, stream, transport } = self;
        transport.begin(command, database, flags)?;
        drive(runtime, stream, limit, |io| Ok(transport.write(io)?)).await
    }

    /// Begins the command of an operation, unless its time is over.
    // CS-11, CS-14.
    fn begin_within(
        &mut self,
        command: &RawDocument,
        database: &str,
        flags: Flags,
        limit: &OperationLimit,
    ) -> Result<(), TransportError> {
        let command = limit.bound(command, R::now)?;
        self.transport.begin(&command, Some(database), flags)?;
        limit.check_before_write(R::now).inspect_err(|_| self.transport.withdraw())
    }

    /// Sends the command of an operation.
    pub(super) async fn send_within(
        &mut self,
        command: &RawDocument,
        database: &str,
        flags: Flags,
        limit: &OperationLimit,
    ) -> Result<(), TransportError> {
        self.begin_within(command, database, flags, limit)?;
        let Self { runtime, stream, transport } = self;
        drive(runtime, stream, limit.into(), |io| Ok(transport.write(io)?)).await
    }

    /// Sends the command of an operation, and receives the body of its reply.
    // CS-12
    pub(super) async fn exchange(
        &mut self,
        command: &RawDocument,
        database: &str,
        limit: &OperationLimit,
    ) -> Result<RawDocumentBuf, TransportError> {
        self.begin_within(command, database, Flags::NONE, limit)?;
        let Self { runtime, stream, transport } = self;
        let step = |io: &mut PollIo<'_, '_, R::Stream>| {
            if !transport.is_writing() {
                return transport.read(io);
            }
            transport.write(io)?;
            limit.check_before_read(R::now)?;
            // The step is repeated: the wait for the reply is another one.
            Err(io::Error::from(ErrorKind::Interrupted).into())
        };
        drive(runtime, stream, limit.into(), step).await
    }

    /// Sends one whole OP_MSG, uncompressed, with its header; without a copy.
    pub(super) async fn send_message(
        &mut self,
        message: &[u8],
        limit: Limit,
    ) -> Result<(), TransportError> {
        let Self { runtime, stream, transport: Transport { channel, layer, .. } } = self;
        let bytes = channel.begin_borrowed(message).map_err(TransportError::Refused)?;
        let mut written = 0;
        let write = |io: &mut PollIo<'_, '_, _>| Ok(layer.write_all(io, bytes, &mut written)?);
        drive(runtime, stream, limit, write).await?;
        channel.written();
        Ok(())
    }

    /// The body of the next reply.
    pub(super) async fn receive(&mut self, limit: Limit) -> Result<RawDocumentBuf, TransportError> {
        let Self { runtime, stream, transport } = self;
        drive(runtime, stream, limit, |io| transport.read(io)).await
    }

    /// Reads the reply that is still to come and discards it, however long that takes. `on_bytes` is called whenever
    /// some of it was read.
    pub(super) async fn drain(&mut self, on_bytes: impl Fn()) -> Result<(), TransportError> {
        let Self { runtime, stream, transport } = self;
        let read = |io: &mut PollIo<'_, '_, R::Stream>| {
            let step = transport.read_message(io);
            if let Err(TransportError::Io(error)) = &step
                && error.kind() == ErrorKind::Interrupted
            {
                on_bytes();
            }
            step
        };
        drive(runtime, stream, Limit::each(None), read).await.map(drop)
    }

    /// What was wrong with the connection while it was idle, as far as is known at this moment.
    #[cold]
    pub(super) fn idle_fault(&mut self) -> Option<ConnectionError> {
        let Self { stream, transport, .. } = self;
        let mut cx = Context::from_waker(Waker::noop());
        match poll_steps(stream, &mut cx, |io| transport.look(io), || {}) {
            Poll::Ready(Ok(never)) => match never {},
            Poll::Ready(Err(error)) => Some(ConnectionError::network(Stage::Operation, error)),
            Poll::Pending => None,
        }
    }

    /// The next reply. What was received of it when the future is dropped stays here for the next
    /// call.
    // MS-09
    pub(super) async fn receive_message(
        &mut self,
        limit: Limit,
    ) -> Result<MessageBuf, TransportError> {
        let Self { runtime, stream, transport } = self;
        drive(runtime, stream, limit, |io| transport.read_message(io)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, advance, sleep};
    use tokio_util::compat::TokioAsyncReadCompatExt;

    use super::super::test_runtime::{Attempt, TestRuntime};
    use super::{Limit, Messages, Transport, TransportError};
    use crate::connection::operation::{CommandTimeouts, OperationOptions};

    // OP-19: the reply comes in two parts, each within the limit of a wait, and too late for that
    /// of a command.
    // CS-13
    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_limit() {
        let second = Duration::from_secs(1);
        for for_command in [false, true] {
            let (near, mut far) = duplex(4096);
            let runtime = TestRuntime::new(|_| Attempt::Refused);
            let (stream, transport) = (near.compat(), Transport::new());
            let mut messages = Messages { runtime, stream, transport };
            let peer = tokio::spawn(async move {
                let ids = Ids { request_id: 7, response_to: 1 };
                let mut reply = Vec::new();
                MessageWriter::new(&mut reply, ids, Flags::NONE, &bson::rawdoc! { "ok": 1 })
                    .finish(MessageLimit::DEFAULT)
                    .unwrap();
                far.read_u8().await.unwrap();
                for part in reply.chunks(20) {
                    sleep(second * 2 / 3).await;
                    far.write_all(part).await.unwrap();
                }
                sleep(second * 60).await;
            });
            let limit = Limit::each(Some(second));
            let limit = if for_command { limit.for_command(now) } else { limit };
            let ping = bson::rawdoc! { "ping": 1, "$db": "admin" };
            messages.send(&ping, None, Flags::EXHAUST_ALLOWED, limit).await.unwrap();
            let begin = Instant::now();
            let first = messages.receive_message(limit).await;
            if for_command {
                assert!(matches!(first, Err(TransportError::TimedOut(after)) if after == second));
                assert!((1000..1010).contains(&begin.elapsed().as_millis()));
            } else {
                first.unwrap();
            }
            peer.abort();
        }
    }

    /// The peer takes the end of the command within the limit of a wait, and answers within that of another one.
    // CS-13
    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_reply_begins_when_its_command_is_written() {
        let (near, mut far) = duplex(40);
        let runtime = TestRuntime::new(|_| Attempt::Refused);
        let (stream, transport) = (near.compat(), Transport::new());
        let mut messages = Messages { runtime, stream, transport };
        let wait = Duration::from_millis(700);
        let peer = tokio::spawn(async move {
            sleep(wait).await;
            far.read_exact(&mut [0; 51]).await.unwrap();
            sleep(wait).await;
            let (mut reply, ids) = (Vec::new(), Ids { request_id: 7, response_to: 1 });
            MessageWriter::new(&mut reply, ids, Flags::NONE, &bson::rawdoc! { "ok": 1 })
                .finish(MessageLimit::DEFAULT)
                .unwrap();
            far.write_all(&reply).await.unwrap();
            far
        });
        let socket = Some(Duration::from_secs(1));
        let timeouts = CommandTimeouts { operation: None, socket };
        let limit = timeouts.limit(OperationOptions::new(), now);
        messages.exchange(&bson::rawdoc! { "ping": 1 }, "admin", &limit).await.unwrap();
        peer.await.unwrap();
    }

    /// An establishment whose deadline passed before its next step began.
    #[tokio::test(start_paused = true)]
    async fn a_step_after_a_stop_of_the_process_has_a_little_time() {
        for has_reply in [true, false] {
            let (near, mut far) = duplex(4096);
            let runtime = TestRuntime::new(|_| Attempt::Refused);
            let (stream, transport) = (near.compat(), Transport::new());
            let mut messages = Messages { runtime, stream, transport };
            let limit = Limit::of(now(), Duration::from_secs(1));
            advance(Duration::from_secs(3)).await;
            let peer = tokio::spawn(async move {
                far.read_u8().await.unwrap();
                sleep(Duration::from_millis(20)).await;
                let ids = Ids { request_id: 7, response_to: 1 };
                let mut reply = Vec::new();
                MessageWriter::new(&mut reply, ids, Flags::NONE, &bson::rawdoc! { "ok": 1 })
                    .finish(MessageLimit::DEFAULT)
                    .unwrap();
                if has_reply {
                    far.write_all(&reply).await.unwrap();
                }
                sleep(Duration::from_secs(60)).await;
            });
            let ping = bson::rawdoc! { "ping": 1, "$db": "admin" };
            messages.send(&ping, None, Flags::EXHAUST_ALLOWED, limit).await.unwrap();
            let begin = Instant::now();
            let reply = messages.receive_message(limit).await;
            assert_eq!(reply.is_ok(), has_reply);
            assert!(begin.elapsed() <= Duration::from_millis(110), "{:?}", begin.elapsed());
            peer.abort();
        }
    }

    /// That time is given once: a peer that sends a byte now and then does not extend it.
    #[tokio::test(start_paused = true)]
    async fn a_step_after_a_stop_of_the_process_ends_also_if_bytes_drip() {
        let (near, mut far) = duplex(4096);
        let runtime = TestRuntime::new(|_| Attempt::Refused);
        let (stream, transport) = (near.compat(), Transport::new());
        let mut messages = Messages { runtime, stream, transport };
        let limit = Limit::of(now(), Duration::from_secs(1));
        advance(Duration::from_secs(3)).await;
        let peer = tokio::spawn(async move {
            far.read_u8().await.unwrap();
            // The length of a long message comes first.
            for byte in [0, 4, 0, 0].into_iter().chain(std::iter::repeat_n(0, 900)) {
                far.write_u8(byte).await.unwrap();
                sleep(Duration::from_millis(50)).await;
            }
        });
        let ping = bson::rawdoc! { "ping": 1, "$db": "admin" };
        messages.send(&ping, None, Flags::EXHAUST_ALLOWED, limit).await.unwrap();
        let begin = Instant::now();
        messages.receive_message(limit).await.unwrap_err();
        assert!(begin.elapsed() <= Duration::from_millis(110), "{:?}", begin.elapsed());
        peer.abort();
    }

    fn now() -> std::time::Instant {
        Instant::now().into_std()
    }
}
