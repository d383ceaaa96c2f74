//! From a name to a socket: name resolution, the attempts to connect, the proxy.

use std::io;
use std::net::SocketAddr;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::limit::Limit;
use super::proxy;
use super::stream::{Socket, Stream};
use crate::dial::{ATTEMPT, alternate, prepare};

/// Bytes to the server and back, without TLS yet.
pub(super) async fn dial(
    address: &ServerAddress,
    proxy: Option<&ProxyOptions>,
    limit: Limit,
) -> Result<Stream, ConnectionError> {
    let socket = match (address, proxy) {
        (ServerAddress::Unix { path }, _) => {
            Socket::from(limit.hold_at(Stage::Tcp, UnixStream::connect(path)).await?)
        }
        (ServerAddress::Tcp { .. }, Some(proxy)) => {
            let port = proxy.port.unwrap_or(ProxyOptions::DEFAULT_PORT);
            let tcp = tcp(&proxy.host, port, [Stage::Proxy, Stage::Proxy], limit).await?;
            Socket::from(proxy::tunnel(tcp, address, proxy, limit).await?)
        }
        (ServerAddress::Tcp { host, port, .. }, None) => {
            Socket::from(tcp(host, *port, [Stage::Dns, Stage::Tcp], limit).await?)
        }
    };
    Ok(Stream::Plain(socket))
}

/// The stages are those of resolving and of connecting.
async fn tcp(
    host: &str,
    port: u16,
    [resolving, connecting]: [Stage; 2],
    limit: Limit,
) -> Result<TcpStream, ConnectionError> {
    let found = limit.hold_at(resolving, lookup_host((host, port))).await?;
    let addresses = alternate(found.collect());
    if addresses.is_empty() {
        return Err(ConnectionError::network(resolving, "the name has no address"));
    }
    let stream = limit.hold_at(connecting, race(addresses)).await?;
    prepare(&stream).map_err(|error| ConnectionError::network(connecting, error))?;
    Ok(stream)
}

/// The first address that answers. Each next one is tried when the one before has failed, or has
/// had its time; the losers are dropped.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut failure = None;
    let mut addresses = addresses.into_iter();
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(address));
        } else if attempts.is_empty() {
            return Err(failure.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()));
        }
        tokio::select! {
            Some(attempt) = attempts.join_next() => match attempt {
                Ok(Ok(stream)) => return Ok(stream),
                // The first reason is that of the preferred address.
                Ok(Err(error)) => drop(failure.get_or_insert(error)),
                Err(stopped) => drop(failure.get_or_insert(io::Error::other(stopped))),
            },
            () = sleep(ATTEMPT), if !is_last => {}
        }
    }
}
