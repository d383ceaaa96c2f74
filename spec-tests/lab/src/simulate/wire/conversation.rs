//! A client's conversation on one link, as a shell has it: proxy, hello, authentication, then commands.

mod establishing;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::{
    ConnectionDescription, Establish, EstablishOptions, Nonce, ScramCache, Socks5,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::Instant;
use cenote_core::uri::ProxyOptions;
use cenote_core::wire::{Channel, Flags, WireError};

use super::scanner::Scanner;

/// The conversation on one link.
#[derive(Debug)]
pub(super) struct Conversation {
    channel: Channel,
    phase: Phase,
    options: Arc<EstablishOptions>,
    /// The stage of errors once it is established.
    stage: Stage,
    nonces: [Nonce; 2],
    /// When the last message was sent, and how long its reply took.
    sent: Instant,
    round_trip: Duration,
}

#[derive(Debug)]
enum Phase {
    Connecting,
    Proxy(Socks5),
    Establishing(Box<Establish>),
    Open,
    /// It has failed; with the error, if the error was not reported because no command was under way.
    Over(Option<ConnectionError>),
}

/// What all connections of a client share.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: ServerAddress,
    pub(super) proxy: Option<ProxyOptions>,
    pub(super) scram: ScramCache,
    pub(super) now: Instant,
}

/// What is to be done, or has happened.
#[derive(Debug)]
pub(super) enum Output {
    Send(Vec<u8>),
    /// The server replied to hello.
    Handshaken(Box<ConnectionDescription>),
    Opened {
        hello: Box<ConnectionDescription>,
        round_trip: Duration,
    },
    Reply {
        body: RawDocumentBuf,
        more_to_come: bool,
    },
    /// The connection is broken.
    Failed(ConnectionError),
    /// Data or the end arrived while no reply was awaited.
    Unexpected(ConnectionError),
}

/// How a stream ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamEnd {
    /// The server does not listen.
    Refused,
    End,
    Reset,
    /// A timeout of this duration is over.
    TimedOut(Duration),
}

impl Conversation {
    /// Starts to connect. Monitors are more lenient (`docs/decisions/0008-what-monitors-accept.md`).
    pub(super) fn new(
        options: Arc<EstablishOptions>,
        nonces: [Nonce; 2],
        is_monitor: bool,
    ) -> Self {
        let (channel, stage) = if is_monitor {
            (Channel::lenient(), Stage::Hello)
        } else {
            (Channel::new(), Stage::Operation)
        };
        let (sent, round_trip) = (Instant::ORIGIN, Duration::ZERO);
        Self { channel, phase: Phase::Connecting, options, stage, nonces, sent, round_trip }
    }

    /// Whether the connection may be used again.
    pub(super) fn is_reusable(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.channel.is_reusable()
    }

