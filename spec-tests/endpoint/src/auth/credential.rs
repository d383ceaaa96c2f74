//! What a server stores of a password (`StoredKey` and `ServerKey` of RFC 5802).

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The hash function of a SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

/// What a server stores of a password: salt, iteration count and keys. `Debug` shows no keys.
#[derive(Clone)]
pub(super) struct Credential {
    hash: Hash,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Hash {
    /// The password as it goes into PBKDF2: MongoDB's MD5 digest for SCRAM-SHA-1, prepared with
    /// SASLprep for SCRAM-SHA-256. `None` if SASLprep rejects the password.
    // AU-31, AU-32.
    pub(super) fn secret(self, user: &str, password: &str) -> Option<Vec<u8>> {
        match self {
            Self::Sha1 => {
                let digest = Md5::digest(format!("{user}:mongo:{password}"));
                Some(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
            }
            Self::Sha256 => Some(stringprep::saslprep(password).ok()?.as_bytes().to_vec()),
        }
    }

    fn salted(self, secret: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha1 => pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(secret, salt, iterations).to_vec(),
            Self::Sha256 => {
                pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(secret, salt, iterations).to_vec()
            }
        }
    }

    fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn keyed(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => keyed::<Hmac<Sha1>>(key, message),
            Self::Sha256 => keyed::<Hmac<Sha256>>(key, message),
        }
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.chain_update(message).finalize().into_bytes().to_vec()
}

impl Credential {
    /// Derives the stored keys from a [secret](Hash::secret). Takes as long as the iterations do.
    pub(super) fn new(hash: Hash, secret: &[u8], salt: &[u8], iterations: u32) -> Self {
        let salted = hash.salted(secret, salt, iterations);
        let stored_key = hash.of(&hash.keyed(&salted, b"Client Key"));
        let server_key = hash.keyed(&salted, b"Server Key");
        Self { hash, salt: salt.to_vec(), iterations, stored_key, server_key }
    }

    /// The server's signature of the messages so far, which proves that it has the credential.
    pub(super) fn signature(&self, said: &str) -> Vec<u8> {
        self.hash.keyed(&self.server_key, said.as_bytes())
    }

    /// Whether this is the client's proof for the messages so far.
    pub(super) fn is_proof(&self, proof: &[u8], said: &str) -> bool {
        let signature = self.hash.keyed(&self.stored_key, said.as_bytes());
        if proof.len() != signature.len() {
            return false;
        }
        let client_key: Vec<u8> = proof.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        same(&self.hash.of(&client_key), &self.stored_key)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hash, iterations, .. } = self;
        write!(f, "Credential({hash:?}, {iterations} iterations, …)")
    }
}

/// Compares in constant time.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && difference == 0
}
