//! A connection in memory: messages on this side, a server at the other end.

use std::io;

use cenote_core::connect::{ConnectionDescription, Establish, ProxyStep, Socks5};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Channel, WireError};

use super::client::Refusal;
use super::peer::{Peer, Turn};

/// A connection, and the server at its other end.
pub(super) struct Link {
    peer: Peer,
    pub(super) channel: Channel,
    /// As soon as it is known.
    pub(super) description: Option<ConnectionDescription>,
}

/// What comes from the server.
enum Came {
    Bytes(Vec<u8>),
    End,
    Reset,
}

impl Link {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, channel: Channel::new(), description: None }
    }

    pub(super) fn write(&mut self) {
        self.peer.hear(self.channel.outgoing());
        self.channel.written();
    }

    pub(super) fn has_heard_all(&mut self) -> Result<bool, Refusal> {
        match self.peer.turn().map_err(Refusal::Other)? {
            Turn::Listen => Ok(self.peer.has_heard_all()),
            turn @ (Turn::Say(_)
            | Turn::ShakeHands(_)
            | Turn::Wait(_)
            | Turn::Close
            | Turn::Reset) => Err(Refusal::Other(format!("the client does not expect {turn:?}"))),
        }
    }

    /// The client closes the connection, unless the server does.
    pub(super) fn leave(&mut self) -> Result<(), String> {
        loop {
            match self.peer.turn()? {
                Turn::Say(_) | Turn::ShakeHands(_) | Turn::Wait(_) => {}
                Turn::Close | Turn::Reset => return Ok(()),
                Turn::Listen => return self.peer.is_left(),
            }
        }
    }

    /// What `take` takes out of the channel, as soon as it is there.
    pub(super) fn read<R>(
        &mut self,
        take: impl Fn(&mut Channel) -> Result<Option<R>, WireError>,
    ) -> Result<Result<R, Trouble>, Refusal> {
        loop {
            match take(&mut self.channel) {
                Ok(Some(reply)) => return Ok(Ok(reply)),
                Err(error) => return Ok(Err(Trouble::Garbled(error))),
                Ok(None) => {}
            }
            match self.next()? {
                Came::Bytes(bytes) => self.feed(&bytes),
                Came::End => {
                    let closed = || Trouble::Network("closed by the peer".to_owned());
                    return Ok(Err(self.channel.end().err().map_or_else(closed, Trouble::Garbled)));
                }
                Came::Reset => {
                    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
                    return Ok(Err(Trouble::Network(reset.to_string())));
                }
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let spare = self.channel.spare();
            let count = spare.len().min(rest.len());
            if count == 0 {
                return; // After an error, the rest is not read.
            }
            spare[..count].copy_from_slice(&rest[..count]);
            self.channel.filled(count);
            rest = &rest[count..];
        }
    }

    fn next(&mut self) -> Result<Came, Refusal> {
        loop {
            match self.peer.turn().map_err(Refusal::Other)? {
                Turn::Say(bytes) => return Ok(Came::Bytes(bytes)),
                Turn::ShakeHands(_) | Turn::Wait(_) => {}
                Turn::Close => return Ok(Came::End),
                Turn::Reset => return Ok(Came::Reset),
                Turn::Listen => {
                    let reason = "both sides wait for each other, which ends on a clock alone";
                    return Err(Refusal::Other(reason.to_owned()));
                }
            }
        }
    }

    pub(super) fn tunnel(&mut self, mut socks: Socks5) -> Result<(), Refusal> {
        loop {
            match socks.next_step()? {
                ProxyStep::Send(bytes) => self.peer.hear(bytes.as_slice()),
                ProxyStep::Receive => match self.next()? {
                    Came::Bytes(bytes) => {
                        let _ = socks.received(&bytes);
                    }
                    Came::End | Came::Reset => {
                        let error = ConnectionError::network(Stage::Proxy, "closed by the proxy");
                        return Err(error.into());
                    }
                },
                ProxyStep::Connected => return Ok(()),
            }
        }
    }
}

/// What goes wrong between two messages.
pub(super) enum Trouble {
    Network(String),
    Garbled(WireError),
}

impl Trouble {
    pub(super) fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::Network(reason) => ConnectionError::network(stage, reason),
            Self::Garbled(error @ WireError::EndOfStream { .. }) => {
                ConnectionError::network(stage, error)
            }
            Self::Garbled(error) => ConnectionError::protocol(stage, &error.to_string()),
        }
    }

    pub(super) fn tell(self, establish: &mut Establish) {
        match self {
            Self::Network(reason) => establish.failed(reason),
            Self::Garbled(error @ WireError::EndOfStream { .. }) => establish.failed(error),
            Self::Garbled(error) => establish.garbled(&error.to_string()),
        }
    }
}
