//! The way through a SOCKS5 proxy.

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ProxyStep, Socks5};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::limit::Limit;

/// Has the proxy connect to the server. What is read is never more than the proxy's own answers:
/// the server has not been spoken to, and does not begin.
pub(super) async fn tunnel(
    mut tcp: TcpStream,
    address: &ServerAddress,
    proxy: &ProxyOptions,
    limit: Limit,
) -> Result<TcpStream, ConnectionError> {
    let mut socks = Socks5::new(address, proxy.credential.as_ref())?;
    let mut input = [0; 512];
    loop {
        match socks.next_step()? {
            ProxyStep::Send(bytes) => {
                limit.hold_at(Stage::Proxy, tcp.write_all(bytes.as_slice())).await?;
            }
            ProxyStep::Receive => {
                let count = limit.hold_at(Stage::Proxy, tcp.read(&mut input)).await?;
                if count == 0 {
                    return Err(ConnectionError::network(Stage::Proxy, "closed by the proxy"));
                }
                let received = input.get(..count).unwrap_or_default();
                if socks.received(received) < count {
                    let reason = "the proxy sends more than its answers";
                    return Err(ConnectionError::protocol(Stage::Proxy, reason));
                }
            }
            ProxyStep::Connected => return Ok(tcp),
        }
    }
}
