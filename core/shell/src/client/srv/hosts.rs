//! Which hosts the SRV records of `mongodb+srv://` may name, where the builder or the connection string says so.

use std::fmt;
use std::sync::Arc;

use cenote_core::uri::srv::{LookupError, SrvError, SrvOptions, SrvRecord};
use cenote_core::uri::{ConnectionString, SuffixProblem, UriError};

use crate::builder::BuildError;
use crate::client::{BuiltClient, ClientBuildError, ClientBuilder};
use crate::runtime::contain;

/// What a builder says of the hosts of SRV records.
#[derive(Clone, Default)]
pub(in crate::client) struct HostRules {
    suffix: Option<String>,
    validator: Option<Arc<HostValidator>>,
    /// They are in the options of the connection string.
    is_applied: bool,
}

/// Whether a record may name this host.
type HostValidator = dyn Fn(&str) -> bool + Send + Sync;

impl<C: BuiltClient> ClientBuilder<C> {
    /// Accepts servers below this domain (feature `srv`), instead of those below the domain of the connection string's
    /// host: `srvAllowedHostsSuffix`, which it overrides. Dots at both ends and upper case make no difference.
    ///
    /// [`resolve`](Self::resolve) refuses a public suffix such as `co.uk`, and a single label, unless it is `test`,
    /// `localhost`, `invalid`, `example`, `local`, `internal`, `corp`, `home` or `mail`. So does it refuse another
    /// connection string than `mongodb+srv://`, as [`build`](Self::build) does, which also fails if this comes after
    /// `resolve`.
    ///
    /// ```no_run
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Client::builder("mongodb+srv://cluster.example.com/")?
    ///     .srv_allowed_hosts_suffix("databases.example.net");
    /// let client = builder.resolve().await?.build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn srv_allowed_hosts_suffix(mut self, suffix: impl Into<String>) -> Self {
        let rules = &mut self.0.srv.rules;
        rules.suffix = Some(suffix.into());
        rules.is_applied = false;
        self
    }

    /// Accepts the servers for which `validator` returns `true` (feature `srv`), instead of those below the domain of the
    /// connection string's host. It replaces every other check; together with `srvAllowedHostsSuffix`, and for another
    /// connection string than `mongodb+srv://`, it is an error of [`resolve`](Self::resolve); after that, one of
    /// [`build`](Self::build).
    ///
    /// It is called for each SRV record, with the host in lower case and without a dot at its end; also when the records
    /// are looked up again, by a task or thread of the client and never under a lock. It must not block. A host that it
    /// rejects is an error of [`resolve`](Self::resolve), and so is a panic in it; later such a host is left out, and the
    /// reason is logged.
    ///
    /// ```no_run
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Client::builder("mongodb+srv://cluster.example.com/")?
    ///     .srv_host_validator(|host| host.starts_with("db") && host.ends_with(".example.net"));
    /// let client = builder.resolve().await?.build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn srv_host_validator(
        mut self,
        validator: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let rules = &mut self.0.srv.rules;
        rules.validator = Some(Arc::new(validator));
        rules.is_applied = false;
        self
    }
}

impl HostRules {
    /// Fails where the connection string has no SRV records to which they could apply, or where the records were
    /// looked up without them.
    pub(in crate::client) fn check(&self, uri: &ConnectionString) -> Result<(), ClientBuildError> {
        let option = match self {
            Self { validator: Some(_), .. } => "srvHostValidator",
            Self { suffix: Some(_), .. } => "srvAllowedHostsSuffix",
            Self { suffix: None, validator: None, .. } => return Ok(()),
        };
        if uri.srv.is_none() {
            return Err(BuildError::from(UriError::SrvOnly { option }).into());
        }
        let is_late = !self.is_applied && !uri.hosts.is_empty();
        if is_late { Err(ClientBuildError::LateHostRule { option }) } else { Ok(()) }
    }

