use std::io::{self, Read, Write};

use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

/// A connected socket, for [`MongoConnector::establish`](crate::MongoConnector::establish). It may be
/// blocking or not.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenSocket {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// A Unix domain socket.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

/// A socket to a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix domain socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn sock_ref(&self) -> SockRef<'_> {
        match self {
            Self::Tcp(socket) => SockRef::from(socket),
            #[cfg(unix)]
            Self::Unix(socket) => SockRef::from(socket),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(socket) => socket,
            #[cfg(unix)]
            Self::Unix(socket) => socket,
        }
    }
}

impl TryFrom<OpenSocket> for Socket {
    type Error = io::Error;

    fn try_from(socket: OpenSocket) -> io::Result<Self> {
        match socket {
            OpenSocket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Ok(Self::Tcp(TcpStream::from_std(socket)))
            }
            #[cfg(unix)]
            OpenSocket::Unix(socket) => {
                socket.set_nonblocking(true)?;
                Ok(Self::Unix(UnixStream::from_std(socket)))
            }
        }
    }
}

impl From<std::net::TcpStream> for OpenSocket {
    fn from(socket: std::net::TcpStream) -> Self {
        Self::Tcp(socket)
    }
}

#[cfg(unix)]
impl From<std::os::unix::net::UnixStream> for OpenSocket {
    fn from(socket: std::os::unix::net::UnixStream) -> Self {
        Self::Unix(socket)
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).read(buffer),
            #[cfg(unix)]
            Socket::Unix(socket) => (&mut &*socket).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).write(bytes),
            #[cfg(unix)]
            Socket::Unix(socket) => (&mut &*socket).write(bytes),
        }
    }

    /// Neither kind has a buffer of its own.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, both: Interest) -> io::Result<()> {
        self.source().register(registry, token, both)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, both: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, both)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}
