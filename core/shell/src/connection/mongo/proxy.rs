use std::io::{self, ErrorKind, Read, Write};

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ProxyStep, Socks5};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;

use super::drive::drive;
use super::limit::Limit;
use super::poll_io::PollIo;
use crate::runtime::Network;

/// Has a SOCKS5 proxy connect to the server. Reads nothing but the proxy's own answers: the server
/// does not speak first.
pub(super) async fn tunnel<R: Network>(
    runtime: &R,
    stream: &mut R::Stream,
    address: &ServerAddress,
    proxy: &ProxyOptions,
    limit: Limit,
) -> Result<(), ConnectionError> {
    let mut socks = Socks5::new(address, proxy.credential.as_ref())?;
    let mut input = [0; 512];
    loop {
        match socks.next_step()? {
            ProxyStep::Send(bytes) => {
                let mut unsent = bytes.as_slice();
                let write = |io: &mut PollIo<'_, '_, _>| {
                    while !unsent.is_empty() {
                        match io.write(unsent)? {
                            0 => return Err(io::Error::from(ErrorKind::WriteZero).into()),
                            count => unsent = unsent.get(count..).unwrap_or_default(),
                        }
                    }
                    Ok(io.flush()?)
                };
                let sent = drive(runtime, stream, limit, write).await;
                sent.map_err(|error| error.at(Stage::Proxy))?;
            }
            ProxyStep::Receive => {
                let read = drive(runtime, stream, limit, |io| Ok(io.read(&mut input)?)).await;
                let count = read.map_err(|error| error.at(Stage::Proxy))?;
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
