//! Why TLS failed, in words.

use std::fmt;
use std::io;

use cenote_core::error::{ConnectionError, Stage, TlsAlert, TlsFailure};
use rustls::{CertificateError, Error, InvalidMessage, PeerIncompatible};

use crate::connection::shortage::opening_failed;

/// Why a handshake failed: the server's certificate, another decision of TLS such as an alert, a
/// shortage in this process, or a network error. A decision of TLS has to come as an [`io::Error`]
/// with the error of rustls inside.
#[must_use]
pub fn handshake_failed(error: io::Error) -> ConnectionError {
    match tls_error(&error) {
        Some(error) => decided(Stage::TlsIo, error),
        None => opening_failed(Stage::TlsIo, error),
    }
}

/// The error of rustls inside an I/O error, if TLS and not the network failed.
pub(crate) fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// The error of a connection that TLS ended at this stage.
pub(crate) fn decided(stage: Stage, error: &Error) -> ConnectionError {
    if is_about_the_certificate(error) {
        let reason = CertificateRefused(error).to_string();
        return ConnectionError::certificate(reason).with_source(error.clone());
    }
    if matches!(error, Error::FailedToGetCurrentTime | Error::FailedToGetRandomBytes) {
        return ConnectionError::local(stage, &error.to_string());
    }
    ConnectionError::tls(stage, failure(error))
}

fn is_about_the_certificate(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(_)
            | Error::InvalidCertRevocationList(_)
            | Error::NoCertificatesPresented
            | Error::UnsupportedNameType
    )
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of the errors of rustls only some matter")]
fn failure(error: &Error) -> TlsFailure {
    match error {
        Error::AlertReceived(alert) => TlsFailure::Alert(TlsAlert(u8::from(*alert))),
        // The first byte and the version are those of every record, also of an encrypted one.
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => TlsFailure::NotTls,
        Error::PeerIncompatible(
            PeerIncompatible::NoCipherSuitesInCommon
            | PeerIncompatible::NoKxGroupsInCommon
            | PeerIncompatible::NoSignatureSchemesInCommon
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => TlsFailure::Incompatible,
        error => TlsFailure::Violation(error.to_string()),
    }
}

/// Why the server's certificate was refused, in words.
struct CertificateRefused<'a>(&'a Error);

impl fmt::Display for CertificateRefused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Error::InvalidCertificate(error) = &self.0 {
            return explain(error, f);
        }
        if *self.0 == Error::NoCertificatesPresented {
            return f.write_str("the server sent no certificate");
        }
        self.0.fmt(f)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of the errors of rustls only some matter")]
fn explain(error: &CertificateError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("the server's certificate ")?;
    match error {
        CertificateError::Expired => f.write_str("has expired"),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = Days(time.as_secs().saturating_sub(not_after.as_secs()));
            write!(f, "has expired, {days} ago")
        }
        CertificateError::NotValidYet => f.write_str("is not valid yet"),
        CertificateError::NotValidYetContext { time, not_before } => {
            let days = Days(not_before.as_secs().saturating_sub(time.as_secs()));
            write!(f, "is not valid yet, only in {days}")
        }
        CertificateError::NotValidForName => f.write_str("is not valid for the name of this host"),
        CertificateError::NotValidForNameContext { expected, presented } => {
            write!(f, "is not valid for name `{}`, ", expected.to_str())?;
            match presented.as_slice() {
                [] => f.write_str("and names no host (subjectAltName)"),
                names => {
                    let names: Vec<_> = names.iter().map(|name| plain_name(name)).collect();
                    write!(f, "only for {}", names.join(", "))
                }
            }
        }
        CertificateError::UnknownIssuer => f.write_str("is not of an authority that is trusted"),
        CertificateError::BadSignature => f.write_str(
            "has a signature that is not its issuer's, although a trusted authority has the name of \
             the issuer; or the server does not have the key of the certificate, or a key is RSA of less than 2048 bits",
        ),
        CertificateError::Revoked => f.write_str("was revoked"),
        CertificateError::BadEncoding => f.write_str("is malformed"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            f.write_str("is not for servers (extendedKeyUsage)")
        }
        CertificateError::UnhandledCriticalExtension => {
            f.write_str("has a critical extension that is not supported")
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            f.write_str("has a signature of an algorithm that is not supported")
        }
        error if is_other(error, "UnsupportedCertVersion") => f.write_str(
            "is of X.509 version 1: it takes version 3, or tlsInsecure",
        ),
        error if is_authority(error) => f.write_str(
            "is that of an authority itself (CA:TRUE), and tlsCAFile does not list exactly that one",
        ),
        other => write!(f, "cannot be verified ({other})"),
    }
}

