//! The plainest client there can be: one blocking connection, opened by the machines of
//! [`cenote_core::connect`], with commands sent through [`cenote_core::wire`].
//!
//! It is for tests that need a client of their own, and shows what little is left to do around
//! those machines: a socket with a deadline, TLS, and a loop. It takes its settings from a
//! connection string: credential, `tls`, `tlsCAFile`, `tlsCertificateKeyFile`, `compressors`,
//! `proxyHost` and its companions, `appname`, `loadBalanced`, `connectTimeoutMS` (default 10 s) and
//! `socketTimeoutMS` (default none). There is no pool, no monitor and no second attempt.
//!
//! ```no_run
//! use bson::rawdoc;
//! use cenote::blocking::Connection;
//! use cenote_core::uri::ConnectionString;
//!
//! let uri = ConnectionString::parse("mongodb://app:s3cret@localhost/?compressors=zstd")?;
//! let mut connection = Connection::open(&uri, &uri.hosts[0])?;
//! let reply = connection.command("admin", &rawdoc! { "ping": 1 })?;
//! assert_eq!(reply.get_f64("ok")?, 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every error is a [`ConnectionError`] with the stage and the kind that a shell would give it, so
//! that labels and SDAM's verdict follow from it. A certificate is always checked: options that
//! relax that are refused.

mod channel;
mod connector;
mod proxy;
mod socket;
mod tls;

use std::fmt;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{CommandError, ConnectionError, ReplyPart, Stage};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{Flags, Progress};

use self::channel::Channel;
use self::socket::Deadline;

pub use self::connector::Connector;

/// An established connection. Dropping it closes the socket.
pub struct Connection {
    channel: Channel,
    description: Box<ConnectionDescription>,
    /// `socketTimeoutMS`.
    timeout: Option<Duration>,
}

impl Connection {
    /// Opens one connection; blocks as [`Connector::open`] does. Who opens several makes a
    /// [`Connector`] once.
    ///
    /// # Errors
    ///
    /// Those of [`Connector::new`] and [`Connector::open`].
    pub fn open(uri: &ConnectionString, address: &ServerAddress) -> Result<Self, ConnectionError> {
        Connector::new(uri)?.open(address)
    }

    /// What is at the other end.
    #[must_use]
    pub fn description(&self) -> &ConnectionDescription {
        &self.description
    }

    /// Whether the connection could serve somebody else: nothing is under way, unread or broken
    /// (CO-19).
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.channel.is_reusable()
    }

    /// Runs a command and gives the server's reply. Blocks for `socketTimeoutMS` at most.
    ///
    /// # Errors
    ///
    /// At [`Stage::Operation`]: an I/O error, a timeout, a malformed message, or a reply with
    /// `ok: 0`. Only after the last can the connection be used again. `writeErrors` and
    /// `writeConcernError` are the caller's to look for in the reply.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_with(database, command, "", &[])
    }

    /// As [`command`](Self::command), with `documents` in a section of their own, under that name
    /// (MS-12): `documents` for insert, `updates` for update, `deletes` for delete. None, no
    /// section.
    ///
    /// # Errors
    ///
    /// Those of [`command`](Self::command).
    pub fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        name: &str,
        documents: &[RawDocumentBuf],
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.channel.set_deadline(Deadline::after(self.timeout));
        let sent = self.channel.send(database, command, (name, documents), Flags::NONE);
        sent.map_err(|trouble| trouble.at(Stage::Operation))?;
        self.read().map(|(reply, _)| reply)
    }

    /// Sends a command with these flags and does not wait. With
    /// [`MORE_TO_COME`](Flags::MORE_TO_COME) no reply will come (MS-08); with
    /// [`EXHAUST_ALLOWED`](Flags::EXHAUST_ALLOWED) any number may (MS-10).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command), but for the reply.
    pub fn send(
        &mut self,
        database: &str,
        command: &RawDocument,
        flags: Flags,
    ) -> Result<(), ConnectionError> {
        self.channel.set_deadline(Deadline::after(self.timeout));
        let sent = self.channel.send(database, command, ("", &[]), flags);
        sent.map_err(|trouble| trouble.at(Stage::Operation))
    }

    /// Waits for the next reply to what was [sent](Self::send), and says whether another follows.
    ///
    /// # Errors
    ///
    /// Those of [`command`](Self::command).
    pub fn receive(&mut self) -> Result<(RawDocumentBuf, Progress), ConnectionError> {
        self.channel.set_deadline(Deadline::after(self.timeout));
        self.read()
    }

    fn read(&mut self) -> Result<(RawDocumentBuf, Progress), ConnectionError> {
        let received = self.channel.receive().map_err(|trouble| trouble.at(Stage::Operation))?;
        match CommandError::from_reply(&received.0) {
            Some(error) if error.part == ReplyPart::Command => {
                Err(ConnectionError::command(Stage::Operation, error))
            }
            Some(_) | None => Ok(received),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("description", &self.description).finish_non_exhaustive()
    }
}
