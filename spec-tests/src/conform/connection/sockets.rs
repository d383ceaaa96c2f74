//! The server on a socket: a thread that accepts, and one for each connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};
use socket2::{Domain, Socket, Type};

use super::format::File;
use super::peer::{Peer, Turn};
use super::script::{Certificate, Handshake};
use crate::endpoint::Certificates;

/// A server, and what came of it.
pub(super) struct Server {
    port: u16,
    certificates: Arc<Certificates>,
    is_over: Arc<AtomicBool>,
    progress: Arc<Progress>,
    accepting: JoinHandle<Result<(), String>>,
}

/// How many connections have heard all that they have to hear.
#[derive(Default)]
struct Progress {
    done: Mutex<usize>,
    goes_on: Condvar,
}

impl Progress {
    /// All that there was to hear on one more of them.
    fn is_heard(&self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.goes_on.notify_all();
    }
}

/// How long anything may take: more than any machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// After which there is no room to wait in.
const FULL: Duration = Duration::from_millis(100);

impl Server {
    /// # Errors
    ///
    /// The system's, when it gives no port.
    pub(super) fn start(file: &File) -> Result<Self, String> {
        let unusable = |error: io::Error| format!("no server to play with: {error}");
        let listener = listen(file.is_full).map_err(unusable)?;
        let port = listener.local_addr().map_err(unusable)?.port();
        let waiting = if file.is_full { fill(port) } else { Vec::new() };
        let certificates = Certificates::new().map_err(|error| error.to_string())?;
        let certificates = Arc::new(certificates);
        let (is_over, progress) = (Arc::<AtomicBool>::default(), Arc::<Progress>::default());
        let peers: Vec<_> =
            file.connections.iter().map(|script| Peer::new(script, &file.password)).collect();
        let accepting = thread::spawn({
            let (is_over, progress) = (Arc::clone(&is_over), Arc::clone(&progress));
            let certificates = Arc::clone(&certificates);
            move || {
                if !waiting.is_empty() {
                    listen_to_nobody(&is_over);
                    return Ok(());
                }
                accept(&listener, peers, &is_over, &progress, &certificates)
            }
        });
        Ok(Self { port, certificates, is_over, progress, accepting })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// The file of the authority that has signed its certificate.
    pub(super) fn ca_file(&self) -> String {
        self.certificates.ca_file().to_string_lossy().into_owned()
    }

    /// Waits until so many connections have heard all that they have to hear.
    ///
    /// # Errors
    ///
    /// It takes too long.
    pub(super) fn waiter(&self) -> impl Fn(usize) -> Result<(), String> + use<> {
        let progress = Arc::clone(&self.progress);
        move |connections| {
            let done = progress.done.lock().unwrap_or_else(PoisonError::into_inner);
            let waited =
                progress.goes_on.wait_timeout_while(done, PATIENCE, |done| *done < connections);
            match waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
                true => Err("the server has not heard all that it has to hear".to_owned()),
                false => Ok(()),
            }
        }
    }

    /// When the client is gone.
    ///
    /// # Errors
    ///
    /// What went differently on its side.
    pub(super) fn end(self) -> Result<(), String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.accepting.thread().unpark();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        drop(TcpStream::connect_timeout(&address, FULL)); // So that it looks.
        self.accepting.join().unwrap_or_else(|_| Err("the server has panicked".to_owned()))
    }
}

fn listen(is_full: bool) -> io::Result<TcpListener> {
    if !is_full {
        return TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    }
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(0)?;
    Ok(socket.into())
}

/// Takes all the room there is to wait in: then the system does not answer whoever connects.
fn fill(port: u16) -> Vec<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    std::iter::from_fn(|| TcpStream::connect_timeout(&address, FULL).ok()).collect()
}

fn listen_to_nobody(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        thread::park();
    }
}

