//! What there is to know about opening TCP connections, whatever opens them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// How long one attempt has before the next address is tried as well (RFC 8305, section 5).
pub const ATTEMPT: Duration = Duration::from_millis(250);

/// How long a socket is silent before the operating system asks whether the peer is there, and how
/// often it asks then.
const KEEP_ALIVE: Duration = Duration::from_secs(120);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The two families in turn, beginning with the one that the system prefers (RFC 8305, section 4).
#[must_use]
pub fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().copied() else { return addresses };
    let (preferred, others): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first.is_ipv4());
    let mut ordered = Vec::with_capacity(preferred.len() + others.len());
    let (mut preferred, mut others) = (preferred.into_iter(), others.into_iter());
    loop {
        let pair = [preferred.next(), others.next()];
        if pair == [None, None] {
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

/// Small messages leave at once, and a peer that is gone is noticed.
///
/// # Errors
///
/// When the operating system refuses.
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
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

    use socket2::SockRef;

    use super::{alternate, prepare};

    #[test]
    fn sockets_do_not_wait_for_more_and_notice_a_peer_that_is_gone() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = SockRef::from(&stream);
        assert!(!socket.tcp_nodelay().unwrap() && !socket.keepalive().unwrap());
        prepare(&stream).unwrap();
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
    }

    #[test]
    fn families_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let found = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(address);
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address);
        assert_eq!(alternate(found.to_vec()), expected);
        assert_eq!(alternate(Vec::new()), Vec::new());
    }
}
