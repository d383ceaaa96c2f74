use std::io;
#[cfg(unix)]
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use cenote_shell::interrupt::Interrupter;

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

impl BlockingSocket {
    /// With a socket that does not block.
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket: Arc::new(socket), mode: Mode::NonBlocking }
    }

    /// To read and to write.
    pub(super) fn io(&self) -> &Socket {
        &self.socket
    }

    /// From now on calls block for that long at most, and return
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) then; `None` is without limit.
    pub(super) fn block_for(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // The operating system counts in microseconds, and zero means without limit.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_micros(1)));
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

    /// Whether a read would block. `false` where the operating system cannot tell without other calls.
    pub(super) fn is_silent(&self) -> bool {
        #[cfg(unix)]
        {
            let socket = self.socket.sock_ref();
            let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
            let peeked = socket.recv_with_flags(&mut [MaybeUninit::uninit()], flags);
            matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        }
        #[cfg(not(unix))]
        false
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

    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> std::os::fd::RawFd {
        use std::os::fd::AsRawFd;
        self.socket.sock_ref().as_raw_fd()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::time::Duration;

    use mio::net::UnixStream;

    use super::{BlockingSocket, Socket};

    #[test]
    fn the_shortest_timeout_is_not_without_limit() {
        let (own, _peer) = UnixStream::pair().unwrap();
        let mut socket = BlockingSocket::new(Socket::Unix(own));
        for nanoseconds in [1, 999, 1_000_000] {
            socket.block_for(Some(Duration::from_nanos(nanoseconds))).unwrap();
            let error = socket.io().read(&mut [0; 1]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
        socket.never_block().unwrap();
        assert_eq!(socket.io().read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn an_interrupter_ends_a_call_that_blocks() {
        let (own, _peer) = UnixStream::pair().unwrap();
        let mut socket = BlockingSocket::new(Socket::Unix(own));
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
