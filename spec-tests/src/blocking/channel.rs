//! Messages on a stream, one exchange after the other.

use std::io::{self, Read, Write};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{Command, Establish};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{
    Compressor, Exchange, Flags, Frame, Framer, Ids, Message, MessageLimit, MessageWriter,
    Progress, RequestIds, WireError, decompress, may_compress,
};

use super::socket::{Deadline, TimedOut};
use super::tls::Stream;

/// Messages on a stream.
pub(super) struct Channel {
    stream: Stream,
    framer: Framer,
    exchange: Exchange,
    requests: RequestIds,
    limit: MessageLimit,
    compressor: Option<Compressor>,
    /// Where messages are written before they are sent.
    outgoing: Vec<u8>,
    /// Where messages are compressed before they are sent, and decompressed when they came.
    scratch: Vec<u8>,
}

/// What goes wrong between two messages, wherever that is.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The socket failed, or the peer closed it.
    Network(io::Error),
    /// The time is over.
    TimedOut(Duration),
    /// TLS refuses the peer, or the peer refuses us.
    Tls(rustls::Error),
    /// What came is not what the protocol allows.
    Garbled(WireError),
    /// The command cannot be sent.
    Unsendable(WireError),
}

impl Channel {
    pub(super) fn new(stream: Stream) -> Self {
        let limit = MessageLimit::DEFAULT;
        Self {
            stream,
            framer: Framer::new(limit),
            exchange: Exchange::default(),
            requests: RequestIds::default(),
            limit,
            compressor: None,
            outgoing: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// What hello agreed to, from now on.
    pub(super) fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.limit = limit;
        self.framer.set_limit(limit);
        self.compressor = compressor;
    }

    pub(super) fn set_deadline(&mut self, deadline: Option<Deadline>) {
        self.stream.set_deadline(deadline);
    }

    pub(super) fn is_reusable(&self) -> bool {
        self.exchange.is_reusable() && self.framer.is_empty()
    }

    /// A command of the establishment, which is complete and never compressed.
    pub(super) fn send_raw(&mut self, command: &Command) -> Result<(), Trouble> {
        self.outgoing.clear();
        let request_id = self.requests.next_id();
        let ids = Ids::request(request_id);
        MessageWriter::new(&mut self.outgoing, ids, Flags::NONE, command.body())
            .finish(self.limit)
            .map_err(Trouble::Unsendable)?;
        self.write(request_id, Flags::NONE, false)
    }

    /// A command, with a section of documents if there are any.
    pub(super) fn send(
        &mut self,
        database: &str,
        command: &RawDocument,
        (name, documents): (&str, &[RawDocumentBuf]),
        flags: Flags,
    ) -> Result<(), Trouble> {
        self.outgoing.clear();
        let request_id = self.requests.next_id();
        let ids = Ids::request(request_id);
        let write = |buffer| {
            let mut message = MessageWriter::command(buffer, ids, flags, command, database)?;
            if !documents.is_empty() {
                message.sequence(name, documents)?;
            }
            message.finish(self.limit)
        };
        write(&mut self.outgoing).map_err(Trouble::Unsendable)?;
        let command_name = command.iter().next().and_then(Result::ok);
        let compress = command_name.is_some_and(|(name, _)| may_compress(name.as_str()));
        self.write(request_id, flags, compress)
    }

    fn write(&mut self, request_id: i32, flags: Flags, compress: bool) -> Result<(), Trouble> {
        let Self { outgoing, scratch, .. } = self;
        let bytes = match self.compressor {
            Some(compressor) if compress => {
                scratch.clear();
                Frame::new(outgoing, self.limit)
                    .and_then(|frame| compressor.compress(frame, self.limit, scratch))
                    .map_err(Trouble::Unsendable)?;
                scratch
            }
            Some(_) | None => outgoing,
        };
        self.exchange.begin_request(request_id, flags).map_err(Trouble::Unsendable)?;
        self.stream.write_all(bytes)?;
        self.stream.flush()?;
        self.exchange.request_written();
        Ok(())
    }

    /// Waits for a whole message, and says whether another one follows.
    pub(super) fn receive(&mut self) -> Result<(RawDocumentBuf, Progress), Trouble> {
        loop {
            if let Some(frame) = self.framer.next_frame()? {
                let frame = decompress(frame, self.limit, &mut self.scratch)?;
                let reply = Message::parse(frame)?;
                let progress = self.exchange.reply(reply.header(), reply.flags())?;
                return Ok((reply.body().to_owned(), progress));
            }
            match self.stream.read(self.framer.spare())? {
                0 => {
                    self.framer.finish()?;
                    let closed = "closed by the peer";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, closed).into());
                }
                count => self.framer.filled(count),
            }
        }
    }
}

impl Trouble {
    /// What it means at that stage. What TLS decides has a stage of its own and is never overload
    /// (ER-32), even if the peer says so after the handshake, as with TLS 1.3.
    pub(super) fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::Network(error) => ConnectionError::network(stage, error),
            Self::TimedOut(after) => ConnectionError::timeout(stage, after),
            Self::Tls(error) if stage.is_establishing() => ConnectionError::certificate(error),
            Self::Tls(error) => ConnectionError::network(stage, error),
            Self::Garbled(WireError::EndOfStream { got, expected }) => {
                ConnectionError::network(stage, WireError::EndOfStream { got, expected })
            }
            Self::Garbled(error) => ConnectionError::protocol(stage, &error.to_string()),
            Self::Unsendable(error) => ConnectionError::configuration(stage, &error.to_string()),
        }
    }

    /// Lets the machine say what it means.
    pub(super) fn tell(self, establish: &mut Establish) -> Result<(), ConnectionError> {
        match self {
            Self::Network(error) => establish.failed(error),
            Self::TimedOut(after) => establish.timed_out(after),
            Self::Garbled(WireError::EndOfStream { got, expected }) => {
                establish.failed(WireError::EndOfStream { got, expected });
            }
            Self::Garbled(error) => establish.garbled(&error.to_string()),
            Self::Tls(_) | Self::Unsendable(_) => return Err(self.at(establish.stage())),
        }
        Ok(())
    }
}

impl From<io::Error> for Trouble {
    /// An I/O error may carry a deadline that ended, or what TLS thinks.
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(timed_out) = inner.and_then(|inner| inner.downcast_ref::<TimedOut>()) {
            return Self::TimedOut(timed_out.after);
        }
        match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(refused) => Self::Tls(refused.clone()),
            None => Self::Network(error),
        }
    }
}

impl From<WireError> for Trouble {
    fn from(error: WireError) -> Self {
        Self::Garbled(error)
    }
}
