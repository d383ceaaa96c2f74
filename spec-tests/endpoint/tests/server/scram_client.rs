//! The client's side of SCRAM for these tests, written from RFC 5802. It shares no code with the core's.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sha1,
    Sha256,
}

pub(crate) const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SCRAM-SHA-1",
            Self::Sha256 => "SCRAM-SHA-256",
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => {
                let hmac = Hmac::<Sha1>::new_from_slice(key).expect("any key");
                hmac.chain_update(text).finalize().into_bytes().to_vec()
            }
            Self::Sha256 => {
                let hmac = Hmac::<Sha256>::new_from_slice(key).expect("any key");
                hmac.chain_update(text).finalize().into_bytes().to_vec()
            }
        }
    }

    /// `Hi` of RFC 5802, by its definition and not by a library.
    fn hi(self, secret: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut round = self.hmac(secret, &[salt, &[0, 0, 0, 1]].concat());
        let mut result = round.clone();
        for _ in 1..iterations {
            round = self.hmac(secret, &round);
            result.iter_mut().zip(&round).for_each(|(sum, byte)| *sum ^= byte);
        }
        result
    }
}

pub(crate) fn first(user: &str) -> String {
    format!("n,,n={},r={NONCE}", user.replace('=', "=3D").replace(',', "=2C"))
}

/// Parts of the server's first message.
pub(crate) fn field<'a>(message: &'a str, name: &str) -> &'a str {
    message.split(',').find_map(|field| field.strip_prefix(name)).expect("a field")
}

/// The client's last message, and what the server has to answer.
pub(crate) fn last(kind: Kind, user: &str, secret: &str, server_first: &str) -> (String, String) {
    let secret = match kind {
        Kind::Sha1 => {
            let digest = Md5::digest(format!("{user}:mongo:{secret}").as_bytes());
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        }
        Kind::Sha256 => secret.to_owned(),
    };
    let salt = STANDARD.decode(field(server_first, "s=")).expect("base64");
    let iterations = field(server_first, "i=").parse().expect("a number");
    let salted = kind.hi(secret.as_bytes(), &salt, iterations);
    let client_key = kind.hmac(&salted, b"Client Key");
    let without_proof = format!("c=biws,r={}", field(server_first, "r="));
    let bare = first(user);
    let said = format!("{},{server_first},{without_proof}", &bare["n,,".len()..]);
    let signature = kind.hmac(&kind.hash(&client_key), said.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    let expected = kind.hmac(&kind.hmac(&salted, b"Server Key"), said.as_bytes());
    let last = format!("{without_proof},p={}", STANDARD.encode(proof));
    (last, format!("v={}", STANDARD.encode(expected)))
}
