//! Options of TCP sockets.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// How long a socket is idle before the operating system probes the peer, and the time between probes.
const KEEP_ALIVE: Duration = Duration::from_secs(120);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Switches Nagle's algorithm off and keep-alive on: small messages leave at once, and a peer that is gone
/// is noticed.
///
/// # Errors
///
/// Those of the operating system.
pub fn prepare<'s, S>(stream: &'s S) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keep_alive)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use socket2::SockRef;

    use super::prepare;

    #[test]
    fn sockets_do_not_wait_for_more_and_notice_a_peer_that_is_gone() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = SockRef::from(&stream);
        assert!(!socket.tcp_nodelay().unwrap() && !socket.keepalive().unwrap());
        prepare(&stream).unwrap();
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
    }
}
