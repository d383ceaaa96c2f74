//! Cuts a connection string into its parts, and decodes them.

use std::{net::IpAddr, str::from_utf8};

use super::{Secret, UriError, UriPart};
use crate::address::{ServerAddress, split_port};

/// The parts of a connection string as they are written, still percent-encoded.
// OP-34
pub(super) struct Parts<'a> {
    /// Whether the scheme is `mongodb+srv`.
    pub(super) is_srv: bool,
    pub(super) userinfo: Option<&'a str>,
    hosts: &'a str,
    database: &'a str,
    /// The text after the first `?`.
    pub(super) options: &'a str,
}

/// The text before the `@`, decoded.
pub(super) struct Userinfo {
    pub(super) username: String,
    /// No password and an empty one are different things.
    pub(super) password: Option<Secret>,
}

impl<'a> Parts<'a> {
    // OP-44
    pub(super) fn of(uri: &'a str) -> Result<Self, UriError> {
        let srv = uri.strip_prefix("mongodb+srv://");
        let rest = srv.or_else(|| uri.strip_prefix("mongodb://")).ok_or(UriError::Scheme)?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (userinfo, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(userinfo), hosts),
            None => (None, authority),
        };
        // A `/` or `?` in a password ends the authority too early, and an `@` turns up behind it.
        // In the options an `@` may stand, so there it tells nothing yet.
        if database.contains('@') {
            return Err(UriError::UserinfoCut);
        }
        Ok(Self { is_srv: srv.is_some(), userinfo, hosts, database, options })
    }

    /// Whether the options may begin in the middle of a password that has a `?` in it.
    fn options_may_be_secret(&self) -> bool {
        self.userinfo.is_none() && self.options.contains('@')
    }

    // OP-45
    pub(super) fn userinfo(&self) -> Result<Option<Userinfo>, UriError> {
        let Some(userinfo) = self.userinfo else { return Ok(None) };
        let (username, password) = match userinfo.split_once(':') {
            Some((username, password)) => (username, Some(password)),
            None => (userinfo, None),
        };
        let odd = |character: char| ":@#[]".contains(character);
        if let Some(character) =
            username.chars().chain(password.unwrap_or("").chars()).find(|&c| odd(c))
        {
            return Err(UriError::Userinfo { character });
        }
        let username = decode(username, UriPart::Username)?;
        let password = password.map(|password| decode(password, UriPart::Password)).transpose()?;
        Ok(Some(Userinfo { username, password: password.map(Secret::from) }))
    }

    // OP-46, SV-02
    pub(super) fn hosts(&self) -> Result<Vec<ServerAddress>, UriError> {
        if self.hosts.is_empty() && !self.options_may_be_secret() {
            return Err(UriError::NoHost);
        }
        let hosts: Result<_, _> = self
            .hosts
            .split(',')
            .zip(1..)
            .map(|(host, position)| address(host, position))
            .collect();
        if hosts.is_err() && self.options_may_be_secret() {
            return Err(UriError::UserinfoCut);
        }
        hosts
    }

    /// The one host of `mongodb+srv`, in lower case.
    // OP-53
    pub(super) fn srv_host(&self) -> Result<String, UriError> {
        if self.hosts.contains(',') {
            return Err(UriError::SrvSeveralHosts);
        }
        let hosts = self.hosts()?;
        let [ServerAddress::Tcp { host, .. }] = &*hosts else { return Err(UriError::SrvHost) };
        if host.parse::<IpAddr>().is_ok() {
            return Err(UriError::SrvHost);
        }
        if self.hosts.contains(':') {
            return Err(UriError::SrvPort);
        }
        Ok(host.strip_suffix('.').unwrap_or(host).to_owned())
    }

    /// The database, if one is named.
    // OP-49
    pub(super) fn database(&self) -> Result<Option<String>, UriError> {
        let database = decode(self.database, UriPart::Database)?;
        if let Some(character) = database.chars().find(|&c| "/\\ \"$\0".contains(c)) {
            return Err(UriError::Database { character });
        }
        Ok(Some(database).filter(|database| !database.is_empty()))
    }
}

/// Only the path of a socket may be percent-encoded. An encoded name could mean another host than the one that a
/// reader, or a program that checks hosts, takes it for.
fn address(host: &str, position: usize) -> Result<ServerAddress, UriError> {
    let wrong = |error| UriError::Host { position, error };
    if host.ends_with(".sock") {
        let path = decode(host, UriPart::Host(position))?;
        if path.contains('/') {
            return ServerAddress::unix(&path).map_err(wrong);
        }
    }
    let (name, port) = split_port(host).map_err(wrong)?;
    ServerAddress::tcp(name, port).map_err(wrong)
}

/// Undoes percent-encoding. Stricter than the usual decoders, which let a stray `%` stand.
// OP-33
pub(super) fn decode(text: &str, place: UriPart) -> Result<String, UriError> {
    let escapes_are_whole = text.split('%').skip(1).all(|behind| {
        behind.len() >= 2 && behind.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())
    });
    if !escapes_are_whole {
        return Err(UriError::Encoding { place });
    }
    // A buffer that grew would leave copies of a password behind.
    let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(text.len()));
    bytes.extend(percent_encoding::percent_decode_str(text));
    from_utf8(&bytes).map(str::to_owned).map_err(|_| UriError::Encoding { place })
}
