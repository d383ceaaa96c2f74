//! One connection: bytes to the server, its orders to the socket.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;

use super::host::Host;
use super::socket::Transport;
use crate::{ConnectionId, Output, Peer};

/// How many bytes may wait for a peer that does not read. Until it does, nothing is read from it: a
/// peer that sends without reading stalls only itself.
const BACKLOG: usize = 1 << 20;

/// Until it ends: by an order, by the peer, or because the socket failed.
pub(super) async fn serve<T: Transport>(host: &Host, peer: Peer, transport: T) {
    let (id, orders) = host.accepted(peer);
    let (reader, writer) = tokio::io::split(transport);
    let mut connection = Connection {
        host,
        id,
        orders,
        reader,
        outgoing: Outgoing { writer, queue: VecDeque::new(), sent: 0, queued: 0, unflushed: false },
        dismissed: false,
        reads: true,
        input: vec![0; 16 * 1024],
    };
    let end = loop {
        match connection.step().await {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(end)) => break end,
            Err(_) => break End::Lost,
        }
    };
    host.closed(id);
    let Connection { reader, outgoing, .. } = connection;
    let mut transport = reader.unsplit(outgoing.writer);
    match end {
        End::Reset => {
            let _ = transport.reset_when_dropped();
        }
        End::Closed => {
            let _ = transport.shutdown().await;
        }
        // The operating system sends FIN.
        End::Fin | End::Lost => {}
    }
}

struct Connection<'a, T> {
    host: &'a Host,
    id: ConnectionId,
    orders: UnboundedReceiver<Output>,
    reader: ReadHalf<T>,
    outgoing: Outgoing<T>,
    /// No order comes any more.
    dismissed: bool,
    reads: bool,
    input: Vec<u8>,
}

enum End {
    /// All was sent that was to be sent.
    Closed,
    Fin,
    Reset,
    /// The peer is gone.
    Lost,
}

impl<T: Transport> Connection<'_, T> {
    /// Whatever comes first: an order, room for what is to be sent, or bytes of the peer.
    async fn step(&mut self) -> io::Result<ControlFlow<End>> {
        let reads = self.reads && !self.dismissed && self.outgoing.queued < BACKLOG;
        tokio::select! {
            biased;
            order = self.orders.recv(), if !self.dismissed => Ok(self.obey(order)),
            sent = self.outgoing.progress(), if self.outgoing.is_busy() => sent,
            read = self.reader.read(&mut self.input), if reads => match read? {
                0 => Ok(ControlFlow::Break(End::Lost)),
                count => {
                    self.host.received(self.id, self.input.get(..count).unwrap_or_default());
                    Ok(ControlFlow::Continue(()))
                }
            },
            else => Ok(ControlFlow::Break(End::Lost)),
        }
    }

    fn obey(&mut self, order: Option<Output>) -> ControlFlow<End> {
        match order {
            Some(Output::StopReading { .. }) => self.reads = false,
            Some(Output::ResumeReading { .. }) => self.reads = true,
            Some(Output::Reset { .. }) => return ControlFlow::Break(End::Reset),
            Some(order) => self.outgoing.push(order),
            // `Close` was the last order, and waits for its turn.
            None => self.dismissed = true,
        }
        ControlFlow::Continue(())
    }
}

/// What is to be sent, in order.
struct Outgoing<T> {
    writer: WriteHalf<T>,
    queue: VecDeque<Output>,
    /// Bytes of the first one that were sent.
    sent: usize,
    /// Bytes in the queue.
    queued: usize,
    unflushed: bool,
}

impl<T: Transport> Outgoing<T> {
    fn push(&mut self, output: Output) {
        if let Output::Send { bytes, .. } = &output {
            self.queued += bytes.len();
        }
        self.queue.push_back(output);
    }

    fn is_busy(&self) -> bool {
        self.unflushed || !self.queue.is_empty()
    }

    /// One write, flush or end. Dropped while it waits, it has done nothing yet.
    async fn progress(&mut self) -> io::Result<ControlFlow<End>> {
        match self.queue.front() {
            Some(Output::Send { bytes, .. }) => {
                let rest = bytes.get(self.sent..).unwrap_or_default();
                let count = self.writer.write(rest).await?;
                self.sent += count;
                self.queued -= count;
                self.unflushed = true;
                if self.sent == bytes.len() {
                    self.sent = 0;
                    self.queue.pop_front();
                } else if count == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
            }
            Some(Output::HalfClose { .. }) => {
                self.writer.shutdown().await?;
                self.queue.pop_front();
                self.unflushed = false;
            }
            end => {
                let end = end.map(|end| matches!(end, Output::Fin { .. }));
                self.writer.flush().await?;
                self.unflushed = false;
                match end {
                    Some(true) => return Ok(ControlFlow::Break(End::Fin)),
                    Some(false) => return Ok(ControlFlow::Break(End::Closed)),
                    None => {}
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
