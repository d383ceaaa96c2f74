use super::{Expected, Secret, UriError, query::Query};

/// Whether and how connections are encrypted. All defaults are the safe side.
// TL-02
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// `tls`, or `ssl`, its other name. See [`enabled`](Self::enabled).
    pub tls: Option<bool>,
    /// `tlsCAFile`: the certificates to trust, a PEM file.
    pub ca_file: Option<String>,
    /// `tlsCertificateKeyFile`: the client's own certificate and key, a PEM file.
    pub certificate_key_file: Option<String>,
    /// `tlsCertificateKeyFilePassword`: opens that key.
    pub certificate_key_file_password: Option<Secret>,
    /// `tlsAllowInvalidCertificates`: whether certificates without a trusted issuer are accepted;
    /// default `false`.
    pub allow_invalid_certificates: Option<bool>,
    /// `tlsAllowInvalidHostnames`: whether certificates for other hosts are accepted; default
    /// `false`.
    pub allow_invalid_hostnames: Option<bool>,
    /// `tlsInsecure`: whether to relax all that can be relaxed; default `false`.
    pub insecure: Option<bool>,
    /// `tlsDisableOCSPEndpointCheck`: whether to leave OCSP responders alone; default `false`.
    pub disable_ocsp_endpoint_check: Option<bool>,
    /// `tlsDisableCertificateRevocationCheck`: whether revoked certificates pass; default `false`.
    pub disable_certificate_revocation_check: Option<bool>,
}

impl TlsOptions {
    /// Whether connections are encrypted: as `tls` says, and without it when any other option of
    /// TLS is set, because none of those makes sense for plain text.
    // TL-01
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.tls.unwrap_or(*self != Self::default())
    }

    // TL-05
    pub(super) fn read(query: &mut Query) -> Result<Self, UriError> {
        refuse_conflicts(query)?;
        let password = query.secret("tlsCertificateKeyFilePassword");
        Ok(Self {
            tls: switch(query)?,
            ca_file: file(query, "tlsCAFile")?,
            certificate_key_file: file(query, "tlsCertificateKeyFile")?,
            certificate_key_file_password: password.map(|pair| pair.value),
            allow_invalid_certificates: query.boolean(ANY_CERTIFICATE),
            allow_invalid_hostnames: query.boolean(ANY_HOSTNAME),
            insecure: query.boolean(INSECURE),
            disable_ocsp_endpoint_check: query.boolean(NO_OCSP),
            disable_certificate_revocation_check: query.boolean(NO_REVOCATION),
        })
    }
}

const INSECURE: &str = "tlsInsecure";
const ANY_CERTIFICATE: &str = "tlsAllowInvalidCertificates";
const ANY_HOSTNAME: &str = "tlsAllowInvalidHostnames";
const NO_OCSP: &str = "tlsDisableOCSPEndpointCheck";
const NO_REVOCATION: &str = "tlsDisableCertificateRevocationCheck";

/// Options of which only one may be present, whatever the values.
const CONFLICTS: [(&str, &str); 7] = [
    (INSECURE, ANY_CERTIFICATE),
    (INSECURE, ANY_HOSTNAME),
    (INSECURE, NO_OCSP),
    (INSECURE, NO_REVOCATION),
    (ANY_CERTIFICATE, NO_OCSP),
    (ANY_CERTIFICATE, NO_REVOCATION),
    (NO_OCSP, NO_REVOCATION),
];

// TL-03
fn refuse_conflicts(query: &Query) -> Result<(), UriError> {
    for (first, second) in CONFLICTS {
        if query.count(first) > 0 && query.count(second) > 0 {
            return Err(UriError::Conflict { first, second });
        }
    }
    Ok(())
}

/// `tls` and `ssl`, as often as they come, have to agree.
// TL-04
fn switch(query: &mut Query) -> Result<Option<bool>, UriError> {
    let mut agreed = None;
    for name in ["tls", "ssl"] {
        for pair in query.take_all(name) {
            let Some(value) = query.boolean_of(name, &pair) else {
                return Err(UriError::Unsafe { option: name, expected: Expected::Boolean });
            };
            if agreed.is_some_and(|agreed| agreed != value) {
                return Err(UriError::TlsDisagrees);
            }
            agreed = Some(value);
        }
    }
    Ok(agreed)
}

/// Without its file, every authority of the system would be trusted, or no certificate shown.
fn file(query: &mut Query, option: &'static str) -> Result<Option<String>, UriError> {
    let is_given = query.count(option) > 0;
    let file = query.text(option);
    let expected = match &file {
        None if is_given => Expected::Text { max_bytes: usize::MAX },
        // Errors show paths, and a key must not be taken for one.
        Some(path) if !is_path(path) => Expected::Path,
        None | Some(_) => return Ok(file),
    };
    Err(UriError::Unsafe { option, expected })
}

/// Whether it may be the path of a file; no path is what stands in a PEM file.
fn is_path(text: &str) -> bool {
    !text.contains("-----") && !text.contains(char::is_control)
}
