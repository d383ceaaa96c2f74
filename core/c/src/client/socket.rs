//! A monitoring socket without its stream: hello, and then the monitor's commands and their replies, as bytes.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::bson::RawDocumentBuf;
use cenote_core::connect::{
    Command, ConnectionDescription, Establish, EstablishOptions, Nonce, ScramCache, Step,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::Instant;
use cenote_core::wire::{Channel, Flags, MessageLimit, WireError};

pub(super) struct MonitorSocket {
    channel: Channel,
    phase: Phase,
}

enum Phase {
    /// The driver connects. Hello, too, has to be over by then.
    Connecting {
        deadline: Option<Instant>,
    },
    Hello {
        deadline: Option<Instant>,
        sent_at: Instant,
        establish: Box<Establish>,
    },
    /// The time limits are the machine's.
    Watching,
}

/// What bytes of the server have led to.
pub(super) enum Received {
    Opened { hello: Box<ConnectionDescription>, round_trip: Duration },
    Replied { reply: RawDocumentBuf, more_to_come: bool },
}

impl MonitorSocket {
    pub(super) fn new(deadline: Option<Instant>) -> Self {
        // SD-51: what monitors accept.
        Self { channel: Channel::lenient(), phase: Phase::Connecting { deadline } }
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self.phase, Phase::Connecting { .. })
    }

    /// Until when it has to be open.
    // SD-52
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Connecting { deadline } | Phase::Hello { deadline, .. } => deadline,
            Phase::Watching => None,
        }
    }

    pub(super) fn stage(&self) -> Stage {
        if self.is_connecting() { Stage::Tcp } else { Stage::Hello }
    }

    /// The socket is connected, TLS included: hello is sent.
    pub(super) fn connected(
        &mut self,
        now: Instant,
        options: &Arc<EstablishOptions>,
    ) -> Result<Vec<u8>, ConnectionError> {
        // A monitor does not authenticate, so that these are not used.
        let unused = [[0; Nonce::RANDOM_BYTES]; 2].map(Nonce::from_random);
        let mut establish = Establish::new(Arc::clone(options), unused)?;
        let Step::Send(hello) = establish.next_step()? else {
            return Err(ConnectionError::protocol(Stage::Hello, "hello comes first"));
        };
        let deadline = self.deadline();
        self.channel.agree(MessageLimit::HANDSHAKE, None);
        self.phase = Phase::Hello { deadline, sent_at: now, establish: Box::new(establish) };
        self.send(&hello, Flags::NONE)
    }

    /// The bytes of a command, which the driver writes: all of them, or the socket has failed.
    pub(super) fn send(
        &mut self,
        command: &Command,
        flags: Flags,
    ) -> Result<Vec<u8>, ConnectionError> {
        self.channel.begin(command.body(), None, flags).map_err(|error| broken(&error))?;
        let bytes = self.channel.outgoing().to_vec();
        self.channel.written();
        Ok(bytes)
    }

    /// Takes bytes until they make something up, or until there are no more.
    pub(super) fn read(
        &mut self,
        now: Instant,
        bytes: &mut &[u8],
        server: &ServerAddress,
    ) -> Result<Option<Received>, ConnectionError> {
        loop {
            if let Some(reply) = self.channel.reply_message().map_err(|error| broken(&error))? {
                let more_to_come = reply.flags().more_to_come;
                if let Some(received) = self.take(now, reply.into_body(), more_to_come, server)? {
                    return Ok(Some(received));
                }
                continue;
            }
            let spare = self.channel.spare();
            let count = spare.len().min(bytes.len());
            if count == 0 {
                return Ok(None);
            }
            let (taken, rest) = bytes.split_at(count);
            spare[..count].copy_from_slice(taken);
            self.channel.filled(count);
            *bytes = rest;
        }
    }

    fn take(
        &mut self,
        now: Instant,
        reply: RawDocumentBuf,
        more_to_come: bool,
        server: &ServerAddress,
    ) -> Result<Option<Received>, ConnectionError> {
        let Phase::Hello { sent_at, establish, .. } = &mut self.phase else {
            return Ok(Some(Received::Replied { reply, more_to_come }));
        };
        establish.reply(&reply, &mut ScramCache::default());
        loop {
            match establish.next_step()? {
                Step::Receive => return Ok(None),
                Step::Handshaken(description) => {
                    description.check_wire_versions(server)?;
                }
                Step::Done(hello) => {
                    let round_trip = now.saturating_since(*sent_at);
                    self.phase = Phase::Watching;
                    return Ok(Some(Received::Opened { hello, round_trip }));
                }
                Step::Send(_) | Step::Derive(_) | Step::Token { .. } => {
                    let reason = "a monitor does not authenticate";
                    return Err(ConnectionError::protocol(Stage::Hello, reason));
                }
            }
        }
    }
}

fn broken(error: &WireError) -> ConnectionError {
    ConnectionError::protocol(Stage::Hello, &error.to_string())
}
