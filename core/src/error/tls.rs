use alloc::string::String;
use core::fmt;

use super::Stage;

/// Why TLS ended a connection, other than for the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFailure {
    /// The server ended TLS with an alert.
    Alert(TlsAlert),
    /// What the server sent first is not TLS.
    NotTls,
    /// The two sides have no version, cipher suite or key exchange in common.
    Incompatible,
    /// The server broke the protocol: how, as part of a sentence.
    Violation(String),
}

/// An alert, by its number in the registry of TLS alerts. Shown, it is the name that the
/// specification of TLS gives it, such as `internal_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlsAlert(pub u8);

impl TlsFailure {
    /// The reason that an error at this stage gives.
    pub(super) fn reason(&self, stage: Stage) -> String {
        let ended = if stage == Stage::TlsIo { "TLS handshake" } else { "TLS connection" };
        match self {
            Self::Alert(alert) => format!("the server ended the {ended}: {alert}"),
            Self::NotTls => "the port speaks no TLS".into(),
            Self::Incompatible => {
                "the server and this client have no TLS version or cipher suite in common".into()
            }
            Self::Violation(how) => format!("the server broke the TLS protocol: {how}"),
        }
    }

    /// What the operator of the application can do about it.
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::Alert(alert) => alert.advice(),
            Self::NotTls => "check the port; if the server does not speak TLS, leave tls=true out",
            Self::Incompatible => {
                "the server has to permit TLS 1.2 or 1.3 with AES-GCM or ChaCha20, and its key has to be RSA, ECDSA of \
                 P-256 or P-384, or Ed25519"
            }
            Self::Violation(_) => "check the port, and what lies between",
        }
    }
}

impl TlsAlert {
    fn advice(self) -> &'static str {
        match self.name() {
            // A server with TLS 1.2 sends `handshake_failure` for a certificate that it misses.
            Some("handshake_failure") => {
                "the server has to permit TLS 1.2 or 1.3 with AES-GCM or ChaCha20, and may demand a certificate: \
                 tlsCertificateKeyFile"
            }
            Some("protocol_version" | "insufficient_security") => TlsFailure::Incompatible.advice(),
            Some(
                "no_certificate"
                | "bad_certificate"
                | "unsupported_certificate"
                | "certificate_revoked"
                | "certificate_expired"
                | "certificate_unknown"
                | "unknown_ca"
                | "access_denied"
                | "certificate_required",
            ) => "give a certificate that the server accepts with tlsCertificateKeyFile",
            Some("unrecognized_name") => "the server has to be called by a name that it knows",
            Some(_) | None => "the log of the server, or of a proxy before it, may say more",
        }
    }

    fn name(self) -> Option<&'static str> {
        let found = NAMES.binary_search_by_key(&self.0, |(number, _)| *number);
        found.ok().and_then(|index| NAMES.get(index)).map(|(_, name)| *name)
    }
}

impl fmt::Display for TlsAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "alert {}", self.0),
        }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason(Stage::TlsIo))
    }
}

impl core::error::Error for TlsFailure {}

/// The registry of TLS alerts, in order.
const NAMES: [(u8, &str); 36] = [
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (21, "decryption_failed"),
    (22, "record_overflow"),
    (30, "decompression_failure"),
    (40, "handshake_failure"),
    (41, "no_certificate"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (52, "too_many_cids_requested"),
    (60, "export_restriction"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (100, "no_renegotiation"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (111, "certificate_unobtainable"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (114, "bad_certificate_hash_value"),
    (115, "unknown_psk_identity"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
    (121, "ech_required"),
];

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::{NAMES, TlsAlert, TlsFailure};
    use crate::error::{ConnectionError, Kind, RetryWrites, Stage};

    #[test]
    fn alerts_have_the_names_of_the_registry() {
        assert!(NAMES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(TlsAlert(80).to_string(), "internal_error");
        assert_eq!(TlsAlert(116).to_string(), "certificate_required");
        assert_eq!(TlsAlert(200).to_string(), "alert 200");
    }

    #[test]
    fn the_advice_is_about_what_the_alert_is_about() {
        let advice = |number| {
            let failure = TlsFailure::Alert(TlsAlert(number));
            ConnectionError::tls(Stage::TlsIo, failure).advice().unwrap()
        };
        for of_the_client in [40, 42, 48, 49, 116] {
            assert!(advice(of_the_client).contains("tlsCertificateKeyFile"), "{of_the_client}");
        }
        for other in [10, 70, 80, 112, 200] {
            assert!(!advice(other).contains("tlsCertificateKeyFile"), "{other}");
        }
        for any in 0..=255 {
            assert!(!advice(any).contains("tls=true"), "{any}");
        }
        let no_tls = ConnectionError::tls(Stage::TlsIo, TlsFailure::NotTls);
        assert!(no_tls.advice().unwrap().contains("leave tls=true out"));
    }

    /// The server that refuses a certificate of the client says so while hello is awaited.
    #[test]
    fn what_arrives_instead_of_the_reply_to_hello_belongs_to_the_handshake() {
        let at = |stage| {
            let error = ConnectionError::tls(stage, TlsFailure::Alert(TlsAlert(116)));
            assert_eq!(error.kind(), &Kind::Protocol);
            assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
            error.to_string()
        };
        let of_the_handshake =
            "TLS handshake: the server ended the TLS handshake: certificate_required";
        assert_eq!([at(Stage::TlsIo), at(Stage::Hello)], [of_the_handshake; 2]);
        assert_eq!(
            at(Stage::Authentication),
            "authentication: the server ended the TLS connection: certificate_required"
        );
    }
}