    /// The options with these rules in force.
    pub(super) fn apply(&mut self, mut srv: SrvOptions) -> Result<SrvOptions, UriError> {
        self.is_applied = true;
        if let Some(suffix) = &self.suffix {
            srv = srv.with_allowed_hosts_suffix(suffix)?;
        }
        srv = srv.encode_names(to_ascii)?;
        if srv.allowed_hosts_suffix().is_some_and(is_public_suffix) {
            return Err(UriError::SrvAllowedHostsSuffix { problem: SuffixProblem::Public });
        }
        match (&self.validator, srv.allowed_hosts_suffix()) {
            (None, _) => Ok(srv),
            (Some(_), None) => Ok(srv.without_host_check()),
            (Some(_), Some(_)) => {
                let (first, second) = ("srvAllowedHostsSuffix", "srvHostValidator");
                Err(UriError::Conflict { first, second })
            }
        }
    }

    /// Has the validator look at a record.
    fn validate(&self, srv: &SrvOptions, record: &SrvRecord) -> Result<(), SrvError> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let server = srv.server(record)?;
        let (host, target) = (srv.host().to_owned(), record.target.clone());
        match contain(|| validator(server.host())) {
            Some(true) => Ok(()),
            Some(false) => Err(SrvError::Rejected { host, target }),
            None => Err(SrvError::ValidatorPanicked { host, target }),
        }
    }

    /// Fails with the first record that the validator rejects.
    pub(super) fn validate_all(
        &self,
        srv: &SrvOptions,
        records: &[SrvRecord],
    ) -> Result<(), SrvError> {
        if records.len() > SrvOptions::RECORDS_MAX {
            return Ok(()); // All are refused anyway.
        }
        records.iter().try_for_each(|record| self.validate(srv, record))
    }

    /// The records that the validator accepts.
    pub(super) fn accepted(
        &self,
        srv: &SrvOptions,
        mut records: Vec<SrvRecord>,
        mut report: impl FnMut(SrvError),
    ) -> Result<Vec<SrvRecord>, LookupError> {
        if records.len() > SrvOptions::RECORDS_MAX {
            return Ok(records); // All are refused anyway.
        }
        let were_there = !records.is_empty();
        records.retain(|record| self.validate(srv, record).map_err(&mut report).is_ok());
        if were_there && records.is_empty() { Err(LookupError::NoneAccepted) } else { Ok(records) }
    }
}

/// The validator is a function, which cannot be shown.
impl fmt::Debug for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRules").field("suffix", &self.suffix).finish_non_exhaustive()
    }
}

/// As name servers have the name. One that cannot be encoded stays as it is: no name server knows it.
fn to_ascii(name: &str) -> String {
    idna::domain_to_ascii(name).unwrap_or_else(|_| name.to_owned())
}

/// A single label is one, too, but those that have got here have no owner.
fn is_public_suffix(name: &str) -> bool {
    name.contains('.') && psl::suffix_str(name) == Some(name)
}

#[cfg(test)]
mod tests {
    use cenote_core::uri::ConnectionString;

    use super::{ClientBuildError, HostRules, is_public_suffix};

    #[test]
    fn a_rule_that_comes_after_the_records_is_refused() {
        let mut uri = ConnectionString::parse("mongodb+srv://cluster.example.com/").unwrap();
        let mut rules =
            HostRules { suffix: Some("example.net".to_owned()), ..HostRules::default() };
        rules.check(&uri).unwrap();
        uri.hosts.push("db.example.com:27017".parse().unwrap());
        assert!(matches!(rules.check(&uri), Err(ClientBuildError::LateHostRule { .. })));
        rules.apply(uri.srv.clone().unwrap()).unwrap();
        rules.check(&uri).unwrap();
    }

    #[test]
    fn which_suffixes_are_public() {
        for (name, is_public) in [
            ("com.ac", true),
            ("foo.com.ac", false),
            ("abc.nom.br", true),
            ("x.abc.nom.br", false),
            ("b.ck", true),
            ("www.ck", false),
            ("foo.nosuchtld", false),
            ("xn--55qx5d.cn", true),
            ("example.xn--p1ai", false),
            ("github.io", true),
            ("my_domain.net", false),
            ("localhost", false),
        ] {
            assert_eq!(is_public_suffix(name), is_public, "{name}");
        }
    }
}
