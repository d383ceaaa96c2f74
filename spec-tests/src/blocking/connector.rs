//! From a connection string to an established connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, Environment, Establish, EstablishOptions, Nonce,
    ScramCache, Step,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::{ConnectionString, ProxyOptions};
use cenote_core::wire::{Compressor, CompressorId, MessageLimit, ZlibLevel};
use rustls::ClientConfig;

use super::channel::Channel;
use super::socket::{Deadline, Socket};
use super::tls::{self, Stream};
use super::{Connection, proxy};

/// `connectTimeoutMS` when nobody says so (OP-18).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens connections as one connection string says: what all of them share. Threads may share it.
pub struct Connector {
    options: Arc<EstablishOptions>,
    tls: Option<Arc<ClientConfig>>,
    proxy: Option<ProxyOptions>,
    connect_timeout: Duration,
    socket_timeout: Option<Duration>,
    zlib_level: ZlibLevel,
    /// PBKDF2 once for all of them (AU-36).
    scram: Mutex<ScramCache>,
}

impl Connector {
    /// Reads the files that the connection string names. Nothing is connected.
    ///
    /// # Errors
    ///
    /// A configuration error, when a file is no good, or the string asks for what this client does
    /// not do.
    pub fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        let environment = Environment {
            os_type: Some(std::env::consts::OS.to_owned()),
            architecture: Some(std::env::consts::ARCH.to_owned()),
            ..Environment::default()
        };
        let client = ClientMetadata::new(uri.app_name.as_deref(), &environment);
        let level = uri.compression.zlib_compression_level;
        Ok(Self {
            options: Arc::new(EstablishOptions::new(uri, &client.map_err(unusable)?)),
            tls: tls::config(&uri.tls)?,
            proxy: uri.proxy.clone(),
            connect_timeout: uri.timeouts.connect.unwrap_or(CONNECT_TIMEOUT),
            socket_timeout: uri.timeouts.socket,
            zlib_level: level.map_or(Ok(ZlibLevel::DEFAULT), ZlibLevel::new).map_err(unusable)?,
            scram: Mutex::default(),
        })
    }

    /// Connects, shakes hands, says hello and authenticates. Blocks, for `connectTimeoutMS` at most
    /// and however long the operating system takes to resolve the name.
    ///
    /// # Errors
    ///
    /// Why there is no connection, with stage and kind.
    pub fn open(&self, address: &ServerAddress) -> Result<Connection, ConnectionError> {
        let deadline = Deadline::after(Some(self.connect_timeout));
        let socket = match &self.proxy {
            Some(proxy) => proxy::connect(proxy, address, deadline)?,
            None => Socket::connect(address, deadline)?,
        };
        let stream = match &self.tls {
            Some(config) => Stream::encrypt(socket, address.host(), config)?,
            None => Stream::Plain(socket),
        };
        let mut channel = Channel::new(stream);
        let description = self.establish(&mut channel)?;
        Ok(Connection { channel, description, timeout: self.socket_timeout })
    }

    fn establish(
        &self,
        channel: &mut Channel,
    ) -> Result<Box<ConnectionDescription>, ConnectionError> {
        let mut establish = Establish::new(Arc::clone(&self.options), [nonce()?, nonce()?])?;
        loop {
            let outcome = match establish.next_step()? {
                Step::Send(command) => channel.send_raw(&command),
                Step::Receive => {
                    channel.receive().map(|(reply, _)| establish.reply(&reply, &mut self.scram()))
                }
                Step::Derive(derivation) => {
                    let keys = derivation.run();
                    establish.derived(keys, &mut self.scram());
                    Ok(())
                }
                // A pool would be told here.
                Step::Handshaken(_) => Ok(()),
                Step::Done(description) => {
                    self.agree(&description, channel)?;
                    return Ok(description);
                }
            };
            if let Err(trouble) = outcome {
                trouble.tell(&mut establish)?;
            }
        }
    }

    /// What a panic left behind is as good as before: results are added whole.
    fn scram(&self) -> MutexGuard<'_, ScramCache> {
        self.scram.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was agreed counts from the next message on; nothing before that may be compressed.
    fn agree(
        &self,
        description: &ConnectionDescription,
        channel: &mut Channel,
    ) -> Result<(), ConnectionError> {
        let limit = MessageLimit::new(description.limits.max_message_size.into());
        let id = description.compressor.and_then(|it| CompressorId::from_name(it.name()));
        let compressor = id.map(|id| Compressor::new(id, self.zlib_level)).transpose();
        channel.agree(limit.unwrap_or(MessageLimit::DEFAULT), compressor.map_err(unusable)?);
        Ok(())
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("options", &self.options).finish_non_exhaustive()
    }
}

fn nonce() -> Result<Nonce, ConnectionError> {
    let mut bytes = [0; Nonce::RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(unusable)?;
    Ok(Nonce::from_random(bytes))
}

fn unusable(reason: impl fmt::Display) -> ConnectionError {
    ConnectionError::configuration(Stage::Hello, &reason.to_string())
}
