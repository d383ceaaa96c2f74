use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use cenote_shell::interrupt::Interrupter;
use socket2::SockRef;

use super::os;
use crate::event_loop::Socket;

/// A socket on which calls block, or not.
pub(super) struct BlockingSocket {
    /// Shared with interrupters.
    socket: Arc<Socket>,
    mode: Mode,
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
        Self { socket: Arc::new(socket), mode: Mode::NonBlocking }
    }

    /// To read and to write.
    pub(super) fn io(&self) -> Io<'_> {
        Io(self)
    }

    pub(super) fn sock_ref(&self) -> SockRef<'_> {
        self.socket.sock_ref()
    }

    /// From now on calls block for that long at most, and return
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) then; `None` is without limit.
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

    /// The socket, unless an interrupter uses it at this moment.
    pub(super) fn into_socket(self) -> io::Result<Socket> {
        let interrupted = "the pool has interrupted the connection";
        let socket = Arc::into_inner(self.socket);
        socket.ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionAborted, interrupted))
    }

    /// Whether a read would block. `false` where the operating system cannot tell without other calls.
    pub(super) fn is_silent(&self) -> bool {
        os::is_silent(&self.sock_ref())
    }

    /// Ends all calls on this socket, if it still exists then.
    pub(super) fn interrupter(&self) -> Interrupter {
        let socket = Arc::downgrade(&self.socket);
        Box::new(move || {
            if let Some(socket) = socket.upgrade() {
                // It fails on a socket that is disconnected already.
                let _ = socket.sock_ref().shutdown(Shutdown::Both);
            }
        })
    }
}

impl Io<'_> {
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if a timeout is over, on every operating system.
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
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Duration;

    use super::{BlockingSocket, Socket};
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

    #[test]
    fn an_interrupter_ends_a_call_that_blocks() {
        let (mut socket, _peer) = connected();
        let interrupt = socket.interrupter();
        socket.block_for(None).unwrap();
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || socket.io().read(&mut [0; 1]).unwrap());
            interrupt();
            assert_eq!(reading.join().unwrap(), 0);
        });
        interrupt(); // The socket does not exist any more.
    }
}
