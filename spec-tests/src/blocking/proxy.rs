//! The way through a SOCKS5 proxy.

use std::io::{self, ErrorKind, Read, Write};

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ProxyStep, Socks5};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;

use super::channel::Trouble;
use super::socket::{Deadline, Socket};

/// Connects to the proxy and has it connect to the server.
pub(super) fn connect(
    proxy: &ProxyOptions,
    server: &ServerAddress,
    deadline: Option<Deadline>,
) -> Result<Socket, ConnectionError> {
    let mut socks5 = Socks5::new(server, proxy.credential.as_ref())?;
    let port = proxy.port.unwrap_or(ProxyOptions::DEFAULT_PORT);
    let mut socket = Socket::connect_to_proxy(&proxy.host, port, deadline)?;
    loop {
        let done = match socks5.next_step()? {
            ProxyStep::Send(bytes) => socket.write_all(bytes.as_slice()),
            ProxyStep::Receive => read_byte(&mut socket).map(|byte| {
                socks5.received(&[byte]);
            }),
            ProxyStep::Connected => return Ok(socket),
        };
        done.map_err(|error| Trouble::from(error).at(Stage::Proxy))?;
    }
}

/// One at a time, so that nothing is read that is the server's.
fn read_byte(socket: &mut Socket) -> io::Result<u8> {
    let mut byte = [0];
    match socket.read(&mut byte)? {
        0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "closed by the proxy")),
        _ => Ok(byte[0]),
    }
}
