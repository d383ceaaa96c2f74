//! Certificates and keys in files.
//!
//! What is wrong with a file is said in our words, never in a parser's, whose text may show what it could not parse: bytes of
//! a key.

use std::fs;

use cenote_core::error::{ConnectionError, Stage};
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file that an option names.
pub(super) struct PemFile<'a> {
    option: &'static str,
    path: &'a str,
    bytes: Vec<u8>,
}

impl<'a> PemFile<'a> {
    pub(super) fn read(option: &'static str, path: &'a str) -> Result<Self, ConnectionError> {
        let mut file = Self { option, path, bytes: Vec::new() };
        // As a connection string is checked: the options may not come from one.
        if path.contains("-----") || path.contains(char::is_control) {
            file.path = "…";
            return Err(file.unusable("it is no path, but what is in a file: write the path"));
        }
        file.bytes = fs::read(path).map_err(|error| file.unusable(&error.to_string()))?;
        // Of editors that write text in UTF-8 with a mark.
        if file.bytes.starts_with(BYTE_ORDER_MARK) {
            file.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(file)
    }

    /// All of them: at least one. A file in DER is one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, ConnectionError> {
        if self.bytes.starts_with(DER) {
            return Ok(vec![self.bytes.clone().into()]);
        }
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        let found = found.map_err(|error| self.unusable(self.damage(&error)))?;
        if found.is_empty() {
            return Err(self.unusable(if self.has("-----BEGIN TRUSTED CERTIFICATE") {
                "it holds a TRUSTED CERTIFICATE, which is OpenSSL's own: `openssl x509` writes a plain one"
            } else {
                "it holds no certificate"
            }));
        }
        Ok(found)
    }

    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, ConnectionError> {
        if self.has("-----BEGIN ENCRYPTED PRIVATE KEY") || self.has("Proc-Type: 4,ENCRYPTED") {
            let reason =
                "its key is encrypted, which is not supported: `openssl pkey` writes a plain one";
            return Err(self.unusable(reason));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.bytes);
        key.map_err(|error| self.unusable(self.damage(&error)))
    }

    /// Why the option cannot be used. The reason holds nothing of what is in the file.
    pub(super) fn unusable(&self, reason: &str) -> ConnectionError {
        let reason = format!("{}: {}: {reason}", self.option, self.path);
        ConnectionError::configuration(Stage::TlsCertificate, &reason)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "there may be more kinds later")]
    fn damage(&self, error: &Error) -> &'static str {
        if self.is_one_line() {
            return "the file is one line: were its line breaks replaced by `\\n` or blanks?";
        }
        match error {
            Error::MissingSectionEnd { .. } => {
                "a section has no end: the line `-----END …-----` is missing"
            }
            Error::IllegalSectionStart { .. } => "a line `-----BEGIN …-----` is damaged",
            Error::SectionTooLarge => "a section is too long",
            Error::NoItemsFound => "it holds no private key, which has to be in the same file",
            _ => "a section is damaged: it is not base64",
        }
    }

    /// Whether a section begins in a line that goes on behind it.
    fn is_one_line(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes);
        let mut begins = text.lines().filter_map(|line| line.split_once("-----BEGIN "));
        begins.any(|(_, rest)| {
            rest.split_once("-----").is_some_and(|(_, rest)| !rest.trim().is_empty())
        })
    }

    fn has(&self, marker: &str) -> bool {
        self.bytes.windows(marker.len()).any(|bytes| bytes == marker.as_bytes())
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// A sequence with two bytes of length, as each certificate is.
const DER: &[u8] = b"\x30\x82";