fn accept(
    listener: &TcpListener,
    peers: Vec<Peer>,
    is_over: &AtomicBool,
    progress: &Arc<Progress>,
    certificates: &Arc<Certificates>,
) -> Result<(), String> {
    let mut serving = Vec::new();
    let mut peers = peers.into_iter();
    let mut surplus = 0;
    loop {
        let (socket, _) = listener.accept().map_err(|error| error.to_string())?;
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let Some(peer) = peers.next() else {
            surplus += 1;
            continue;
        };
        let (progress, certificates) = (Arc::clone(progress), Arc::clone(certificates));
        serving.push(thread::spawn(move || serve(socket, peer, &progress, &certificates)));
    }
    let mut complaints = Vec::new();
    for (number, thread) in serving.into_iter().enumerate() {
        let served = thread.join().unwrap_or_else(|_| Err("the server has panicked".to_owned()));
        complaints.extend(served.err().map(|what| format!("connection {number}: {what}")));
    }
    match (peers.len(), surplus) {
        (0, 0) => {}
        (0, more) => complaints.push(format!("{more} connections more than expected")),
        (left, _) => complaints.push(format!("{left} connections were never opened")),
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

fn serve(
    socket: TcpStream,
    mut peer: Peer,
    progress: &Progress,
    certificates: &Certificates,
) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    socket.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    socket.set_nodelay(true).map_err(text)?;
    let mut stream = Stream::Plain(socket);
    let mut has_told = false;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match peer.turn()? {
            // Whether anybody is there to hear it, is seen at the next look.
            Turn::Say(bytes) => drop(stream.write_all(&bytes)),
            Turn::ShakeHands(handshake) => match stream.encrypt(&handshake, certificates)? {
                Some(encrypted) => stream = encrypted,
                None => return peer.is_left(),
            },
            Turn::Wait(time) => thread::sleep(time),
            Turn::Close => {
                progress.is_heard();
                return Ok(());
            }
            Turn::Reset => {
                progress.is_heard();
                let socket = socket2::SockRef::from(stream.socket());
                return socket.set_linger(Some(Duration::ZERO)).map_err(text);
            }
            Turn::Listen => {
                if peer.has_heard_all() && !std::mem::replace(&mut has_told, true) {
                    progress.is_heard();
                }
                match stream.read(&mut buffer) {
                    Ok(0) => return peer.is_left(),
                    Ok(count) => peer.hear(&buffer[..count]),
                    Err(error) if is_late(&error) => {
                        return Err(format!("nothing comes from the client for {PATIENCE:?}"));
                    }
                    // However the client closes it.
                    Err(_) => return peer.is_left(),
                }
            }
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A connection, as bytes.
enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        }
    }

    /// `None` when the client breaks off.
    fn encrypt(
        &self,
        handshake: &Handshake,
        certificates: &Certificates,
    ) -> Result<Option<Self>, String> {
        let Self::Plain(socket) = self else { return Err("it is encrypted already".to_owned()) };
        let mut socket = socket.try_clone().map_err(|error| error.to_string())?;
        let config = config(handshake.certificate, certificates)?;
        let mut connection =
            ServerConnection::new(Arc::new(config)).map_err(|error| error.to_string())?;
        let shaken = connection.complete_io(&mut socket);
        if let Some(sni) = &handshake.sni {
            let asked = connection.server_name();
            if asked != Some(sni) {
                return Err(format!("expected to be asked for {sni}, was asked for {asked:?}"));
            }
        }
        if shaken.is_err() {
            return Ok(None);
        }
        Ok(Some(Self::Tls(Box::new(StreamOwned::new(connection, socket)))))
    }
}

fn config(certificate: Certificate, certificates: &Certificates) -> Result<ServerConfig, String> {
    let identity = certificates.server(certificate.kind()).map_err(|error| error.to_string())?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config.with_no_client_auth().with_single_cert(identity.chain, identity.key)
        })
        .map_err(|error| error.to_string())
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
