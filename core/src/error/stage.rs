use core::fmt;

/// How far a connection had come when it failed.
///
/// All stages but the last belong to establishing a connection, in this order; a connection
/// without proxy or TLS skips theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Turning the host's name into addresses.
    Dns,
    /// The TCP (or Unix domain) connect, to the server itself.
    Tcp,
    /// Reaching a SOCKS5 proxy, logging in there, and its answer about the server.
    Proxy,
    /// The TLS handshake: an end of stream, a reset, silence; an alert of the server, or bytes that
    /// are not TLS.
    // ER-33
    TlsIo,
    /// The certificate of the server: not trusted, not valid now, or of another host.
    TlsCertificate,
    /// The first command and its reply, speculative authentication included.
    Hello,
    /// The authentication commands after hello.
    Authentication,
    /// An established connection, used by an application.
    Operation,
}

impl Stage {
    /// Every stage, in the order in which a connection goes through them.
    pub const ALL: [Self; 8] = [
        Self::Dns,
        Self::Tcp,
        Self::Proxy,
        Self::TlsIo,
        Self::TlsCertificate,
        Self::Hello,
        Self::Authentication,
        Self::Operation,
    ];

    /// Whether the connection was still being established: the handshake of the specifications,
    /// authentication included, was not complete.
    #[must_use]
    pub fn is_establishing(self) -> bool {
        self < Self::Operation
    }

    /// Whether hello was still to be answered. Behind a load balancer it is not known yet which
    /// service is at the other end, so SDAM has nothing to act on.
    #[must_use]
    pub fn is_before_hello_ends(self) -> bool {
        self <= Self::Hello
    }

    /// Whether a server with too much to do looks like a network failure at this stage. A name, a
    /// certificate, a proxy and a password say nothing about load.
    // ER-30, ER-31, ER-32, TL-08, SX-06
    #[must_use]
    pub(super) fn can_be_overload(self) -> bool {
        match self {
            Self::Tcp | Self::TlsIo | Self::Hello => true,
            Self::Dns
            | Self::Proxy
            | Self::TlsCertificate
            | Self::Authentication
            | Self::Operation => false,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dns => "name resolution",
            Self::Tcp => "connect",
            Self::Proxy => "SOCKS5 proxy",
            Self::TlsIo => "TLS handshake",
            Self::TlsCertificate => "TLS verification",
            Self::Hello => "hello",
            Self::Authentication => "authentication",
            Self::Operation => "operation",
        })
    }
}
