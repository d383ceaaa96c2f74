use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::saslprep::saslprep;

/// The hash function of a SCRAM variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

/// Bytes that are overwritten when they are dropped.
pub(super) type SecretBytes = Zeroizing<Vec<u8>>;

/// What a password, a salt and a number of iterations come to, and all that a conversation needs
/// of them.
#[derive(Clone)]
pub(super) struct Keys {
    hash: Hash,
    client: SecretBytes,
    server: SecretBytes,
}

impl Hash {
    /// The password as PBKDF2 takes it; `None` if SASLprep does not allow it.
    pub(super) fn secret(self, username: &str, password: &str) -> Option<SecretBytes> {
        match self {
            Self::Sha1 => Some(password_digest(username, password)),
            Self::Sha256 => saslprep(password),
        }
    }

    pub(super) fn keys(self, secret: &[u8], salt: &[u8], iterations: u32) -> Keys {
        let mut salted = SecretBytes::new(vec![0; self.length()]);
        match self {
            Self::Sha1 => pbkdf2_hmac::<Sha1>(secret, salt, iterations, &mut salted),
            Self::Sha256 => pbkdf2_hmac::<Sha256>(secret, salt, iterations, &mut salted),
        }
        let client = self.hmac(&salted, b"Client Key");
        let server = self.hmac(&salted, b"Server Key");
        Keys { hash: self, client, server }
    }

    /// In bytes.
    pub(super) const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    fn digest(self, bytes: &[u8]) -> SecretBytes {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec().into(),
            Self::Sha256 => Sha256::digest(bytes).to_vec().into(),
        }
    }

    fn hmac(self, key: &[u8], message: &[u8]) -> SecretBytes {
        match self {
            Self::Sha1 => hmac_sha_1(key, message).finalize().into_bytes().to_vec().into(),
            Self::Sha256 => hmac_sha_256(key, message).finalize().into_bytes().to_vec().into(),
        }
    }

    /// Takes the same time wherever the first difference is.
    fn is_hmac(self, key: &[u8], message: &[u8], claimed: &[u8]) -> bool {
        match self {
            Self::Sha1 => hmac_sha_1(key, message).verify_slice(claimed).is_ok(),
            Self::Sha256 => hmac_sha_256(key, message).verify_slice(claimed).is_ok(),
        }
    }
}

impl Keys {
    /// A proof that only the client's key can make; it does not reveal the key.
    pub(super) fn client_proof(&self, signed: &[u8]) -> SecretBytes {
        let stored = self.hash.digest(&self.client);
        let signature = self.hash.hmac(&stored, signed);
        let proof: Vec<u8> = self.client.iter().zip(&*signature).map(|(a, b)| a ^ b).collect();
        proof.into()
    }

    // AU-37
    pub(super) fn is_server_signature(&self, signed: &[u8], claimed: &[u8]) -> bool {
        self.hash.is_hmac(&self.server, signed, claimed)
    }
}

/// The password digest that MongoDB stored before SCRAM, in hexadecimal digits.
// AU-31
fn password_digest(username: &str, password: &str) -> SecretBytes {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut md5 = Md5::new();
    for part in [username, ":mongo:", password] {
        md5.update(part.as_bytes());
    }
    let digest = Zeroizing::new(<[u8; 16]>::from(md5.finalize()));
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    let mut text = SecretBytes::new(Vec::with_capacity(2 * digest.len()));
    text.extend(digits.map(|digit| DIGITS[usize::from(digit)]));
    text
}

fn hmac_sha_1(key: &[u8], message: &[u8]) -> Hmac<Sha1> {
    let hmac = Hmac::<Sha1>::new_from_slice(key).expect("a key of any length will do");
    hmac.chain_update(message)
}

fn hmac_sha_256(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let hmac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    hmac.chain_update(message)
}
