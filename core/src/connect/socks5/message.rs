//! The messages of SOCKS5.

use core::net::IpAddr;

use zeroize::Zeroizing;

use crate::address::ServerAddress;
use crate::error::{ConnectionError, Stage};
use crate::uri::ProxyCredential;

pub(super) const SOCKS: u8 = 5;
pub(super) const LOGIN: u8 = 1;
pub(super) const NO_LOGIN: u8 = 0;
pub(super) const USER_AND_PASSWORD: u8 = 2;
pub(super) const NONE_ACCEPTABLE: u8 = 0xFF;
const CONNECT: u8 = 1;
pub(super) const IPV4: u8 = 1;
pub(super) const NAME: u8 = 3;
pub(super) const IPV6: u8 = 4;

pub(super) fn login(credential: &ProxyCredential) -> Result<Zeroizing<Vec<u8>>, ConnectionError> {
    let (username, password) = (credential.username.as_bytes(), credential.password.expose());
    let room = 3 + username.len() + password.len();
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    bytes.push(LOGIN);
    push_counted(&mut bytes, username, "the proxy's user name")?;
    push_counted(&mut bytes, password.as_bytes(), "the proxy's password")?;
    Ok(bytes)
}

// SX-04
pub(super) fn request(server: &ServerAddress) -> Result<Zeroizing<Vec<u8>>, ConnectionError> {
    let ServerAddress::Tcp { host, port } = server else {
        return Err(configuration("a UNIX socket cannot be reached through a proxy"));
    };
    let mut bytes = Zeroizing::new(vec![SOCKS, CONNECT, 0]);
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            bytes.push(IPV4);
            bytes.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            bytes.push(IPV6);
            bytes.extend_from_slice(&address.octets());
        }
        Err(_) => {
            bytes.push(NAME);
            push_counted(&mut bytes, host.as_bytes(), "the server's name")?;
        }
    }
    bytes.extend_from_slice(&port.to_be_bytes());
    Ok(bytes)
}

fn push_counted(bytes: &mut Vec<u8>, text: &[u8], what: &str) -> Result<(), ConnectionError> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length > 0);
    let length =
        length.ok_or_else(|| configuration(&format!("{what} is not 1 to 255 bytes long")))?;
    bytes.push(length);
    bytes.extend_from_slice(text);
    Ok(())
}

pub(super) fn check_version(inbox: &[u8], expected: u8) -> Result<(), ConnectionError> {
    match inbox.first() {
        Some(version) if *version != expected => {
            let reason = format!("not a SOCKS5 proxy: version {version} instead of {expected}");
            Err(protocol(&reason))
        }
        Some(_) | None => Ok(()),
    }
}

/// The codes of RFC 1928, section 6.
pub(super) fn refused(code: u8) -> String {
    let reason = match code {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "unknown reason",
    };
    format!("the proxy cannot connect to the server: {reason} (code {code})")
}

// SX-06
pub(super) fn refusal(reason: &str) -> ConnectionError {
    ConnectionError::network(Stage::Proxy, reason)
}

pub(super) fn protocol(reason: &str) -> ConnectionError {
    ConnectionError::protocol(Stage::Proxy, reason)
}

fn configuration(reason: &str) -> ConnectionError {
    ConnectionError::configuration(Stage::Proxy, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1928, section 6.
    #[test]
    fn each_code_has_its_reason() {
        let reasons = [
            "unknown reason",
            "general failure",
            "not allowed by its rules",
            "network unreachable",
            "host unreachable",
            "connection refused",
            "time to live expired",
            "command not supported",
            "address type not supported",
            "unknown reason",
        ];
        for (code, reason) in (0..).zip(reasons) {
            let text = format!("the proxy cannot connect to the server: {reason} (code {code})");
            assert_eq!(refused(code), text);
        }
    }

    /// A text that had to grow would leave copies of the password behind.
    #[test]
    fn there_is_room_for_a_login_from_the_start() {
        for (username, password) in [("u", "pencil"), ("user", "p"), ("user", "pencil")] {
            let password = password.to_owned().into();
            let credential = ProxyCredential { username: username.to_owned(), password };
            let bytes = login(&credential).expect("it fits");
            assert_eq!(bytes.capacity(), bytes.len());
        }
    }
}
