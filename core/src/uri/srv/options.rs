use crate::address::ServerAddress;
use crate::uri::{SuffixProblem, UriError, query::Query};

/// What a `mongodb+srv://` connection string says of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrvOptions {
    host: String,
    service_name: Option<String>,
    max_hosts: Option<u32>,
    /// In lower case, without dots at its ends.
    allowed_suffix: Option<String>,
    /// The embedder checks the hosts of the servers.
    is_checked_elsewhere: bool,
    /// `authSource` of the connection string overrides that of the TXT record.
    pub(super) has_auth_source: bool,
}

pub(in crate::uri) const SERVICE_NAME: &str = "srvServiceName";
pub(in crate::uri) const MAX_HOSTS: &str = "srvMaxHosts";
pub(in crate::uri) const ALLOWED_HOSTS_SUFFIX: &str = "srvAllowedHostsSuffix";
pub(in crate::uri) const HOST_VALIDATOR: &str = "srvHostValidator";

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
    let suffix = query.take(ALLOWED_HOSTS_SUFFIX).map(|pair| normalized_suffix(pair.text()));
    let allowed_suffix = suffix.transpose()?;
    if query.count(HOST_VALIDATOR) > 0 {
        return Err(UriError::NotInUri { option: HOST_VALIDATOR });
    }
    Ok(SrvOptions {
        host,
        service_name,
        max_hosts,
        allowed_suffix,
        is_checked_elsewhere: false,
        has_auth_source,
    })
}

/// A suffix of one label has the hosts of a whole top-level domain, except in names that have no owner: those of
/// RFC 6761 and RFC 6762, and those that private networks use.
const PRIVATE_SUFFIXES: [&str; 9] =
    ["test", "localhost", "invalid", "example", "local", "internal", "corp", "home", "mail"];

fn normalized_suffix(suffix: &str) -> Result<String, UriError> {
    let suffix = suffix.trim_matches('.').to_lowercase();
    let problem = if suffix.is_empty() {
        SuffixProblem::Empty
    } else if !suffix.contains('.') && !PRIVATE_SUFFIXES.contains(&&*suffix) {
        SuffixProblem::SingleLabel
    } else {
        return Ok(suffix);
    };
    Err(UriError::SrvAllowedHostsSuffix { problem })
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

    /// `srvAllowedHostsSuffix`, in lower case and without dots at its ends: the domain that each server has to be in.
    /// Default: that of the [host](Self::domain).
    #[must_use]
    pub fn allowed_hosts_suffix(&self) -> Option<&str> {
        self.allowed_suffix.as_deref()
    }

    /// Sets [`allowed_hosts_suffix`](Self::allowed_hosts_suffix).
    ///
    /// # Errors
    ///
    /// There is no label in it, or one label that is none of `test`, `localhost`, `invalid`, `example`, `local`,
    /// `internal`, `corp`, `home` and `mail`. Public suffixes, such as `co.uk`, are the caller's to refuse.
    pub fn with_allowed_hosts_suffix(mut self, suffix: &str) -> Result<Self, UriError> {
        self.allowed_suffix = Some(normalized_suffix(suffix)?);
        Ok(self)
    }

    /// Encodes the host and the suffix as the records of name servers have them, by a function such as UTS #46's
    /// `ToASCII`. Otherwise a host with letters outside ASCII and the names of its servers, such as
    /// `db.xn--bcher-kva.example`, have no domain in common.
    ///
    /// # Errors
    ///
    /// Encoded, the suffix is one that [`with_allowed_hosts_suffix`](Self::with_allowed_hosts_suffix) refuses.
    pub fn encode_names(mut self, to_ascii: impl Fn(&str) -> String) -> Result<Self, UriError> {
        self.host = to_ascii(&self.host);
        let suffix = self.allowed_suffix.map(|suffix| normalized_suffix(&to_ascii(&suffix)));
        self.allowed_suffix = suffix.transpose()?;
        Ok(self)
    }

    /// Accepts every server that a record names. The embedder has to check them: a forged answer could lead clients
    /// anywhere.
    #[must_use]
    pub const fn without_host_check(mut self) -> Self {
        self.is_checked_elsewhere = true;
        self
    }

    /// The domain that each server has to be in: [`allowed_hosts_suffix`](Self::allowed_hosts_suffix), or else the host
    /// without its first label, or all of it if it has fewer than three.
    #[must_use]
    pub fn domain(&self) -> &str {
        if let Some(suffix) = &self.allowed_suffix {
            return suffix;
        }
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

    /// Whether a server is in the domain, or checked by the embedder.
    // SV-03
    pub(super) fn covers(&self, server: &ServerAddress) -> bool {
        if self.is_checked_elsewhere {
            return true;
        }
        let below =
            server.host().strip_suffix(self.domain()).and_then(|rest| rest.strip_suffix('.'));
        below.is_some_and(|labels| !labels.is_empty())
    }
}
