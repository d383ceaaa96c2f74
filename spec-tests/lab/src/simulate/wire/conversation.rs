//! A client's conversation on one connection, as a shell has it: hello, authentication, then pings.

use std::io::ErrorKind;
use std::sync::Arc;

use bson::rawdoc;
use cenote_core::connect::{Establish, EstablishOptions, Nonce, ScramCache, Step};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::ServiceId;
use cenote_core::wire::{Channel, Flags};

use super::secrets::Secrets;

pub(super) struct Conversation {
    channel: Channel,
    phase: Phase,
    pub(super) secrets: Secrets,
}

enum Phase {
    Establishing { establish: Box<Establish>, is_connected: bool },
    Open,
    Over,
}

/// What is to be done, or has happened.
#[derive(Debug)]
pub(super) enum Output {
    Send(Vec<u8>),
    /// The server replied to hello.
    Handshaken(Option<ServiceId>),
    Opened,
    Replied,
    /// The connection is broken.
    Failed(ConnectionError),
}

impl Conversation {
    pub(super) fn new(
        options: &Arc<EstablishOptions>,
        nonces: [Nonce; 2],
        secrets: Secrets,
    ) -> Self {
        let establish = Establish::new(Arc::clone(options), nonces);
        let phase = establish.map_or(Phase::Over, |establish| Phase::Establishing {
            establish: Box::new(establish),
            is_connected: false,
        });
        Self { channel: Channel::new(), phase, secrets }
    }

    /// The request whose reply has not come.
    pub(super) fn awaited_reply(&self) -> Option<i32> {
        match self.phase {
            Phase::Open => self.channel.pending_response(),
            Phase::Establishing { .. } | Phase::Over => None,
        }
    }

    /// Sends a command; `None` if the connection is broken.
    pub(super) fn ping(&mut self) -> Option<Vec<u8>> {
        let Phase::Open = self.phase else { return None };
        self.channel.begin(&rawdoc! { "ping": 1 }, Some("admin"), Flags::NONE).ok()?;
        Some(self.sent())
    }

    fn sent(&mut self) -> Vec<u8> {
        let bytes = self.channel.outgoing().to_vec();
        self.channel.written();
        bytes
    }

    /// The stream is connected.
    pub(super) fn connected(&mut self, scram: &mut ScramCache) -> Vec<Output> {
        if let Phase::Establishing { is_connected, .. } = &mut self.phase {
            *is_connected = true;
        }
        self.advance(scram)
    }

    /// Bytes arrived.
    pub(super) fn received(&mut self, bytes: &[u8], scram: &mut ScramCache) -> Vec<Output> {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let spare = self.channel.spare();
            let count = spare.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            match spare.get_mut(..count) {
                // After an error there is no room, and the rest is not read.
                Some([]) | None => break,
                Some(room) => room.copy_from_slice(now),
            }
            self.channel.filled(count);
            bytes = later;
        }
        if matches!(self.phase, Phase::Open) && !self.channel.awaits_reply() {
            return self.fail(ConnectionError::protocol(Stage::Operation, "unexpected bytes"));
        }
        self.advance(scram)
    }

    /// The stream has ended.
    pub(super) fn ended(&mut self, how: ErrorKind, scram: &mut ScramCache) -> Vec<Output> {
        let error = std::io::Error::from(how);
        match &mut self.phase {
            Phase::Establishing { is_connected: false, .. } => {
                self.fail(ConnectionError::network(Stage::Tcp, error))
            }
            Phase::Establishing { establish, .. } => {
                match self.channel.end() {
                    Err(cut) if how == ErrorKind::UnexpectedEof => establish.failed(cut),
                    _ => establish.failed(error),
                }
                self.advance(scram)
            }
            Phase::Open => self.fail(match self.channel.end() {
                Err(cut) => ConnectionError::network(Stage::Operation, cut),
                Ok(()) => ConnectionError::network(Stage::Operation, error),
            }),
            Phase::Over => Vec::new(),
        }
    }

    fn fail(&mut self, error: ConnectionError) -> Vec<Output> {
        self.phase = Phase::Over;
        vec![Output::Failed(error)]
    }

    /// Continues until input is needed.
    fn advance(&mut self, scram: &mut ScramCache) -> Vec<Output> {
        match self.phase {
            Phase::Establishing { is_connected: true, .. } => self.establish(scram),
            Phase::Open => match self.channel.reply_message() {
                Ok(Some(_)) => vec![Output::Replied],
                Ok(None) => Vec::new(),
                Err(error) => {
                    self.fail(ConnectionError::protocol(Stage::Operation, &error.to_string()))
                }
            },
            Phase::Establishing { .. } | Phase::Over => Vec::new(),
        }
    }

    fn establish(&mut self, scram: &mut ScramCache) -> Vec<Output> {
        let mut outputs = Vec::new();
        while let Phase::Establishing { establish, .. } = &mut self.phase {
            match establish.next_step() {
                Ok(Step::Send(command)) => {
                    self.secrets.keep_payloads(command.body());
                    match self.channel.begin(command.body(), None, Flags::NONE) {
                        Ok(()) => outputs.push(Output::Send(self.sent())),
                        Err(error) => establish.garbled(&error.to_string()),
                    }
                }
                Ok(Step::Receive) => match self.channel.reply() {
                    Ok(Some(reply)) => {
                        self.secrets.keep_payloads(&reply);
                        establish.reply(&reply, scram);
                    }
                    Ok(None) => break,
                    Err(error) => establish.garbled(&error.to_string()),
                },
                Ok(Step::Derive(derivation)) => establish.derived(derivation.run(), scram),
                Ok(Step::Token { .. }) => establish.failed("no simulation has tokens"),
                Ok(Step::Handshaken(hello)) => outputs.push(Output::Handshaken(hello.service_id)),
                Ok(Step::Done(_)) => {
                    self.phase = Phase::Open;
                    outputs.push(Output::Opened);
                }
                Err(error) => outputs.extend(self.fail(error)),
            }
        }
        outputs
    }
}
