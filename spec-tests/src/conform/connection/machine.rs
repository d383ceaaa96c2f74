//! A client in memory: the machines of the core, and nothing around them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{
    ClientMetadata, Command, ConnectionDescription, DriverInfo, Establish, EstablishOptions, Nonce,
    ProxyStep, ScramCache, ServerApi, Socks5, Step,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{
    Channel, Compressor, CompressorId, Flags, MessageBuf, MessageLimit, WireError, ZlibLevel,
};

use super::client::{Client, Refusal, reply_or_error};
use super::format::File;
use super::peer::{Peer, Turn};

pub(super) struct Machine {
    uri: ConnectionString,
    options: EstablishOptions,
    client: ClientMetadata,
    scram: ScramCache,
    /// For the connections that are still to be opened, the last one first.
    peers: Vec<Peer>,
    links: Vec<Link>,
    /// Those that nobody uses.
    idle: Vec<Link>,
    nonces: u8,
}

/// A connection, and the server at its other end.
struct Link {
    peer: Peer,
    channel: Channel,
    /// As soon as it is known.
    description: Option<ConnectionDescription>,
}

/// What comes from the server.
enum Came {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// In memory nobody gets connected, whatever the port.
const PORT: u16 = 27017;

impl Machine {
    /// # Errors
    ///
    /// A connection string or a name that is none.
    pub(super) fn new(file: &File) -> Result<Self, String> {
        if file.is_full {
            return Err("in memory, whoever connects is connected".to_owned());
        }
        let uri = file.uri(PORT, "")?;
        let client = file.client(&uri)?;
        let mut options = EstablishOptions::new(&uri, &client);
        options.server_api = file.server_api.map(|api| ServerApi {
            strict: api.strict,
            deprecation_errors: api.deprecation_errors,
        });
        let peers = file.connections.iter().rev().map(|it| Peer::new(it, &file.password));
        let (peers, scram) = (peers.collect(), ScramCache::default());
        Ok(Self {
            uri,
            options,
            client,
            scram,
            peers,
            links: Vec::new(),
            idle: Vec::new(),
            nonces: 0,
        })
    }

    fn current(&mut self) -> Result<&mut Link, Refusal> {
        self.links.last_mut().ok_or_else(Refusal::no_connection)
    }

    /// Says hello as monitors do, and then again and again.
    fn watch(&mut self, options: &EstablishOptions) -> Result<(), Refusal> {
        let last = self.open(options.clone())?;
        let link = self.current()?;
        while !link.has_heard_all()? {
            let check = Command::check(options, &last);
            link.channel.begin(check.body(), None, Flags::NONE).map_err(unsendable)?;
            link.write();
            let reply = link.read(Channel::reply)?.map_err(|trouble| trouble.at(Stage::Hello))?;
            ConnectionDescription::from_reply(&reply, options)?;
        }
        Ok(())
    }

    fn open(&mut self, options: EstablishOptions) -> Result<ConnectionDescription, Refusal> {
        let peer = self.peers.pop().ok_or(Refusal::Other("nobody expects it".to_owned()))?;
        let mut link = Link { peer, channel: Channel::new(), description: None };
        let opened = self.talk(&mut link, options);
        match &opened {
            Ok(description) => {
                link.description = Some(description.clone());
                self.links.push(link);
            }
            Err(_) => link.leave().map_err(Refusal::Other)?,
        }
        opened
    }

    fn talk(
        &mut self,
        link: &mut Link,
        options: EstablishOptions,
    ) -> Result<ConnectionDescription, Refusal> {
        if let Some(proxy) = &self.uri.proxy {
            let server = self.uri.hosts.first().ok_or_else(Refusal::no_connection)?;
            link.tunnel(Socks5::new(server, proxy.credential.as_ref())?)?;
        }
        let nonces = [(); 2].map(|()| {
            self.nonces += 1;
            Nonce::from_random([self.nonces; 24])
        });
        let level = self.uri.compression.zlib_compression_level.unwrap_or(-1);
        let mut establish = Establish::new(Arc::new(options), nonces)?;
        loop {
            match establish.next_step()? {
                Step::Send(command) => {
                    let begun = link.channel.begin(command.body(), None, Flags::NONE);
                    begun.map_err(|error| Refusal::Other(error.to_string()))?;
                    link.write();
                }
                Step::Receive => match link.read(Channel::reply)? {
                    Ok(reply) => establish.reply(&reply, &mut self.scram),
                    Err(trouble) => trouble.tell(&mut establish),
                },
                Step::Derive(derivation) => establish.derived(derivation.run(), &mut self.scram),
                Step::Handshaken(description) => {
                    let limit = MessageLimit::new(description.limits.max_message_size.into());
                    let id =
                        description.compressor.and_then(|it| CompressorId::from_name(it.name()));
                    let level = ZlibLevel::new(level).unwrap_or(ZlibLevel::DEFAULT);
                    let compressor = id.and_then(|id| Compressor::new(id, level).ok());
                    link.channel.agree(limit.unwrap_or(MessageLimit::DEFAULT), compressor);
                }
                Step::Done(description) => return Ok(*description),
            }
        }
    }
}

impl Client for Machine {
    fn connect(&mut self, within: Option<Duration>) -> Result<ConnectionDescription, Refusal> {
        if within.is_some() {
            return Err(Refusal::Other("the machine has no clock".to_owned()));
        }
        if let Some(link) = self.idle.pop() {
            let description = link.description.clone();
            self.links.push(link);
            return description.ok_or_else(Refusal::no_connection);
        }
        self.options.client = self.client.to_document();
        self.open(self.options.clone())
    }

    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, Refusal> {
        if within.is_some() {
            return Err(Refusal::Other("the machine has no clock".to_owned()));
        }
        let link = self.current()?;
        link.channel.begin(command, Some(database), Flags::NONE).map_err(unsendable)?;
        link.write();
        let reply = link.read(Channel::reply)?.map_err(|trouble| trouble.at(Stage::Operation))?;
        Ok(reply_or_error(reply)?)
    }

