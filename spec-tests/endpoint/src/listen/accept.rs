//! Where the endpoint listens, and how it accepts connections.

use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::time::sleep;

use super::connection;
use super::host::Host;
use super::socket::Socket;
use super::tls::Tls;
use super::tls_fault::{Faulty, TlsFault};
use crate::Peer;

/// The backlog of the listening socket.
const WAITING: u32 = 4096;

/// How long to wait before retrying what failed for lack of a resource.
const PAUSE: Duration = Duration::from_millis(10);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// On 127.0.0.1; port 0 is any that is free.
    Tcp {
        /// The port.
        port: u16,
    },
    /// On a UNIX domain socket, whose file must not be there yet and is removed at the end.
    Unix {
        /// Its file. Clients know it as a UNIX domain socket if its name ends in `.sock`.
        path: PathBuf,
    },
}

/// `host:port`, or the path of the socket.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { port } => write!(f, "{}:{port}", Ipv4Addr::LOCALHOST),
            Self::Unix { path } => path.display().fmt(f),
        }
    }
}

#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListenAddress {
    pub(super) fn listen(&self) -> io::Result<Listener> {
        match self {
            Self::Tcp { .. } => self.listen_on(self.reserve()?),
            Self::Unix { path } => UnixListener::bind(path).map(Listener::Unix),
        }
    }

    /// Binds a socket of TCP, which refuses connections, so that no other process gets the port.
    fn reserve(&self) -> io::Result<Option<TcpSocket>> {
        let Self::Tcp { port } = self else { return Ok(None) };
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))?;
        Ok(Some(socket))
    }

    fn listen_on(&self, reserved: Option<TcpSocket>) -> io::Result<Listener> {
        match reserved {
            Some(socket) => socket.listen(WAITING).map(Listener::Tcp),
            None => self.listen(),
        }
    }

    /// Stops listening, and removes the file of a UNIX domain socket.
    pub(super) fn vacate(&self) {
        if let Self::Unix { path } = self {
            let _ = fs::remove_file(path);
        }
    }
}

impl Listener {
    /// The place with the port that the operating system chose.
    pub(super) fn place(&self, asked: &ListenAddress) -> io::Result<ListenAddress> {
        match self {
            Self::Tcp(listener) => Ok(ListenAddress::Tcp { port: listener.local_addr()?.port() }),
            Self::Unix(_) => Ok(asked.clone()),
        }
    }

    async fn accept(&self) -> io::Result<(Socket, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Socket::Left(stream), peer.to_string()))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Right(stream), "anonymous unix socket".to_owned()))
            }
        }
    }
}

/// Accepts connections while the server wants to listen, and refuses them while it does not.
pub(super) async fn accept(
    host: Arc<Host>,
    place: ListenAddress,
    mut listener: Listener,
    tls: Option<Arc<Tls>>,
) {
    let mut listens = host.listens();
    loop {
        while *listens.borrow_and_update() {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((socket, address)) => {
                        tokio::spawn(meet(Arc::clone(&host), tls.clone(), socket, address));
                    }
                    // The peer has disconnected, or there are no file descriptors left.
                    Err(_) => sleep(PAUSE).await,
                },
                _ = listens.changed() => {}
            }
        }
        drop(listener);
        place.vacate();
        host.obeyed(false);
        let mut reserved = again(|| place.reserve()).await;
        while !*listens.borrow_and_update() {
            let _ = listens.changed().await;
        }
        listener = loop {
            match place.listen_on(reserved) {
                Ok(listener) => break listener,
                Err(_) => reserved = again(|| place.reserve()).await,
            }
        };
        host.obeyed(true);
    }
}

/// Retries until it works: another process may still hold the address.
async fn again<R>(mut attempt: impl FnMut() -> io::Result<R>) -> R {
    loop {
        match attempt() {
            Ok(result) => return result,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// One connection from its first byte to its last.
async fn meet(host: Arc<Host>, tls: Option<Arc<Tls>>, mut socket: Socket, address: String) {
    let Some(tls) = tls else {
        let peer = Peer { address, certificate_subject: None };
        return connection::serve(&host, peer, socket).await;
    };
    let fault = host.tls_fault();
    match fault {
        Some(TlsFault::Stall) => ignore(&mut socket).await,
        Some(TlsFault::Garbage) => {
            answer(&mut socket, b"this is not the beginning of a TLS handshake\r\n").await;
        }
        Some(TlsFault::Alert { description }) => {
            // A record of TLS 1.2, whose only message is a fatal alert.
            answer(&mut socket, &[21, 3, 3, 0, 2, 2, description]).await;
        }
        None | Some(TlsFault::CloseAfter { .. } | TlsFault::Drip { .. }) => {
            let Ok((stream, subject)) = tls.accept(Faulty::new(socket, fault)).await else {
                return;
            };
            if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                host.count_resumed();
            }
            let peer = Peer { address, certificate_subject: subject };
            connection::serve(&host, peer, stream).await;
        }
    }
}

/// Answers the first bytes of the peer, and ends.
async fn answer(socket: &mut Socket, bytes: &[u8]) {
    let _ = socket.read(&mut [0; 1024]).await;
    let _ = socket.write_all(bytes).await;
    let _ = socket.shutdown().await;
}

/// Reads until the peer gives up.
async fn ignore(socket: &mut Socket) {
    let mut bytes = [0; 1024];
    while matches!(socket.read(&mut bytes).await, Ok(1..)) {}
}
