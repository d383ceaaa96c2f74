use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cenote_shell::connection::IdleProbe;
use cenote_shell::connection::interrupt::Interrupter;
use cenote_shell::connection::transport_error::TransportError;
use socket2::SockRef;

use super::os;
use super::timeout::{Timeout, Wait};
use crate::event_loop::Socket;
use cenote_shell::runtime::process::Process;

/// A socket on which calls block, or not.
pub(super) struct BlockingSocket {
    /// Shared with interrupters and probes.
    socket: Arc<Socket>,
    /// Dropped after it.
    _end: EndOnDrop,
    mode: Mode,
    /// Until then it counts as silent.
    silent_until: Instant,
}

/// How long a socket that was found silent counts as such: a connection in constant use pays for no look.
const HOT: Duration = Duration::from_millis(1);

/// Ends a socket whose owner has gone while an interrupter or a probe still uses it: to the server it is closed, a moment
/// before its descriptor is.
struct EndOnDrop {
    socket: Weak<Socket>,
    /// In a child process it is the parent's, which may use it.
    process: Process,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if self.socket.strong_count() > 0 && self.process.is_current() {
            end(&self.socket);
        }
    }
}

/// Ends all calls on this socket, if it still exists.
fn end(socket: &Weak<Socket>) {
    if let Some(socket) = socket.upgrade() {
        // It fails on a socket that is disconnected already.
        let _ = socket.sock_ref().shutdown(Shutdown::Both);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    NonBlocking,
    Blocking { timeout: Option<Duration> },
}

/// Reads from and writes to a [`BlockingSocket`], in its mode.
#[derive(Clone, Copy)]
pub(super) struct Io<'s>(&'s BlockingSocket);

impl BlockingSocket {
    /// With a socket that does not block.
    pub(super) fn new(socket: Socket) -> Self {
        let socket = Arc::new(socket);
        let end = EndOnDrop { socket: Arc::downgrade(&socket), process: Process::current() };
        Self { socket, _end: end, mode: Mode::NonBlocking, silent_until: Instant::now() }
    }

    /// To read and to write.
    pub(super) fn io(&self) -> Io<'_> {
        Io(self)
    }

    pub(super) fn sock_ref(&self) -> SockRef<'_> {
        self.socket.sock_ref()
    }

    /// From now on calls block for that long at most, and return
    /// [`WouldBlock`](ErrorKind::WouldBlock) then; `None` is without limit.
    pub(super) fn block_for(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| timeout.max(os::SHORTEST_TIMEOUT));
        let mode = Mode::Blocking { timeout };
        if self.mode == mode {
            return Ok(());
        }
        let socket = self.socket.sock_ref();
        if self.mode == Mode::NonBlocking {
            socket.set_nonblocking(false)?;
        }
        socket.set_read_timeout(timeout)?;
        socket.set_write_timeout(timeout)?;
        self.mode = mode;
        Ok(())
    }

    /// From now on calls do not block.
    pub(super) fn never_block(&mut self) -> io::Result<()> {
        if self.mode != Mode::NonBlocking {
            self.socket.sock_ref().set_nonblocking(true)?;
            self.mode = Mode::NonBlocking;
        }
        Ok(())
    }

    /// Repeats a step until it is done, and blocks between two of them. `wait` is for the first one.
    #[inline]
    pub(super) fn repeat<T>(
        &mut self,
        mut wait: Option<Wait>,
        timeout: Timeout,
        mut step: impl FnMut(Io<'_>) -> Result<T, TransportError>,
    ) -> Result<T, TransportError> {
        loop {
            self.block_for(wait.map(|wait| wait.left))?;
            match (TransportError::split_would_block(step(self.io())), wait) {
                (Ok(outcome), _) => return outcome,
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                // How a blocking socket reports its timeout.
                (Err(_), Some(wait)) => return Err(TransportError::TimedOut(wait.timeout)),
                (Err(error), None) => return Err(error.into()),
            }
            wait = match timeout.next() {
                Ok(wait) => wait,
                Err(after) => return self.finish(after, step),
            };
        }
    }

    /// Repeats a step until it is done or would block. The time is over: what has come by now counts, such as while the
    /// process was stopped.
    #[cold]
    fn finish<T>(
        &mut self,
        after: Duration,
        mut step: impl FnMut(Io<'_>) -> Result<T, TransportError>,
    ) -> Result<T, TransportError> {
        self.never_block()?;
        loop {
            match TransportError::split_would_block(step(self.io())) {
                Ok(outcome) => return outcome,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(TransportError::TimedOut(after)),
            }
        }
    }

    /// The socket, unless an interrupter or a probe uses it at this moment.
    pub(super) fn into_socket(self) -> io::Result<Socket> {
        let in_use = "the pool interrupts the connection, or looks at it";
        let socket = Arc::into_inner(self.socket);
        socket.ok_or_else(|| io::Error::new(ErrorKind::ConnectionAborted, in_use))
    }

    /// Whether a read would block. `false` where the operating system cannot tell without other calls.
    pub(super) fn is_silent(&mut self) -> bool {
        let now = Instant::now();
        if now < self.silent_until {
            return true;
        }
        let is_silent = os::is_silent(&self.sock_ref());
        if is_silent {
            self.silent_until = now + HOT;
        }
        is_silent
    }

    /// The same, from any thread, if the socket still exists then.
    pub(super) fn probe(&self) -> IdleProbe {
        let socket = Arc::downgrade(&self.socket);
        Box::new(move || socket.upgrade().is_some_and(|socket| os::is_silent(&socket.sock_ref())))
    }

    /// Ends all calls on this socket, if it still exists then.
    pub(super) fn interrupter(&self) -> Interrupter {
        let socket = Arc::downgrade(&self.socket);
        Box::new(move || end(&socket))
    }
}

impl Io<'_> {
    /// [`WouldBlock`](ErrorKind::WouldBlock) if a timeout is over, on every operating system.
    #[cold]
    fn error(self, error: io::Error) -> io::Error {
        match self.0.mode {
            Mode::Blocking { timeout: Some(_) } => os::timed(error, &self.0.sock_ref()),
            Mode::Blocking { timeout: None } | Mode::NonBlocking => error,
        }
    }
}

