use super::{Secret, UriError, query::Query};

/// The SOCKS5 proxy that connections go through.
// SX-01
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// `proxyHost`: a host name or an IP address.
    pub host: String,
    /// `proxyPort`: 1 to 65535, default [`DEFAULT_PORT`](Self::DEFAULT_PORT).
    pub port: Option<u16>,
    /// `proxyUsername` and `proxyPassword`, which come together and are not empty.
    pub credential: Option<ProxyCredential>,
}

/// The credential for the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyCredential {
    /// `proxyUsername`.
    pub username: String,
    /// `proxyPassword`.
    pub password: Secret,
}

const HOST: &str = "proxyHost";
const PORT: &str = "proxyPort";
const USERNAME: &str = "proxyUsername";
const PASSWORD: &str = "proxyPassword";

impl ProxyOptions {
    /// The port of SOCKS.
    pub const DEFAULT_PORT: u16 = 1080;

    // SX-08
    pub(super) fn read(query: &mut Query) -> Result<Option<Self>, UriError> {
        let given = [PORT, USERNAME, PASSWORD, HOST].map(|name| (name, query.count(name)));
        if let Some((option, _)) = given.into_iter().find(|(_, count)| *count > 1) {
            return Err(UriError::ProxyRepeated { option });
        }
        let Some((any, _)) = given.into_iter().find(|(_, count)| *count > 0) else {
            return Ok(None);
        };
        // To connect without the proxy that was meant is worse than not to connect, so that an
        // empty host is no value to be ignored.
        let host = query.take(HOST).filter(|host| !host.text().is_empty());
        let host = host.ok_or(UriError::ProxyHostMissing { option: any })?;
        Ok(Some(Self {
            host: host.text().to_owned(),
            port: query
                .integer(PORT, 1..=i64::from(u16::MAX))
                .and_then(|port| port.try_into().ok()),
            credential: credential(query)?,
        }))
    }
}

// SX-02
fn credential(query: &mut Query) -> Result<Option<ProxyCredential>, UriError> {
    let username = query.take(USERNAME).filter(|username| !username.text().is_empty());
    let password = query.secret(PASSWORD).filter(|password| !password.text().is_empty());
    match (username, password) {
        (None, None) => Ok(None),
        (Some(username), Some(password)) => Ok(Some(ProxyCredential {
            username: username.text().to_owned(),
            password: password.value,
        })),
        (Some(_), None) | (None, Some(_)) => Err(UriError::ProxyCredentialHalf),
    }
}
