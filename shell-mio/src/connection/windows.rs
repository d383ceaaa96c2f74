//! A socket that has left the event loop, on Windows.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;

/// The operating system counts in milliseconds, and zero is without limit.
pub(super) const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

/// A call whose timeout is over may have taken bytes.
pub(super) const IS_USABLE_AFTER_TIMEOUT: bool = false;

/// The error of a call with a timeout: [`WouldBlock`](ErrorKind::WouldBlock) if that is over.
///
/// Windows reports a peer that went silent in the same way. The socket is shut down, because it must not be used
/// any more.
pub(super) fn timed(error: io::Error, socket: &SockRef<'_>) -> io::Error {
    if error.kind() != ErrorKind::TimedOut {
        return error;
    }
    // It fails on a socket that is disconnected already.
    let _ = socket.shutdown(Shutdown::Both);
    ErrorKind::WouldBlock.into()
}

/// Whether a read would block: unknown, because on a blocking socket every call may.
pub(super) fn is_silent(_: &SockRef<'_>) -> bool {
    false
}
