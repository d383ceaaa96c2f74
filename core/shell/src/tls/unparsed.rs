//! The key in a certificate that rustls does not parse, as those of X.509 version 1, where any certificate will do: the server
//! has to have that key all the same.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error};

/// Verifies a signature of TLS 1.2 by the key; `error` is why that was not done by the certificate.
pub(super) fn verify(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
    error: Error,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(certificate).ok_or_else(|| error.clone())?;
    let mut parts = Der(Der(&key).next(SEQUENCE).ok_or_else(|| error.clone())?);
    // The bits of the key come after the number of those that are not used, which is none.
    let (Some(algorithm), Some([0, key @ ..])) = (parts.next(SEQUENCE), parts.next(BIT_STRING))
    else {
        return Err(error);
    };
    let of_scheme = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signature.scheme);
    let mut candidates = of_scheme.flat_map(|(_, all)| *all);
    let is_valid = candidates.any(|candidate| {
        *candidate.public_key_alg_id() == *algorithm
            && candidate.verify_signature(key, message, signature.signature()).is_ok()
    });
    if is_valid {
        return Ok(HandshakeSignatureValid::assertion());
    }
    Err(CertificateError::BadSignature.into())
}

/// The field `subjectPublicKeyInfo`; `None` of a certificate that is parsed.
pub(super) fn public_key<'a>(
    certificate: &'a CertificateDer<'_>,
) -> Option<SubjectPublicKeyInfoDer<'a>> {
    if ParsedCertificate::try_from(certificate).is_ok() {
        return None;
    }
    let mut signed = Der(Der(Der(certificate).next(SEQUENCE)?).next(SEQUENCE)?);
    // The version, which is left out in version 1.
    if signed.0.first() == Some(&VERSION) {
        signed.next(VERSION)?;
    }
    // serialNumber, signature, issuer, validity, subject.
    for tag in [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE] {
        signed.next(tag)?;
    }
    let begin = signed.0;
    signed.next(SEQUENCE)?;
    Some(begin[..begin.len() - signed.0.len()].into())
}

/// Elements of DER, one after the other.
struct Der<'a>(&'a [u8]);

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const VERSION: u8 = 0xA0;

impl<'a> Der<'a> {
    /// What the next element contains, which has to have this tag.
    fn next(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&[found, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7F => (usize::from(first), rest),
            // As many bytes of length follow: two are enough for every certificate.
            0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
            0x82 => {
                let (length, rest) = rest.split_first_chunk()?;
                (usize::from(u16::from_be_bytes(*length)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length).filter(|_| found == tag)?;
        self.0 = rest;
        Some(content)
    }
}
