//! From a name to a socket: name resolution, the attempts to connect, the proxy.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::proxy;
use super::stream::{Socket, Stream};
use crate::connector::Target;
use crate::dial::{ATTEMPT, alternate, prepare};

/// By when something has to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    all: Option<Deadline>,
    /// For each wait anew, besides.
    each: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline {
    at: Instant,
    /// How long that is after the beginning.
    after: Duration,
}

impl Limit {
    /// For everything about one connection: `connectTimeoutMS` or the caller's deadline, whichever
    /// comes first (CS-03, CS-08).
    pub(super) fn of(target: &Target, connect_timeout: Duration) -> Self {
        let now = Instant::now();
        let own = Deadline::after(now, connect_timeout);
        let callers = target.deadline.map(|at| Deadline { at, after: at - now });
        Self { all: own.into_iter().chain(callers).min(), each: None }
    }

    /// This long for all of it; zero is without limit.
    pub(super) fn within(all: Duration) -> Self {
        Self { all: Deadline::after(Instant::now(), all), each: None }
    }

    /// This long for each wait.
    pub(super) fn each(each: Option<Duration>) -> Self {
        Self { all: None, each }
    }

    /// Besides, `each` for every command of the handshake (CS-06, CS-08).
    pub(super) fn and_each_command(self, each: Option<Duration>) -> Self {
        Self { each, ..self }
    }

    /// For a command that begins now, and for its reply.
    pub(super) fn for_command(self) -> Self {
        let each = self.each.and_then(|each| Deadline::after(Instant::now(), each));
        Self { all: each.into_iter().chain(self.all).min(), each: None }
    }

    /// What becomes of `work`, or after how long it was given up.
    pub(super) async fn hold<R>(self, work: impl Future<Output = R>) -> Result<R, Duration> {
        let each = self.each.and_then(|each| Deadline::after(Instant::now(), each));
        match each.into_iter().chain(self.all).min() {
            Some(Deadline { at, after }) => timeout_at(at, work).await.map_err(|_| after),
            None => Ok(work.await),
        }
    }

    /// As [`hold`](Self::hold), for what fails as I/O does, at one stage of establishing.
    pub(super) async fn hold_at<R>(
        self,
        stage: Stage,
        work: impl Future<Output = io::Result<R>>,
    ) -> Result<R, ConnectionError> {
        match self.hold(work).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(ConnectionError::network(stage, error)),
            Err(after) => Err(ConnectionError::timeout(stage, after)),
        }
    }
}

impl Deadline {
    /// Zero is without limit (CS-01), and so is what the clock does not reach.
    fn after(now: Instant, after: Duration) -> Option<Self> {
        let at = now.checked_add(after).filter(|_| !after.is_zero());
        at.map(|at| Self { at, after })
    }
}

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
