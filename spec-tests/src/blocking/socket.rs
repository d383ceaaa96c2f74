//! A blocking socket that keeps a deadline: each read and write waits no longer than what is left.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};

/// When to give up, and after how long that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    limit: Duration,
}

pub(super) struct Socket {
    kind: Kind,
    deadline: Option<Deadline>,
}

enum Kind {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// What an I/O error holds when a deadline ended, as opposed to the operating system's own
/// patience.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedOut {
    pub(super) after: Duration,
}

impl Deadline {
    /// None without a limit; zero is without, too (OP-18, OP-19).
    pub(super) fn after(limit: Option<Duration>) -> Option<Self> {
        let limit = limit.filter(|limit| !limit.is_zero())?;
        Some(Self { at: Instant::now().checked_add(limit)?, limit })
    }

    /// What is left, which is never nothing.
    fn left(self) -> io::Result<Duration> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.timed_out()) } else { Ok(left) }
    }

    /// A read that waited too long would block; a connect timed out.
    fn explains(self, error: &io::Error) -> bool {
        let kind = error.kind();
        kind == ErrorKind::WouldBlock || (kind == ErrorKind::TimedOut && self.left().is_err())
    }

    fn timed_out(self) -> io::Error {
        io::Error::new(ErrorKind::TimedOut, TimedOut { after: self.limit })
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timed out after {:?}", self.after)
    }
}

impl Error for TimedOut {}

impl Socket {
    /// Connects to the server itself.
    pub(super) fn connect(
        address: &ServerAddress,
        deadline: Option<Deadline>,
    ) -> Result<Self, ConnectionError> {
        match address {
            ServerAddress::Tcp { host, port } => {
                let stages = Stages { resolve: Stage::Dns, connect: Stage::Tcp };
                connect_tcp(host, *port, deadline, stages)
            }
            #[cfg(unix)]
            ServerAddress::Unix { path } => UnixStream::connect(path)
                .map(|stream| Self { kind: Kind::Unix(stream), deadline })
                .map_err(|error| ConnectionError::network(Stage::Tcp, error)),
            #[cfg(not(unix))]
            ServerAddress::Unix { .. } => {
                Err(ConnectionError::configuration(Stage::Tcp, "no UNIX sockets on this system"))
            }
        }
    }

    /// Connects to a proxy, whose failures say nothing about the server (SX-06).
    pub(super) fn connect_to_proxy(
        host: &str,
        port: u16,
        deadline: Option<Deadline>,
    ) -> Result<Self, ConnectionError> {
        let stages = Stages { resolve: Stage::Proxy, connect: Stage::Proxy };
        connect_tcp(host, port, deadline, stages)
    }

    pub(super) fn set_deadline(&mut self, deadline: Option<Deadline>) {
        self.deadline = deadline;
    }

    /// What is left of the time; `None` is without limit.
    fn patience(&self) -> io::Result<Option<Duration>> {
        self.deadline.map(Deadline::left).transpose()
    }

    /// Tells a deadline that ended from the operating system's own "timed out", which speaks of a
    /// dead peer.
    fn explain(&self, error: io::Error) -> io::Error {
        match self.deadline {
            Some(deadline) if deadline.explains(&error) => deadline.timed_out(),
            Some(_) | None => error,
        }
    }
}

/// Whose fault a failure is.
#[derive(Clone, Copy)]
struct Stages {
    resolve: Stage,
    connect: Stage,
}

/// Tries every address of the host, one after the other; the last failure counts. The operating
/// system resolves the name in its own time.
fn connect_tcp(
    host: &str,
    port: u16,
    deadline: Option<Deadline>,
    stages: Stages,
) -> Result<Socket, ConnectionError> {
    let resolved = (host, port).to_socket_addrs();
    let addresses = resolved.map_err(|error| ConnectionError::network(stages.resolve, error))?;
    let nothing = || ConnectionError::network(stages.resolve, "the name has no address");
    let mut outcome = Err(nothing());
    for address in addresses {
        let attempt = match deadline.map(Deadline::left).transpose() {
            Ok(Some(left)) => TcpStream::connect_timeout(&address, left),
            Ok(None) => TcpStream::connect(address),
            Err(error) => Err(error),
        };
        match attempt.and_then(|stream| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => return Ok(Socket { kind: Kind::Tcp(stream), deadline }),
            Err(error) => outcome = Err(connect_error(stages.connect, error, deadline)),
        }
    }
    outcome
}

fn connect_error(stage: Stage, error: io::Error, deadline: Option<Deadline>) -> ConnectionError {
    match deadline {
        Some(deadline) if deadline.explains(&error) => {
            ConnectionError::timeout(stage, deadline.limit)
        }
        Some(_) | None => ConnectionError::network(stage, error),
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let patience = self.patience()?;
        let read = match &mut self.kind {
            Kind::Tcp(stream) => {
                stream.set_read_timeout(patience)?;
                stream.read(buffer)
            }
            #[cfg(unix)]
            Kind::Unix(stream) => {
                stream.set_read_timeout(patience)?;
                stream.read(buffer)
            }
        };
        read.map_err(|error| self.explain(error))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience = self.patience()?;
        let written = match &mut self.kind {
            Kind::Tcp(stream) => {
                stream.set_write_timeout(patience)?;
                stream.write(bytes)
            }
            #[cfg(unix)]
            Kind::Unix(stream) => {
                stream.set_write_timeout(patience)?;
                stream.write(bytes)
            }
        };
        written.map_err(|error| self.explain(error))
    }

    /// Neither kind keeps anything back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
