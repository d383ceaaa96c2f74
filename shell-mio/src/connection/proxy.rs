//! The way through a SOCKS5 proxy.

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ProxyStep, Socks5};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};

use super::limit::Limit;
use crate::event_loop::Watched;

/// Has the proxy connect to the server. What is read is never more than the proxy's own answers:
/// the server has not been spoken to, and does not begin.
pub(super) async fn tunnel(
    tcp: &mut Watched<TcpStream>,
    address: &ServerAddress,
    proxy: &ProxyOptions,
    limit: &Limit,
) -> Result<(), ConnectionError> {
    let mut socks = Socks5::new(address, proxy.credential.as_ref())?;
    let mut input = [0; 512];
    loop {
        match socks.next_step()? {
            ProxyStep::Send(bytes) => {
                let mut unsent = bytes.as_slice();
                limit.hold_at(Stage::Proxy, tcp.ready(|tcp| send(tcp, &mut unsent))).await?;
            }
            ProxyStep::Receive => {
                let count =
                    limit.hold_at(Stage::Proxy, tcp.ready(|tcp| tcp.read(&mut input))).await?;
                if count == 0 {
                    return Err(ConnectionError::network(Stage::Proxy, "closed by the proxy"));
                }
                let received = input.get(..count).unwrap_or_default();
                if socks.received(received) < count {
                    let reason = "the proxy sends more than its answers";
                    return Err(ConnectionError::protocol(Stage::Proxy, reason));
                }
            }
            ProxyStep::Connected => return Ok(()),
        }
    }
}

/// All of it, as far as the socket takes it.
fn send(tcp: &mut TcpStream, unsent: &mut &[u8]) -> io::Result<()> {
    while !unsent.is_empty() {
        match tcp.write(unsent)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => *unsent = unsent.get(count..).unwrap_or_default(),
        }
    }
    Ok(())
}
