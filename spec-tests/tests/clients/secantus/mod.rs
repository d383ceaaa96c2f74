//! Our establishment of connections against SecantusDB, a server that speaks MongoDB's protocol and
//! was written by others, as a process of its own. `.ci/clients` installs it and runs this.

mod authentication;
mod certificates;
mod commands;
mod conform;
mod handshake;
mod monitoring;
mod process;
mod proxy;
mod server;
mod tls;

use cenote::blocking::Connection;
use cenote_core::error::ConnectionError;
use cenote_core::uri::ConnectionString;

fn parse(uri: &str) -> ConnectionString {
    let parsed = ConnectionString::parse(uri).expect("a connection string");
    assert_eq!(parsed.warnings(), [], "{uri}");
    parsed
}

/// Opens a connection to the first host.
fn open(uri: &str) -> Result<Connection, ConnectionError> {
    let uri = parse(uri);
    Connection::open(&uri, &uri.hosts[0])
}
