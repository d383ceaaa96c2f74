//! A socket that has left the event loop, on Unix.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

use super::Connection;

/// The operating system counts in microseconds, and zero is without limit.
pub(super) const SHORTEST_TIMEOUT: Duration = Duration::from_micros(1);

/// Whether a call whose timeout is over leaves the socket as it was.
pub(super) const IS_USABLE_AFTER_TIMEOUT: bool = true;

/// The error of a call with a timeout: [`WouldBlock`](ErrorKind::WouldBlock) if that is over, as the
/// operating system says it.
pub(super) fn timed(error: io::Error, _: &SockRef<'_>) -> io::Error {
    error
}

/// Whether a read would block. `false` if unknown.
pub(super) fn is_silent(socket: &SockRef<'_>) -> bool {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    let peeked = socket.recv_with_flags(&mut [MaybeUninit::uninit()], flags);
    matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// For an application's own event loop, with which a checked-out connection is registered while it is used
/// there. Not on Windows: see the crate's README.
impl Source for Connection {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interests: Interest,
    ) -> io::Result<()> {
        SourceFd(&self.socket.sock_ref().as_raw_fd()).register(registry, token, interests)
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interests: Interest,
    ) -> io::Result<()> {
        SourceFd(&self.socket.sock_ref().as_raw_fd()).reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.socket.sock_ref().as_raw_fd()).deregister(registry)
    }
}
