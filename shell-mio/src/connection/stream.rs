use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;
use socket2::SockRef;

/// What bytes travel on. Every method makes one call of the operating system for bytes at most, and
/// says [`Interrupted`](ErrorKind::Interrupted) when it is to be asked again at once, and
/// [`WouldBlock`](ErrorKind::WouldBlock) when it is not.
pub(super) struct Stream {
    /// Shared with whoever may have to shut it down.
    socket: Arc<Socket>,
    tls: Option<Box<ClientConnection>>,
    mode: Mode,
}

/// What TLS lies on.
pub(super) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    #[cfg(test)]
    Reluctant(Box<super::reluctant::Reluctant>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    NonBlocking,
    Blocking { timeout: Option<Duration> },
}

impl Stream {
    /// Of a socket as the event loop has it: non-blocking.
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket: Arc::new(socket), tls: None, mode: Mode::NonBlocking }
    }

    /// From now on there is TLS, which begins with [`shake`](Self::shake).
    pub(super) fn start_tls(&mut self, tls: ClientConnection) {
        self.tls = Some(Box::new(tls));
    }

    /// A step of the TLS handshake.
    pub(super) fn shake(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        if tls.wants_write() {
            write_tls(tls, &self.socket)?;
        } else if tls.is_handshaking() {
            if read_tls(tls, &self.socket)? == 0 && tls.is_handshaking() {
                let reason = "closed by the peer in the TLS handshake";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, reason));
            }
        } else {
            return Ok(());
        }
        Err(ErrorKind::Interrupted.into())
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&*self.socket).read(buffer) };
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
        if tls.wants_write() {
            // What TLS itself has to say, such as new keys, need not be said before reading.
            match write_tls(tls, &self.socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => written?,
            }
        }
        // At the end of the stream, the next attempt says how it ended.
        read_tls(tls, &self.socket)?;
        Err(ErrorKind::Interrupted.into())
    }

    /// Takes some of the bytes, which are sent once [`flush`](Self::flush) says so.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&*self.socket).write(bytes) };
        let count = tls.writer().write(bytes)?;
        if count == 0 {
            // What TLS keeps is limited.
            write_tls(tls, &self.socket)?;
            return Err(ErrorKind::Interrupted.into());
        }
        Ok(count)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        if !tls.wants_write() {
            return Ok(());
        }
        write_tls(tls, &self.socket)?;
        Err(ErrorKind::Interrupted.into())
    }
}

impl Stream {
    /// From now on, calls wait for so long at most; `None` is without limit.
    pub(super) fn block_for(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // The operating system counts in microseconds, and takes none for no limit.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_micros(1)));
        let mode = Mode::Blocking { timeout };
        if self.mode == mode {
            return Ok(());
        }
        let socket = self.socket.reference();
        if self.mode == Mode::NonBlocking {
            socket.set_nonblocking(false)?;
        }
        socket.set_read_timeout(timeout)?;
        socket.set_write_timeout(timeout)?;
        self.mode = mode;
        Ok(())
    }

    /// From now on, calls do not wait.
    pub(super) fn never_block(&mut self) -> io::Result<()> {
        if self.mode != Mode::NonBlocking {
            self.socket.reference().set_nonblocking(true)?;
            self.mode = Mode::NonBlocking;
        }
        Ok(())
    }

    /// Ends whatever another thread does with the stream, if it is still there then.
    pub(super) fn interrupter(&self) -> impl Fn() + Send + Sync + use<> {
        let socket = Arc::downgrade(&self.socket);
        move || {
            if let Some(socket) = socket.upgrade() {
                // One that is disconnected already is broken off as well.
                let _ = socket.reference().shutdown(Shutdown::Both);
            }
        }
    }

    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> std::os::fd::RawFd {
        use std::os::fd::AsRawFd;
        self.socket.reference().as_raw_fd()
    }
}

fn write_tls(tls: &mut ClientConnection, mut socket: &Socket) -> io::Result<()> {
    match tls.write_tls(&mut socket)? {
        0 => Err(ErrorKind::WriteZero.into()),
        _ => Ok(()),
    }
}

/// What TLS refuses is said to be invalid data, as its own error.
fn read_tls(tls: &mut ClientConnection, mut socket: &Socket) -> io::Result<usize> {
    let count = tls.read_tls(&mut socket)?;
    if let Err(error) = tls.process_new_packets() {
        // The peer is told why, if that can be done at once.
        let _ = tls.write_tls(&mut socket);
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    }
    Ok(count)
}

impl Socket {
    fn reference(&self) -> SockRef<'_> {
        match self {
            Self::Tcp(socket) => SockRef::from(socket),
            #[cfg(unix)]
            Self::Unix(socket) => SockRef::from(socket),
            #[cfg(test)]
            Self::Reluctant(_) => unreachable!("it is none of the operating system's"),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(socket) => socket,
            #[cfg(unix)]
            Self::Unix(socket) => socket,
            #[cfg(test)]
            Self::Reluctant(_) => unreachable!("it is none of the operating system's"),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).read(buffer),
            #[cfg(unix)]
            Socket::Unix(socket) => (&mut &*socket).read(buffer),
            #[cfg(test)]
            Socket::Reluctant(socket) => socket.read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).write(bytes),
            #[cfg(unix)]
            Socket::Unix(socket) => (&mut &*socket).write(bytes),
            #[cfg(test)]
            Socket::Reluctant(socket) => socket.write(bytes),
        }
    }

    /// Neither kind keeps anything back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// While the connection is being opened, and nobody else has the socket.
impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, both: Interest) -> io::Result<()> {
        self.own()?.source().register(registry, token, both)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, both: Interest) -> io::Result<()> {
        self.own()?.source().reregister(registry, token, both)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.own()?.source().deregister(registry)
    }
}

impl Stream {
    fn own(&mut self) -> io::Result<&mut Socket> {
        Arc::get_mut(&mut self.socket).ok_or_else(|| io::Error::other("the connection is open"))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use mio::net::UnixStream;

    use super::{Socket, Stream};

    #[test]
    fn the_shortest_time_is_not_for_ever() {
        let (own, _peer) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(Socket::Unix(own));
        for nanoseconds in [1, 999, 1_000_000] {
            stream.block_for(Some(Duration::from_nanos(nanoseconds))).unwrap();
            let error = stream.read(&mut [0; 1]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
        stream.never_block().unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn an_interrupter_ends_what_blocks() {
        let (own, _peer) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(Socket::Unix(own));
        let interrupt = stream.interrupter();
        stream.block_for(None).unwrap();
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || stream.read(&mut [0; 1]).unwrap());
            interrupt();
            assert_eq!(reading.join().unwrap(), 0);
        });
        interrupt(); // Once more, when nothing is left, is no harm.
    }
}
