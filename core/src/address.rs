//! Where a server is.

use alloc::string::{String, ToString};
use core::{fmt, net::Ipv6Addr, str::FromStr};

use thiserror::Error;

use crate::printable::is_unprintable;

/// The address of one server, as a connection string or a server's own reply gives it.
///
/// Equal addresses are equal values: host names are in lower case and IPv6 addresses in their
/// canonical form. The path of a UNIX socket keeps its case.
///
/// ```
/// use cenote_core::address::ServerAddress;
///
/// let address: ServerAddress = "DB1.Example.com".parse()?;
/// assert_eq!(address.to_string(), "db1.example.com:27017");
/// assert_eq!("[::1]:27018".parse::<ServerAddress>()?.host(), "::1");
/// assert_eq!("/run/mongodb-27017.sock".parse::<ServerAddress>()?.port(), None);
/// # Ok::<(), cenote_core::address::AddressError>(())
/// ```
// OP-46
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ServerAddress {
    /// A host that listens on a TCP port.
    Tcp {
        /// A host name in lower case, an IPv4 address, or an IPv6 address without its brackets.
        host: String,
        /// 1 to 65535.
        port: u16,
    },
    /// A socket in the file system of this machine.
    Unix {
        /// The path of the socket, which ends in `.sock`.
        path: String,
    },
}

/// Why a text is not an address of a server.
///
/// No message repeats the text: a connection string that is cut in the wrong place has part of a
/// password where a host should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The host is missing.
    #[error("the host is empty: write a host name, an IP address or the path of a socket")]
    Empty,
    /// The part behind the colon is no port.
    #[error("the port is not a whole number from 1 to 65535")]
    Port,
    /// More than one colon outside brackets.
    #[error("there is more than one `:`: write an IPv6 address in brackets, as in `[::1]:27017`")]
    Colons,
    /// The text in brackets is not an IPv6 address; zone identifiers are not supported.
    #[error("the text in brackets is not an IPv6 address without a zone")]
    Ipv6,
    /// A character that no host name has.
    #[error("the character {0:?} cannot be part of a host name")]
    Character(char),
    /// Longer than the domain name system allows.
    #[error("the host name or path is longer than {max} characters", max = ServerAddress::MAX_HOST_LENGTH)]
    TooLong,
    /// A path that is not the path of a socket.
    #[error("the path of a UNIX socket ends in `.sock` and has no control or invisible characters")]
    Socket,
}

impl ServerAddress {
    /// The port of a server whose address names none.
    // OP-47
    pub const DEFAULT_PORT: u16 = 27017;
    /// How many characters a host name may have, and the path of a socket, which operating systems
    /// limit to about 100.
    pub const MAX_HOST_LENGTH: usize = 253;

    /// A host name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// # Errors
    ///
    /// When `host` cannot be one, or `port` is 0.
    pub fn tcp(host: &str, port: u16) -> Result<Self, AddressError> {
        if port == 0 {
            return Err(AddressError::Port);
        }
        Ok(Self::Tcp { host: canonical(host)?, port })
    }

    /// The path of a UNIX socket.
    ///
    /// # Errors
    ///
    /// When `path` does not end in `.sock`, is too long, or has control or invisible characters.
    pub fn unix(path: &str) -> Result<Self, AddressError> {
        if !path.ends_with(".sock") || path.contains(is_unprintable) {
            return Err(AddressError::Socket);
        }
        if path.chars().count() > Self::MAX_HOST_LENGTH {
            return Err(AddressError::TooLong);
        }
        Ok(Self::Unix { path: path.to_string() })
    }

    /// The host name or IP address, without port and brackets; the path of a UNIX socket.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Unix { path } => path,
        }
    }

    /// The port; `None` for a UNIX socket.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp { port, .. } => Some(*port),
            Self::Unix { .. } => None,
        }
    }
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    /// Reads `host`, `host:port`, `[ipv6]`, `[ipv6]:port` or a path with a slash.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.contains('/') {
            return Self::unix(text);
        }
        let (host, port) = split_port(text)?;
        Self::tcp(host, port)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { path } => f.write_str(path),
        }
    }
}

/// Cuts `host:port` in two. Brackets stay with the host; a missing port is the default.
// OP-47
pub(crate) fn split_port(text: &str) -> Result<(&str, u16), AddressError> {
    let literal =
        if text.starts_with('[') { text.find(']').ok_or(AddressError::Ipv6)? } else { 0 };
    let Some(colon) = text[literal..].find(':') else {
        return Ok((text, ServerAddress::DEFAULT_PORT));
    };
    let (host, port) = (&text[..literal + colon], &text[literal + colon + 1..]);
    if port.contains(':') {
        return Err(AddressError::Colons);
    }
    // `u16` itself would also read `+27017`.
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressError::Port);
    }
    match port.parse() {
        Ok(0) | Err(_) => Err(AddressError::Port),
        Ok(port) => Ok((host, port)),
    }
}

// OP-48
fn canonical(host: &str) -> Result<String, AddressError> {
    if host.is_empty() {
        return Err(AddressError::Empty);
    }
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(AddressError::Ipv6)?;
        let ip: Ipv6Addr = inner.parse().map_err(|_| AddressError::Ipv6)?;
        return Ok(ip.to_string());
    }
    if let Some(odd) = host.chars().find(|&character| !may_be_in_a_name(character)) {
        return Err(AddressError::Character(odd));
    }
    if host.chars().count() > ServerAddress::MAX_HOST_LENGTH {
        return Err(AddressError::TooLong);
    }
    Ok(host.to_lowercase())
}

/// Names in other scripts pass: resolvers know how to encode them.
fn may_be_in_a_name(character: char) -> bool {
    !is_unprintable(character)
        && !character.is_whitespace()
        && !r#":/?#[]@\"<>^`{|}%,"#.contains(character)
}
