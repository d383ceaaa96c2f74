//! The server's side of SCRAM (RFC 5802, RFC 7677), with MongoDB's passwords.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::endpoint::entropy::Entropy;
use crate::endpoint::fault::ScramFault;

/// The two kinds of SCRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

/// What a server keeps of a password.
#[derive(Clone)]
pub(super) struct Credential {
    hash: Hash,
    salt: Vec<u8>,
    iterations: u32,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

/// A client's first message.
#[derive(Debug)]
pub(super) struct ClientFirst<'a> {
    /// What comes before the message proper: no channel binding (AU-34).
    header: &'a str,
    pub(super) user: String,
    nonce: &'a str,
    bare: &'a str,
}

/// A conversation in which the client has to prove itself.
#[derive(Debug)]
pub(super) struct Exchange {
    credential: Credential,
    header: String,
    /// The client's and the server's.
    nonce: String,
    /// What both have said so far.
    said: String,
}

/// A message that is malformed, or a proof of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad;

impl Hash {
    /// The password as it goes into PBKDF2: digested as MongoDB did before SCRAM (AU-31), or
    /// prepared (AU-32); `None` if it cannot be.
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
    pub(super) fn new(hash: Hash, secret: &[u8], salt: &[u8], iterations: u32) -> Self {
        let salted = hash.salted(secret, salt, iterations);
        Self {
            hash,
            salt: salt.to_vec(),
            iterations,
            stored_key: hash.of(&hash.keyed(&salted, b"Client Key")),
            server_key: hash.keyed(&salted, b"Server Key"),
        }
    }

    /// Whether only somebody with the password can have made this of what was said.
    fn is_proof(&self, proof: &[u8], said: &str) -> bool {
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

impl<'a> ClientFirst<'a> {
    /// `n,[a=identity],n=user,r=nonce`, and extensions that are none of ours.
    pub(super) fn read(message: &'a [u8]) -> Result<Self, Bad> {
        let message = std::str::from_utf8(message).map_err(|_| Bad)?;
        let mut parts = message.splitn(3, ',');
        let (binding, identity) = (parts.next().ok_or(Bad)?, parts.next().ok_or(Bad)?);
        let bare = parts.next().ok_or(Bad)?;
        if !matches!(binding, "n" | "y") {
            return Err(Bad);
        }
        let header = &message[..message.len() - bare.len()];
        let mut fields = bare.split(',');
        let user = fields.next().and_then(|field| field.strip_prefix("n=")).ok_or(Bad)?;
        let nonce = fields.next().and_then(|field| field.strip_prefix("r=")).ok_or(Bad)?;
        let is_own = identity.is_empty() || identity.strip_prefix("a=") == Some(user);
        if nonce.is_empty() || user.is_empty() || !is_own {
            return Err(Bad);
        }
        Ok(Self { header, user: unescape(user)?, nonce, bare })
    }
}

impl Exchange {
    /// What the server says first, and what it expects then.
    pub(super) fn begin(
        credential: Credential,
        first: &ClientFirst<'_>,
        nonce: &str,
        fault: Option<ScramFault>,
    ) -> (Self, String) {
        let client = first.nonce;
        let nonce = match fault {
            Some(ScramFault::TruncatedNonce) => {
                let half = client.len() / 2;
                let end = (0..=half).rev().find(|end| client.is_char_boundary(*end));
                client[..end.unwrap_or_default()].to_owned()
            }
            Some(ScramFault::ForeignNonce) => format!("{nonce}{client}"),
            Some(
                ScramFault::WrongSignature
                | ScramFault::Iterations(_)
                | ScramFault::Endless
                | ScramFault::NoSignature
                | ScramFault::Error,
            )
            | None => format!("{client}{nonce}"),
        };
        let iterations = match fault {
            Some(ScramFault::Iterations(iterations)) => iterations,
            Some(_) | None => credential.iterations,
        };
        let salt = STANDARD.encode(&credential.salt);
        let server_first = format!("r={nonce},s={salt},i={iterations}");
        let said = format!("{},{server_first}", first.bare);
        let exchange = Self { credential, header: first.header.to_owned(), nonce, said };
        (exchange, server_first)
    }

    /// `c=header,r=nonce,p=proof` in, the server's own proof out.
    pub(super) fn finish(&self, message: &[u8], fault: Option<ScramFault>) -> Result<String, Bad> {
        let message = std::str::from_utf8(message).map_err(|_| Bad)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(Bad)?;
        let proof = STANDARD.decode(proof).map_err(|_| Bad)?;
        let mut fields = without_proof.split(',');
        let header = fields.next().and_then(|field| field.strip_prefix("c=")).ok_or(Bad)?;
        let nonce = fields.next().and_then(|field| field.strip_prefix("r=")).ok_or(Bad)?;
        let said = format!("{},{without_proof}", self.said);
        let fits = header == STANDARD.encode(&self.header) && nonce == self.nonce;
        if !fits || !self.credential.is_proof(&proof, &said) {
            return Err(Bad);
        }
        let Credential { hash, server_key, .. } = &self.credential;
        let mut signature = hash.keyed(server_key, said.as_bytes());
        Ok(match fault {
            Some(ScramFault::Error) => "e=other-error".to_owned(),
            Some(ScramFault::NoSignature) => String::new(),
            Some(ScramFault::WrongSignature) => {
                signature.iter_mut().for_each(|byte| *byte ^= 0x55);
                format!("v={}", STANDARD.encode(signature))
            }
            Some(
                ScramFault::Iterations(_)
                | ScramFault::TruncatedNonce
                | ScramFault::ForeignNonce
                | ScramFault::Endless,
            )
            | None => format!("v={}", STANDARD.encode(signature)),
        })
    }
}

/// The server's part of a nonce: printable, without a comma.
pub(super) fn nonce(entropy: &mut Entropy) -> String {
    STANDARD.encode(entropy.bytes::<24>())
}

/// Takes the same time wherever the first difference is.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && difference == 0
}

/// `=2C` stands for a comma and `=3D` for itself (AU-37).
fn unescape(name: &str) -> Result<String, Bad> {
    let mut parts = name.split('=');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (None, Some(rest)) => ('=', rest),
            (None, None) => return Err(Bad),
        };
        plain.push(character);
        plain.push_str(rest);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::{Bad, ClientFirst, Credential, Exchange, Hash, STANDARD, unescape};
    use base64::Engine as _;