/// Whether the server's certificate was refused as that of an authority.
pub(super) fn is_authority(error: &CertificateError) -> bool {
    is_other(error, "CaUsedAsEndEntity")
}

/// Errors of the verifier have no text but their names.
fn is_other(error: &CertificateError, name: &str) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string() == name)
}

/// A number of seconds, in days.
struct Days(u64);

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 / (24 * 60 * 60) {
            0 => f.write_str("less than a day"),
            1 => f.write_str("1 day"),
            days => write!(f, "{days} days"),
        }
    }
}

/// A name of a certificate, without how Rust shows its kind: `DnsName("a")`, `IpAddress(10.0.0.1)`.
fn plain_name(shown: &str) -> &str {
    let quoted = shown.strip_prefix("DnsName(\"").and_then(|rest| rest.strip_suffix("\")"));
    let address = || shown.strip_prefix("IpAddress(").and_then(|rest| rest.strip_suffix(')'));
    quoted.or_else(address).unwrap_or(shown)
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::sync::Arc;
    use std::time::Duration;

    use cenote_core::error::{ConnectionError, Kind, Stage};
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{
        AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible,
        PeerMisbehaved,
    };

    use super::handshake_failed;

    fn failed(error: Error) -> ConnectionError {
        handshake_failed(io::Error::new(ErrorKind::InvalidData, error))
    }

    #[test]
    fn only_certificates_are_certificate_errors() {
        let certificate = failed(CertificateError::UnknownIssuer.into());
        assert_eq!(certificate.stage(), Stage::TlsCertificate);
        assert_eq!(failed(Error::NoCertificatesPresented).stage(), Stage::TlsCertificate);
        for error in [
            Error::AlertReceived(AlertDescription::InternalError),
            Error::InvalidMessage(InvalidMessage::InvalidContentType),
            Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
            Error::PeerMisbehaved(PeerMisbehaved::TooMuchEarlyDataReceived),
            Error::DecryptError,
        ] {
            let error = failed(error);
            assert_eq!((error.stage(), error.kind()), (Stage::TlsIo, &Kind::Protocol), "{error}");
            assert!(!error.is_overload() && !error.is_retryable(), "{error}");
        }
        let ended = handshake_failed(ErrorKind::ConnectionReset.into());
        assert_eq!((ended.stage(), ended.kind()), (Stage::TlsIo, &Kind::Network));
        // The text of another library is not an error of TLS.
        let invalid = handshake_failed(io::Error::new(ErrorKind::InvalidData, "not UTF-8"));
        assert_eq!((invalid.stage(), invalid.kind()), (Stage::TlsIo, &Kind::Network));
    }

    #[test]
    fn reasons_are_words() {
        let reason = |error| failed(error).reason().to_owned();
        assert_eq!(
            reason(Error::AlertReceived(AlertDescription::InternalError)),
            "the server ended the TLS handshake: internal_error"
        );
        assert_eq!(
            reason(Error::AlertReceived(AlertDescription::UnknownCA)),
            "the server ended the TLS handshake: unknown_ca"
        );
        let garbage = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(reason(garbage), "the port speaks no TLS");
        let at = |days: u64| UnixTime::since_unix_epoch(Duration::from_secs(days * 86_400));
        let (time, not_after, not_before) = (at(100), at(98), at(101));
        for (error, text) in [
            (CertificateError::UnknownIssuer, "is not of an authority that is trusted"),
            (CertificateError::ExpiredContext { time, not_after }, "has expired, 2 days ago"),
            (
                CertificateError::NotValidYetContext { time, not_before },
                "is not valid yet, only in 1 day",
            ),
            (
                CertificateError::NotValidForNameContext {
                    expected: ServerName::try_from("db").unwrap(),
                    presented: vec!["DnsName(\"a\")".into(), "IpAddress(10.0.0.1)".into()],
                },
                "is not valid for name `db`, only for a, 10.0.0.1",
            ),
            (
                CertificateError::Other(OtherError(Arc::new(io::Error::other(
                    "CaUsedAsEndEntity",
                )))),
                "is that of an authority itself (CA:TRUE), and tlsCAFile does not list exactly that one",
            ),
        ] {
            assert_eq!(reason(error.into()), format!("the server's certificate {text}"));
        }
    }
}
