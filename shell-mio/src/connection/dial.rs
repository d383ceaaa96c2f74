//! From a name to a socket: name resolution, the attempts to connect, the proxy.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;
use mio::net::TcpStream;

use super::limit::Limit;
use super::proxy;
use super::resolve::Resolver;
use super::stream::{Socket, Stream};
use crate::dial::{ATTEMPT, alternate, prepare};
use crate::event_loop::{EventLoop, Watched};

/// Bytes to the server and back, without TLS yet.
pub(super) async fn dial(
    address: &ServerAddress,
    resolver: &Resolver,
    proxy: Option<&ProxyOptions>,
    limit: &Limit,
) -> Result<Watched<Stream>, ConnectionError> {
    let tcp = match (address, proxy) {
        (ServerAddress::Unix { path }, _) => return unix(path, limit).await,
        (ServerAddress::Tcp { .. }, Some(proxy)) => {
            let port = proxy.port.unwrap_or(ProxyOptions::DEFAULT_PORT);
            let stages = [Stage::Proxy, Stage::Proxy];
            let mut tcp = tcp((&proxy.host, port), resolver, stages, limit).await?;
            proxy::tunnel(&mut tcp, address, proxy, limit).await?;
            tcp
        }
        (ServerAddress::Tcp { host, port, .. }, None) => {
            tcp((host, *port), resolver, [Stage::Dns, Stage::Tcp], limit).await?
        }
    };
    Ok(tcp.map(|tcp| Stream::new(Socket::Tcp(tcp))))
}

#[cfg(unix)]
async fn unix(path: &str, limit: &Limit) -> Result<Watched<Stream>, ConnectionError> {
    let connect = async {
        let socket = mio::net::UnixStream::connect(path)?;
        let mut socket = limit.event_loop().watch(socket)?;
        socket.ready(|socket| established(socket.take_error()?, socket.peer_addr())).await?;
        Ok(socket.map(|socket| Stream::new(Socket::Unix(socket))))
    };
    limit.hold_at(Stage::Tcp, connect).await
}

#[cfg(not(unix))]
async fn unix(_path: &str, _limit: &Limit) -> Result<Watched<Stream>, ConnectionError> {
    let reason = "no UNIX domain sockets on this system";
    Err(ConnectionError::configuration(Stage::Tcp, reason))
}

/// The stages are those of resolving and of connecting.
async fn tcp(
    (host, port): (&str, u16),
    resolver: &Resolver,
    [resolving, connecting]: [Stage; 2],
    limit: &Limit,
) -> Result<Watched<TcpStream>, ConnectionError> {
    let lookup = resolver.resolve(limit.event_loop(), host, port);
    let addresses = alternate(limit.hold_at(resolving, lookup).await?);
    if addresses.is_empty() {
        return Err(ConnectionError::network(resolving, "the name has no address"));
    }
    let stream = limit.hold_at(connecting, race(limit.event_loop(), addresses)).await?;
    prepare(&*stream).map_err(|error| ConnectionError::network(connecting, error))?;
    Ok(stream)
}

/// One attempt to connect.
type Attempt = Pin<Box<dyn Future<Output = io::Result<Watched<TcpStream>>> + Send>>;

/// The first address that answers. Each next one is tried when the one before has failed, or has
/// had its time; the losers are dropped.
async fn race(
    event_loop: &EventLoop,
    addresses: Vec<SocketAddr>,
) -> io::Result<Watched<TcpStream>> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut failure = None;
    let mut addresses = addresses.into_iter();
    loop {
        let next = addresses.next();
        let mut patience = None;
        if let Some(address) = next {
            attempts.push(Box::pin(connect(event_loop.clone(), address)));
            patience = Some(event_loop.sleep_until(Instant::now() + ATTEMPT));
        } else if attempts.is_empty() {
            return Err(failure.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into()));
        }
        let event = poll_fn(|cx| match poll_first(&mut attempts, cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => match &mut patience {
                Some(patience) => Pin::new(patience).poll(cx).map(|()| None),
                None => Poll::Pending,
            },
        });
        match event.await {
            Some(Ok(stream)) => return Ok(stream),
            // The first reason is that of the preferred address.
            Some(Err(error)) => drop(failure.get_or_insert(error)),
            None => {}
        }
    }
}

/// The first one that is over, taken out.
fn poll_first(
    attempts: &mut Vec<Attempt>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Watched<TcpStream>>> {
    for index in 0..attempts.len() {
        let Some(attempt) = attempts.get_mut(index) else { break };
        if let Poll::Ready(outcome) = attempt.as_mut().poll(cx) {
            drop(attempts.remove(index));
            return Poll::Ready(outcome);
        }
    }
    Poll::Pending
}

async fn connect(event_loop: EventLoop, address: SocketAddr) -> io::Result<Watched<TcpStream>> {
    let mut stream = event_loop.watch(TcpStream::connect(address)?)?;
    stream.ready(|stream| established(stream.take_error()?, stream.peer_addr())).await?;
    Ok(stream)
}

/// Whether a socket that was told to connect has done so.
fn established<A>(error: Option<io::Error>, peer: io::Result<A>) -> io::Result<()> {
    match (error, peer) {
        (Some(error), _) => Err(error),
        (None, Ok(_)) => Ok(()),
        (None, Err(error)) if error.kind() == ErrorKind::NotConnected => {
            Err(ErrorKind::WouldBlock.into())
        }
        (None, Err(error)) => Err(error),
    }
}
