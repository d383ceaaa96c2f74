//! The client's end of one link, as a shell has it: through a proxy, hello, authentication, and then
//! commands.

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

use super::witness::Witness;

/// See the module.
#[derive(Debug)]
pub(super) struct Talk {
    channel: Channel,
    phase: Phase,
    options: Arc<EstablishOptions>,
    /// Of what goes wrong once it is open.
    stage: Stage,
    nonces: [Nonce; 2],
    /// When hello was sent, and how long its reply took.
    asked: Instant,
    round_trip: Duration,
}

#[derive(Debug)]
enum Phase {
    Connecting,
    Proxy(Socks5),
    Establishing(Box<Establish>),
    Open,
    /// It has failed; with what, if nobody was told because nobody was at it.
    Over(Option<ConnectionError>),
}

/// What all connections of a client share.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) address: ServerAddress,
    pub(super) proxy: Option<ProxyOptions>,
    pub(super) scram: ScramCache,
    pub(super) now: Instant,
}

/// What a talk wants done.
#[derive(Debug)]
pub(super) enum Said {
    Send(Vec<u8>),
    /// Hello is answered.
    Handshaken(Box<ConnectionDescription>),
    Opened {
        hello: Box<ConnectionDescription>,
        round_trip: Duration,
    },
    Reply {
        body: RawDocumentBuf,
        more_to_come: bool,
    },
    /// The connection is of no use any more.
    Failed(ConnectionError),
    /// Something came, or it ended, while nobody waited for anything.
    Stirred(ConnectionError),
}

/// How a stream breaks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Break {
    /// Nobody listens.
    Refused,
    End,
    Reset,
    /// It takes longer than this.
    TimedOut(Duration),
}

impl Talk {
    /// Nobody has answered yet. Monitors are more lenient
    /// (`docs/decisions/0008-what-monitors-accept.md`).
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
        let (asked, round_trip) = (Instant::ORIGIN, Duration::ZERO);
        Self { channel, phase: Phase::Connecting, options, stage, nonces, asked, round_trip }
    }

    /// Whether the next one may use it (CO-19).
    pub(super) fn is_reusable(&self) -> bool {
        matches!(self.phase, Phase::Open) && self.channel.is_reusable()
    }

    /// It is neither open nor broken.
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

    /// The other end has answered.
    pub(super) fn connected(&mut self, kit: &mut Kit, witness: &mut Witness) -> Vec<Said> {
        let Phase::Connecting = self.phase else { return Vec::new() };
        let next = match &kit.proxy {
            Some(proxy) => Socks5::new(&kit.address, proxy.credential.as_ref()).map(Phase::Proxy),
            None => self.introduce(),
        };
        self.begin(next, kit, witness)
    }

    /// Bytes came, in whatever cut.
    pub(super) fn received(
        &mut self,
        bytes: &[u8],
        kit: &mut Kit,
        witness: &mut Witness,
    ) -> Vec<Said> {
        if let Phase::Proxy(socks5) = &mut self.phase {
            // A server says nothing before it is asked: all of it is the proxy's.
            socks5.received(bytes);
            return self.go_on(kit, witness);
        }
        self.fill(bytes);
        if self.is_open() && !self.channel.awaits_reply() {
            return vec![Said::Stirred(ConnectionError::protocol(
                self.stage,
                "bytes that nobody asked for",
            ))];
        }
        self.go_on(kit, witness)
    }

    /// The stream breaks, or takes too long.
    pub(super) fn broke(&mut self, how: Break, kit: &mut Kit, witness: &mut Witness) -> Vec<Said> {
        match &mut self.phase {
            Phase::Connecting => self.fail(how.at(connecting(kit))),
            Phase::Proxy(_) => self.fail(how.at(Stage::Proxy)),
            Phase::Establishing(establish) => {
                match (how, self.channel.end()) {
                    (Break::TimedOut(after), _) => establish.timed_out(after),
                    (Break::End, Err(error)) => establish.failed(error),
                    (Break::End, Ok(())) => establish.failed("closed by the peer"),
                    (Break::Refused | Break::Reset, _) => establish.failed(how.error()),
                }
                self.go_on(kit, witness)
            }
            Phase::Open => {
                let awaited = self.channel.awaits_reply();
                let error = match (how, self.channel.end()) {
                    (Break::End, Err(error)) => ConnectionError::network(self.stage, error),
                    _ => how.at(self.stage),
                };
                if awaited {
                    return self.fail(error);
                }
                self.phase = Phase::Over(Some(error.clone()));
                vec![Said::Stirred(error)]
            }
            Phase::Over(_) => Vec::new(),
        }
    }

    /// Asks something; a reply or a failure follows.
    pub(super) fn ask(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<Vec<u8>, ConnectionError> {
        match &mut self.phase {
            Phase::Open => {}
            Phase::Over(Some(error)) => return Err(error.clone()),
            Phase::Connecting | Phase::Proxy(_) | Phase::Establishing(_) | Phase::Over(None) => {
                let reason = "asked before it is open, or after its end";
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
        kit: &mut Kit,
        witness: &mut Witness,
    ) -> Vec<Said> {
        match next {
            Ok(phase) => {
                self.phase = phase;
                self.go_on(kit, witness)
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: ConnectionError) -> Vec<Said> {
        self.phase = Phase::Over(None);
        vec![Said::Failed(error)]
    }

    /// Until something has to come from outside.
    fn go_on(&mut self, kit: &mut Kit, witness: &mut Witness) -> Vec<Said> {
        witness.look_at_connection(self);
        match &self.phase {
            Phase::Proxy(_) => self.go_through_proxy(kit, witness),
            Phase::Establishing(_) => self.establish(kit, witness),
            Phase::Open => self.read_replies(),
            Phase::Connecting | Phase::Over(_) => Vec::new(),
        }
    }

    fn read_replies(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        while self.awaits_reply() {
            match self.channel.reply_message() {
                Ok(Some(reply)) => {
                    let more_to_come = reply.flags().more_to_come;
                    said.push(Said::Reply { body: reply.body().to_owned(), more_to_come });
                }
                Ok(None) => break,
                Err(error) => {
                    let error = ConnectionError::protocol(self.stage, &error.to_string());
                    said.extend(self.fail(error));
                }
            }
        }
        said
    }

    fn fill(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let spare = self.channel.spare();
            let count = spare.len().min(bytes.len());
            // After an error there is no room, and nobody reads on.
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

/// What a shell connects to first.
const fn connecting(kit: &Kit) -> Stage {
    if kit.proxy.is_some() { Stage::Proxy } else { Stage::Tcp }
}

fn refused(stage: Stage, error: &WireError) -> ConnectionError {
    ConnectionError::configuration(stage, &error.to_string())
}

impl Break {
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