impl Read for Io<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0.socket).read(buffer).map_err(|error| self.error(error))
    }
}

impl Write for Io<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0.socket).write(bytes).map_err(|error| self.error(error))
    }

    /// A socket has no buffer of its own.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    use cenote_shell::connection::operation::{CommandTimeouts, OperationOptions};
    use cenote_shell::connection::transport_error::TransportError;

    use super::{BlockingSocket, Io, Socket};
    use crate::connection::timeout::Timeout;
    use crate::event_loop::OpenSocket;

    /// With its peer.
    fn connected() -> (BlockingSocket, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        (BlockingSocket::new(Socket::try_from(OpenSocket::from(own)).unwrap()), peer)
    }

    #[test]
    fn the_shortest_timeout_is_not_without_limit() {
        for nanoseconds in [1, 999, 1_000_000] {
            let (mut socket, _peer) = connected();
            socket.block_for(Some(Duration::from_nanos(nanoseconds))).unwrap();
            let error = socket.io().read(&mut [0; 1]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_socket_blocks_only_where_it_should() {
        let (mut socket, mut peer) = connected();
        let would_block = |socket: &BlockingSocket| {
            socket.io().read(&mut [0; 1]).unwrap_err().kind() == ErrorKind::WouldBlock
        };
        assert!(would_block(&socket));
        socket.block_for(None).unwrap();
        peer.write_all(&[7]).unwrap();
        assert_eq!(socket.io().read(&mut [0; 1]).unwrap(), 1);
        socket.never_block().unwrap();
        assert!(would_block(&socket));
    }

    /// Reads bytes one by one, until it has as many.
    fn read(mut io: Io<'_>, wanted: usize, count: &mut usize) -> Result<(), TransportError> {
        if *count == wanted {
            return Ok(());
        }
        *count += io.read(&mut [0; 1])?;
        Err(io::Error::from(ErrorKind::Interrupted).into())
    }

    /// The process was stopped during the first step until the time was over.
    #[test]
    fn what_has_come_when_the_time_is_over_counts() {
        for (wanted, is_there) in [(5, true), (6, false)] {
            let (mut socket, mut peer) = connected();
            peer.write_all(&[7; 5]).unwrap();
            let options = OperationOptions::new().with_timeout(Duration::from_millis(50));
            let limit = CommandTimeouts::default().limit(options, Instant::now);
            let (timeout, mut count) = (Timeout::from(limit), 0);
            let outcome = socket.repeat(timeout.next().unwrap(), timeout, |io| {
                if count == 0 {
                    thread::sleep(Duration::from_millis(60));
                }
                read(io, wanted, &mut count)
            });
            assert_eq!(outcome.is_ok(), is_there);
            assert_eq!(count, 5);
        }
    }

    #[test]
    fn an_interrupter_ends_a_call_that_blocks() {
        let (mut socket, _peer) = connected();
        let interrupt = socket.interrupter();
        socket.block_for(None).unwrap();
        thread::scope(|scope| {
            let reading = scope.spawn(move || socket.io().read(&mut [0; 1]).unwrap());
            interrupt();
            assert_eq!(reading.join().unwrap(), 0);
        });
        interrupt(); // The socket does not exist any more.
    }

    #[test]
    fn the_peer_sees_the_end_while_another_thread_looks() {
        let (socket, mut peer) = connected();
        let looks = Arc::clone(&socket.socket);
        drop(socket);
        peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
        drop(looks);
    }

    #[test]
    fn a_probe_tells_silence_from_all_else() {
        let (socket, mut peer) = connected();
        assert!(socket.probe()());
        peer.write_all(&[7]).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while socket.probe()() {
            assert!(Instant::now() < end, "it does not come");
        }
        let late = socket.probe();
        drop(socket);
        assert!(!late(), "there is nothing to look at");
    }
}