    /// Plays a conversation that somebody else has written down.
    fn plays(hash: Hash, secret: &[u8], messages: [&str; 4]) {
        let [client_first, server_first, client_final, server_final] = messages;
        let field = |name: &str| {
            let mut fields = server_first.split(',');
            fields.find_map(|field| field.strip_prefix(name)).unwrap()
        };
        let salt = STANDARD.decode(field("s=")).unwrap();
        let credential = Credential::new(hash, secret, &salt, field("i=").parse().unwrap());
        let first = ClientFirst::read(client_first.as_bytes()).unwrap();
        let nonce = field("r=").strip_prefix(first.nonce).unwrap();
        let (exchange, said) = Exchange::begin(credential, &first, nonce, None);
        assert_eq!(said, server_first);
        assert_eq!(exchange.finish(client_final.as_bytes(), None).as_deref(), Ok(server_final));
        let wrong = client_final.replace(",p=", ",p=AAAA");
        assert_eq!(exchange.finish(wrong.as_bytes(), None), Err(Bad));
    }

    #[test]
    fn the_example_of_rfc_5802() {
        plays(
            Hash::Sha1,
            b"pencil",
            [
                "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,\
                 p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ],
        );
    }

    #[test]
    fn the_example_of_rfc_7677() {
        plays(
            Hash::Sha256,
            &Hash::Sha256.secret("user", "pencil").unwrap(),
            [
                "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ],
        );
    }

    /// AU-39: with MongoDB's digest of the password.
    #[test]
    fn the_example_of_mongodb() {
        plays(
            Hash::Sha1,
            &Hash::Sha1.secret("user", "pencil").unwrap(),
            [
                "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,\
                 s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,\
                 p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
                "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
            ],
        );
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        for message in [
            "",
            "n",
            "n,,",
            "n,,n=user",
            "n,,r=x,n=user",
            "p=tls,,n=user,r=x",
            "n,,n=user,r=",
            "n,a=other,n=user,r=x",
            "n,,m=x,n=user,r=x",
            "n,,n=a=2X,r=x",
            "n,,n=,r=x",
        ] {
            assert!(ClientFirst::read(message.as_bytes()).is_err(), "{message}");
        }
        assert!(ClientFirst::read(b"y,a=user,n=user,r=x,ext=1").is_ok());
        assert!(ClientFirst::read(&[0xFF]).is_err());
    }

    #[test]
    fn names_are_unescaped() {
        assert_eq!(unescape("a=2Cb=3D2C").as_deref(), Ok("a,b=2C"));
        assert_eq!(unescape("a=b"), Err(Bad));
    }
}