    fn unacknowledged(&mut self, database: &str, command: &RawDocument) -> Result<(), Refusal> {
        let link = self.current()?;
        link.channel.begin(command, Some(database), Flags::MORE_TO_COME).map_err(unsendable)?;
        link.write();
        Ok(())
    }

    fn next_request_id(&mut self) -> Result<i32, Refusal> {
        Ok(self.current()?.channel.next_request_id())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Refusal> {
        let link = self.current()?;
        link.channel.begin_message(message).map_err(unsendable)?;
        link.write();
        Ok(())
    }

    fn receive(&mut self) -> Result<MessageBuf, Refusal> {
        let got = self.current()?.read(Channel::reply_message)?;
        Ok(got.map_err(|trouble| trouble.at(Stage::Operation))?)
    }

    fn is_reusable(&mut self) -> Result<bool, Refusal> {
        Ok(self.current()?.channel.is_reusable())
    }

    /// There is no pool: whoever embeds the machines asks whether a connection may be used again.
    fn check_in(&mut self) -> Result<(), Refusal> {
        let mut link = self.links.pop().ok_or_else(Refusal::no_connection)?;
        if link.channel.is_reusable() {
            self.idle.push(link);
            return Ok(());
        }
        link.leave().map_err(Refusal::Other)
    }

    fn append_metadata(&mut self, driver: DriverInfo) -> bool {
        self.client.append(driver)
    }

    fn monitor(&mut self) -> Result<(), String> {
        let options = self.options.for_monitor();
        self.watch(&options).map_err(|refusal| match refusal {
            Refusal::Connection(error) => error.to_string(),
            Refusal::Other(reason) => reason,
        })
    }

    /// Nothing happens here but what somebody asks for: all of it is heard already.
    fn wait_until_heard(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn finish(mut self) -> Result<(), String> {
        self.links.iter_mut().chain(&mut self.idle).try_for_each(Link::leave)?;
        match self.peers.len() {
            0 => Ok(()),
            left => Err(format!("{left} connections were never opened")),
        }
    }
}

impl Link {
    fn write(&mut self) {
        self.peer.hear(self.channel.outgoing());
        self.channel.written();
    }

    fn has_heard_all(&mut self) -> Result<bool, Refusal> {
        match self.peer.turn().map_err(Refusal::Other)? {
            Turn::Listen => Ok(self.peer.has_heard_all()),
            turn => Err(Refusal::Other(format!("nobody listens to {turn:?}"))),
        }
    }

    /// The client closes the connection, unless the server does.
    fn leave(&mut self) -> Result<(), String> {
        loop {
            match self.peer.turn()? {
                Turn::Say(_) | Turn::ShakeHands(_) | Turn::Wait(_) => {}
                Turn::Close | Turn::Reset => return Ok(()),
                Turn::Listen => return self.peer.is_left(),
            }
        }
    }

    /// What `take` takes out of the channel, as soon as it is there.
    fn read<R>(
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
                return; // After an error, nobody reads on.
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

    fn tunnel(&mut self, mut socks: Socks5) -> Result<(), Refusal> {
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
enum Trouble {
    Network(String),
    Garbled(WireError),
}

impl Trouble {
    fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::Network(reason) => ConnectionError::network(stage, reason),
            Self::Garbled(error @ WireError::EndOfStream { .. }) => {
                ConnectionError::network(stage, error)
            }
            Self::Garbled(error) => ConnectionError::protocol(stage, &error.to_string()),
        }
    }

    fn tell(self, establish: &mut Establish) {
        match self {
            Self::Network(reason) => establish.failed(reason),
            Self::Garbled(error @ WireError::EndOfStream { .. }) => establish.failed(error),
            Self::Garbled(error) => establish.garbled(&error.to_string()),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
fn unsendable(error: WireError) -> Refusal {
    ConnectionError::configuration(Stage::Operation, &error.to_string()).into()
}