    /// Whether the connection is still being established.
    pub(super) const fn is_opening(&self) -> bool {
        match self.phase {
            Phase::Connecting | Phase::Proxy(_) | Phase::Establishing(_) => true,
            Phase::Open | Phase::Over(_) => false,
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    pub(super) fn awaits_reply(&self) -> bool {
        self.is_open() && self.channel.awaits_reply()
    }

    /// The stream is connected.
    pub(super) fn connected(&mut self, client: &mut Client, scanner: &mut Scanner) -> Vec<Output> {
        let Phase::Connecting = self.phase else { return Vec::new() };
        let next = match &client.proxy {
            Some(proxy) => {
                Socks5::new(&client.address, proxy.credential.as_ref()).map(Phase::Proxy)
            }
            None => self.begin_hello(),
        };
        self.begin(next, client, scanner)
    }

    /// Bytes arrived.
    pub(super) fn received(
        &mut self,
        bytes: &[u8],
        client: &mut Client,
        scanner: &mut Scanner,
    ) -> Vec<Output> {
        if let Phase::Proxy(socks5) = &mut self.phase {
            // A server sends nothing before hello: all bytes are the proxy's.
            socks5.received(bytes);
            return self.advance(client, scanner);
        }
        self.buffer(bytes);
        if self.is_open() && !self.channel.awaits_reply() {
            return vec![Output::Unexpected(ConnectionError::protocol(
                self.stage,
                "unexpected bytes",
            ))];
        }
        self.advance(client, scanner)
    }

    /// The stream ended, or a timeout is over.
    pub(super) fn broke(
        &mut self,
        how: StreamEnd,
        client: &mut Client,
        scanner: &mut Scanner,
    ) -> Vec<Output> {
        match &mut self.phase {
            Phase::Connecting => self.fail(how.at(connecting(client))),
            Phase::Proxy(_) => self.fail(how.at(Stage::Proxy)),
            Phase::Establishing(establish) => {
                match (how, self.channel.end()) {
                    (StreamEnd::TimedOut(after), _) => establish.timed_out(after),
                    (StreamEnd::End, Err(error)) => establish.failed(error),
                    (StreamEnd::End, Ok(())) => establish.failed("closed by the peer"),
                    (StreamEnd::Refused | StreamEnd::Reset, _) => establish.failed(how.error()),
                }
                self.advance(client, scanner)
            }
            Phase::Open => {
                let awaited = self.channel.awaits_reply();
                let error = match (how, self.channel.end()) {
                    (StreamEnd::End, Err(error)) => ConnectionError::network(self.stage, error),
                    _ => how.at(self.stage),
                };
                if awaited {
                    return self.fail(error);
                }
                self.phase = Phase::Over(Some(error.clone()));
                vec![Output::Unexpected(error)]
            }
            Phase::Over(_) => Vec::new(),
        }
    }

    /// Sends a command. A reply or a failure follows.
    pub(super) fn send(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<Vec<u8>, ConnectionError> {
        match &mut self.phase {
            Phase::Open => {}
            Phase::Over(Some(error)) => return Err(error.clone()),
            Phase::Connecting | Phase::Proxy(_) | Phase::Establishing(_) | Phase::Over(None) => {
                let reason = "the connection is not established, or has failed";
                return Err(ConnectionError::configuration(self.stage, reason));
            }
        }
        let begun = self.channel.begin(command, database, flags);
        begun.map_err(|error| refused(self.stage, &error))?;
        let bytes = self.channel.outgoing().to_vec();
        self.channel.written();
        Ok(bytes)
    }

    fn begin(
        &mut self,
        next: Result<Phase, ConnectionError>,
        client: &mut Client,
        scanner: &mut Scanner,
    ) -> Vec<Output> {
        match next {
            Ok(phase) => {
                self.phase = phase;
                self.advance(client, scanner)
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: ConnectionError) -> Vec<Output> {
        self.phase = Phase::Over(None);
        vec![Output::Failed(error)]
    }

    /// Continues until input is needed.
    fn advance(&mut self, client: &mut Client, scanner: &mut Scanner) -> Vec<Output> {
        scanner.scan_connection(self);
        match &self.phase {
            Phase::Proxy(_) => self.go_through_proxy(client, scanner),
            Phase::Establishing(_) => self.establish(client, scanner),
            Phase::Open => self.read_replies(),
            Phase::Connecting | Phase::Over(_) => Vec::new(),
        }
    }

    fn read_replies(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        while self.awaits_reply() {
            match self.channel.reply_message() {
                Ok(Some(reply)) => {
                    let more_to_come = reply.flags().more_to_come;
                    outputs.push(Output::Reply { body: reply.body().to_owned(), more_to_come });
                }
                Ok(None) => break,
                Err(error) => {
                    let error = ConnectionError::protocol(self.stage, &error.to_string());
                    outputs.extend(self.fail(error));
                }
            }
        }
        outputs
    }

    fn buffer(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let spare = self.channel.spare();
            let count = spare.len().min(bytes.len());
            // After an error there is no room, and the rest is not read.
            let (Some(room), Some((now, later))) = (
                spare.get_mut(..count).filter(|room| !room.is_empty()),
                bytes.split_at_checked(count),
            ) else {
                return;
            };
            room.copy_from_slice(now);
            self.channel.filled(count);
            bytes = later;
        }
    }
}

/// The stage in which a shell connects.
const fn connecting(client: &Client) -> Stage {
    if client.proxy.is_some() { Stage::Proxy } else { Stage::Tcp }
}

fn refused(stage: Stage, error: &WireError) -> ConnectionError {
    ConnectionError::configuration(stage, &error.to_string())
}

impl StreamEnd {
    fn error(self) -> io::Error {
        match self {
            Self::Refused => ErrorKind::ConnectionRefused.into(),
            Self::End => ErrorKind::UnexpectedEof.into(),
            Self::Reset => ErrorKind::ConnectionReset.into(),
            Self::TimedOut(_) => ErrorKind::TimedOut.into(),
        }
    }

    fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::TimedOut(after) => ConnectionError::timeout(stage, after),
            Self::End => ConnectionError::network(stage, "closed by the peer"),
            Self::Refused | Self::Reset => ConnectionError::network(stage, self.error()),
        }
    }
}
