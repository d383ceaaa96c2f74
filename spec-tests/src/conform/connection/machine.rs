//! A client in memory: the machines of the core, and nothing around them.

use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{
    ClientMetadata, Command, ConnectionDescription, DriverInfo, Establish, EstablishOptions, Nonce,
    ScramCache, Socks5, Step,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{
    Channel, Compressor, CompressorId, Flags, MessageBuf, MessageLimit, WireError, ZlibLevel,
};
use serde_json::Value;

use super::client::{Client, Refusal, reply_or_error};
use super::format::File;
use super::link::Link;
use super::operation::ServerChoice;
use super::peer::Peer;

pub(super) struct Machine {
    uri: ConnectionString,
    options: EstablishOptions,
    client: ClientMetadata,
    scram: ScramCache,
    /// For the connections that are still to be opened, the last one first.
    peers: Vec<Peer>,
    links: Vec<Link>,
    /// Those that are not in use.
    idle: Vec<Link>,
    nonces: u8,
}

/// Nothing connects to it: the connection is in memory.
const PORT: u16 = 27017;

impl Machine {
    /// # Errors
    ///
    /// A connection string or a name that is none.
    pub(super) fn new(file: &File) -> Result<Self, String> {
        if file.is_full {
            return Err("in memory every connection is accepted".to_owned());
        }
        if !file.other_servers.is_empty() {
            return Err("in memory there is one server".to_owned());
        }
        let uri = file.uri(&[PORT], "")?;
        let client = file.client(&uri)?;
        let mut options = EstablishOptions::new(&uri, &client);
        options.server_api = file.server_api();
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
    fn say_hello_again(&mut self, options: &EstablishOptions) -> Result<(), Refusal> {
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

    /// With the version of the API that the file declares.
    fn declared(&self, command: &RawDocument) -> RawDocumentBuf {
        let api = self.options.server_api;
        api.map_or_else(|| command.to_owned(), |api| api.declared_in(command))
    }

    fn open(&mut self, options: EstablishOptions) -> Result<ConnectionDescription, Refusal> {
        let peer = self
            .peers
            .pop()
            .ok_or(Refusal::Other("the file does not expect another connection".to_owned()))?;
        let mut link = Link::new(peer);
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
                Step::Token { .. } => establish.failed("no scenario has tokens"),
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
        let command = self.declared(command);
        let link = self.current()?;
        link.channel.begin(&command, Some(database), Flags::NONE).map_err(unsendable)?;
        link.write();
        let reply = link.read(Channel::reply)?.map_err(|trouble| trouble.at(Stage::Operation))?;
        Ok(reply_or_error(reply)?)
    }

    fn unacknowledged(&mut self, database: &str, command: &RawDocument) -> Result<(), Refusal> {
        let command = self.declared(command);
        let link = self.current()?;
        link.channel.begin(&command, Some(database), Flags::MORE_TO_COME).map_err(unsendable)?;
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

    /// There is no pool: this decides as a shell does whether the connection can be reused.
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
        self.say_hello_again(&options).map_err(|refusal| match refusal {
            Refusal::Connection(error) => error.to_string(),
            Refusal::Other(reason) => reason,
        })
    }

    fn watch(&mut self) -> Result<(), String> {
        Err("a client of servers is a matter of shells".to_owned())
    }

    fn client_connect(
        &mut self,
        _: Option<ServerChoice>,
    ) -> Result<ConnectionDescription, Refusal> {
        Err(Refusal::no_connection())
    }

    fn kind_of(&self, _: usize) -> Option<String> {
        None
    }

    fn told(&self, _: usize) -> Vec<Value> {
        Vec::new()
    }

    fn client_command(&mut self, _: &str, _: &RawDocument) -> Result<RawDocumentBuf, Refusal> {
        Err(Refusal::no_connection())
    }

    /// In memory nothing happens by itself: everything has been heard already.
    fn wait_until_heard(&mut self, _: usize) -> Result<(), String> {
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

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
fn unsendable(error: WireError) -> Refusal {
    ConnectionError::configuration(Stage::Operation, &error.to_string()).into()
}
