use crate::address::ServerAddress;
use crate::uri::{UriError, query::Query};

/// What a `mongodb+srv://` connection string says of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrvOptions {
    host: String,
    service_name: Option<String>,
    max_hosts: Option<u32>,
    /// `authSource` of the connection string overrides that of the TXT record.
    pub(super) has_auth_source: bool,
}

pub(in crate::uri) const SERVICE_NAME: &str = "srvServiceName";
pub(in crate::uri) const MAX_HOSTS: &str = "srvMaxHosts";

/// The longest label of a name has 63 bytes, and the first one is an underscore.
const SERVICE_NAME_MAX: usize = 62;

/// The options for `host`, before those that the TXT record may set are taken out of the query.
// OP-53
pub(in crate::uri) fn read(query: &mut Query, host: String) -> Result<SrvOptions, UriError> {
    let has_auth_source = query.count("authSource") > 0;
    let service_name = query.take(SERVICE_NAME).map(|pair| pair.text().to_owned());
    if service_name.as_deref().is_some_and(|name| !is_service_name(name)) {
        return Err(UriError::SrvServiceName);
    }
    let max_hosts = query.integer(MAX_HOSTS, 0..=crate::uri::query::INTEGER_MAX);
    Ok(SrvOptions { host, service_name, max_hosts, has_auth_source })
}

/// RFC 6335 allows letters, digits and single hyphens between them, with one letter at least.
fn is_service_name(name: &str) -> bool {
    (1..=SERVICE_NAME_MAX).contains(&name.len())
        && name.split('-').all(|part| !part.is_empty())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

impl SrvOptions {
    /// `srvServiceName` where the connection string has none.
    const SERVICE_NAME: &str = "mongodb";

    /// The host, in lower case and without a dot at its end.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// `srvServiceName`; default `mongodb`.
    // SV-08
    #[must_use]
    pub fn service_name(&self) -> &str {
        self.service_name.as_deref().unwrap_or(Self::SERVICE_NAME)
    }

    /// `srvMaxHosts`: how many of the servers are used. `None`, and zero, are all of them.
    #[must_use]
    pub const fn max_hosts(&self) -> Option<u32> {
        self.max_hosts
    }

    /// The name whose SRV records are the servers.
    #[must_use]
    pub fn srv_name(&self) -> String {
        format!("_{}._tcp.{}", self.service_name(), self.host)
    }

    /// The name whose TXT record has options.
    #[must_use]
    pub fn txt_name(&self) -> &str {
        &self.host
    }

    /// The domain that each server has to be in: the host without its first label, or all of it if it has fewer
    /// than three.
    #[must_use]
    pub fn domain(&self) -> &str {
        match self.host.split_once('.') {
            Some((_, parent)) if parent.contains('.') => parent,
            Some(_) | None => &self.host,
        }
    }

    /// How many servers there may be.
    pub(crate) fn limit(&self) -> usize {
        match self.max_hosts {
            None | Some(0) => usize::MAX,
            Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        }
    }

    /// Whether a server is in the domain.
    // SV-03
    pub(super) fn covers(&self, server: &ServerAddress) -> bool {
        let below =
            server.host().strip_suffix(self.domain()).and_then(|rest| rest.strip_suffix('.'));
        below.is_some_and(|labels| !labels.is_empty())
    }
}
