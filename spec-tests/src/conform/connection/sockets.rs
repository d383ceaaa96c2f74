//! The server on a socket: a thread that accepts, and one for each connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote_endpoint::Certificates;
use socket2::{Domain, Socket, Type};

use super::format::File;
use super::peer::{Peer, Turn};
use super::script::Script;
use super::stream::Stream;

/// All servers of a file, and what came of them.
pub(super) struct Server {
    /// The first one first.
    running: Vec<Running>,
    certificates: Arc<Certificates>,
    progress: Arc<Progress>,
}

/// One server.
struct Running {
    port: u16,
    /// The port from which the last connection of all comes, once it is over.
    last: Arc<AtomicU16>,
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
        let certificates = Certificates::new().map_err(|error| error.to_string())?;
        let (certificates, progress) = (Arc::new(certificates), Arc::<Progress>::default());
        let peers = |scripts: &Vec<Script>| -> Vec<_> {
            scripts.iter().map(|script| Peer::new(script, &file.password)).collect()
        };
        let start =
            |scripts| Running::start(file.is_full, peers(scripts), &progress, &certificates);
        let running = file.servers().map(start).collect::<io::Result<_>>();
        let running = running.map_err(|error| format!("no server to play with: {error}"))?;
        Ok(Self { running, certificates, progress })
    }

    /// Where each of them is.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.running.iter().map(|server| server.port).collect()
    }

    /// The file of the authority that has signed their certificate.
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
        let is_alone = self.running.len() == 1;
        let ended = self.running.into_iter().zip(1..).map(|(server, number)| {
            let of_which = |what| if is_alone { what } else { format!("server {number}: {what}") };
            server.end().map_err(of_which)
        });
        let complaints: Vec<_> = ended.filter_map(Result::err).collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    }
}

impl Running {
    fn start(
        is_full: bool,
        peers: Vec<Peer>,
        progress: &Arc<Progress>,
        certificates: &Arc<Certificates>,
    ) -> io::Result<Self> {
        let listener = listen(is_full)?;
        let port = listener.local_addr()?.port();
        let waiting = if is_full { fill(port) } else { Vec::new() };
        let last = Arc::<AtomicU16>::default();
        let accepting = thread::spawn({
            let (last, progress) = (Arc::clone(&last), Arc::clone(progress));
            let certificates = Arc::clone(certificates);
            move || {
                if !waiting.is_empty() {
                    listen_to_nobody(&last);
                    return Ok(());
                }
                accept(&listener, peers, &last, &progress, &certificates)
            }
        });
        Ok(Self { port, last, accepting })
    }

    fn end(self) -> Result<(), String> {
        // Those that came before it are heard first, however late they are accepted.
        let unusable = |error: io::Error| format!("cannot end the server: {error}");
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).map_err(unusable)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).map_err(unusable)?;
        let from = socket.local_addr().map_err(unusable)?.as_socket_ipv4();
        self.last.store(from.map_or(0, |from| from.port()), Ordering::Relaxed);
        self.accepting.thread().unpark();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        drop(socket.connect_timeout(&address.into(), FULL));
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

/// Fills the backlog: the system then does not answer clients that connect.
fn fill(port: u16) -> Vec<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    std::iter::from_fn(|| TcpStream::connect_timeout(&address, FULL).ok()).collect()
}

fn listen_to_nobody(last: &AtomicU16) {
    while last.load(Ordering::Relaxed) == 0 {
        thread::park();
    }
}

fn accept(
    listener: &TcpListener,
    peers: Vec<Peer>,
    last: &AtomicU16,
    progress: &Arc<Progress>,
    certificates: &Arc<Certificates>,
) -> Result<(), String> {
    let mut serving = Vec::new();
    let mut peers = peers.into_iter();
    let mut surplus = 0;
    loop {
        let (socket, from) = listener.accept().map_err(|error| error.to_string())?;
        if from.port() == last.load(Ordering::Relaxed) {
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
            // Whether the client is still there is seen at the next read.
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
