//! The servers that files are played against.

use std::fmt;

use bson::rawdoc;
use cenote_conform::{Version, parse_version};
use cenote_core::uri::{ConnectionString, UriError};

use crate::blocking::Connection;

/// Where the shells find a server.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// A mock endpoint for each file.
    #[default]
    Endpoint,
    /// An independent server for all files, one file at a time.
    Server(Box<Foreign>),
}

/// A server that is there already.
#[derive(Clone)]
pub struct Foreign {
    uri: ConnectionString,
    version: Version,
}

impl Foreign {
    /// Asks the server of this connection string what it is.
    ///
    /// # Errors
    ///
    /// If the connection string is invalid, or the server cannot be reached or reports no version.
    pub fn new(uri: &str) -> Result<Self, String> {
        let uri = ConnectionString::parse(uri).map_err(|error| error.to_string())?;
        let mut connection = connect(&uri)?;
        let reply = connection.command("admin", &rawdoc! { "buildInfo": 1 });
        let reply = reply.map_err(|error| format!("buildInfo: {error}"))?;
        let text = reply.get_str("version").map_err(|error| format!("buildInfo: {error}"))?;
        let version = parse_version(text).ok_or_else(|| format!("`{text}` is not a version"))?;
        Ok(Self { uri, version })
    }

    /// How to reach it.
    pub(super) fn uri(&self) -> &ConnectionString {
        &self.uri
    }

    /// What it says it is.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Runs a command on a new connection.
    ///
    /// # Errors
    ///
    /// The connection's, or the server's refusal.
    pub(super) fn order(&self, command: &bson::RawDocument) -> Result<(), String> {
        let mut connection = connect(&self.uri)?;
        connection.command("admin", command).map(drop).map_err(|error| error.to_string())
    }
}

fn connect(uri: &ConnectionString) -> Result<Connection, String> {
    let address = uri.hosts.first().ok_or_else(|| UriError::Srv.to_string())?;
    Connection::open(uri, address).map_err(|error| format!("{address}: {}", error.with_advice()))
}

/// Without the password that its connection string may have.
impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uri, version } = self;
        f.debug_struct("Foreign").field("hosts", &uri.hosts).field("version", version).finish()
    }
}
