//! The server's side of SCRAM (RFC 5802, RFC 7677), with MongoDB's passwords.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use thiserror::Error;

use super::credential::Credential;
use crate::entropy::Entropy;
use crate::fault::ScramFault;

/// A client's first message.
pub(super) struct ClientFirst<'a> {
    /// The GS2 header: no channel binding.
    header: &'a str,
    pub(super) user: String,
    nonce: &'a str,
    bare: &'a str,
}

/// A SCRAM conversation after the server's first message. `Debug` shows no nonces and no messages.
pub(super) struct Exchange {
    credential: Credential,
    header: String,
    /// The client's and the server's.
    nonce: String,
    /// The messages of both sides so far.
    said: String,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("credential", &self.credential).finish_non_exhaustive()
    }
}

/// A message is malformed, or its proof is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed SCRAM message or wrong proof")]
pub(super) struct InvalidMessage;

impl<'a> ClientFirst<'a> {
    /// Parses `n,[a=identity],n=user,r=nonce`. Extensions are ignored.
    ///
    /// # Errors
    ///
    /// When the message is malformed.
    pub(super) fn read(message: &'a [u8]) -> Result<Self, InvalidMessage> {
        let message = std::str::from_utf8(message).map_err(|_| InvalidMessage)?;
        let mut parts = message.splitn(3, ',');
        let (binding, identity) =
            (parts.next().ok_or(InvalidMessage)?, parts.next().ok_or(InvalidMessage)?);
        let bare = parts.next().ok_or(InvalidMessage)?;
        if !matches!(binding, "n" | "y") {
            return Err(InvalidMessage);
        }
        let header = &message[..message.len() - bare.len()];
        let mut fields = bare.split(',');
        let user =
            fields.next().and_then(|field| field.strip_prefix("n=")).ok_or(InvalidMessage)?;
        let nonce =
            fields.next().and_then(|field| field.strip_prefix("r=")).ok_or(InvalidMessage)?;
        let is_own = identity.is_empty() || identity.strip_prefix("a=") == Some(user);
        if nonce.is_empty() || user.is_empty() || !is_own {
            return Err(InvalidMessage);
        }
        Ok(Self { header, user: unescape(user)?, nonce, bare })
    }
}

impl Exchange {
    /// Starts a conversation, and returns the server's first message with it. `nonce` is the server's
    /// part.
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
            Some(_) | None => format!("{client}{nonce}"),
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

    /// Checks the client's final message `c=header,r=nonce,p=proof`, and returns the server's.
    ///
    /// # Errors
    ///
    /// When the message is malformed or the proof is wrong.
    pub(super) fn finish(
        &self,
        message: &[u8],
        fault: Option<ScramFault>,
    ) -> Result<String, InvalidMessage> {
        let message = std::str::from_utf8(message).map_err(|_| InvalidMessage)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(InvalidMessage)?;
        let proof = STANDARD.decode(proof).map_err(|_| InvalidMessage)?;
        let mut fields = without_proof.split(',');
        let header =
            fields.next().and_then(|field| field.strip_prefix("c=")).ok_or(InvalidMessage)?;
        let nonce =
            fields.next().and_then(|field| field.strip_prefix("r=")).ok_or(InvalidMessage)?;
        let said = format!("{},{without_proof}", self.said);
        let fits = header == STANDARD.encode(&self.header) && nonce == self.nonce;
        if !fits || !self.credential.is_proof(&proof, &said) {
            return Err(InvalidMessage);
        }
        let mut signature = self.credential.signature(&said);
        Ok(match fault {
            Some(ScramFault::Error) => "e=other-error".to_owned(),
            Some(ScramFault::NoSignature) => String::new(),
            Some(ScramFault::WrongSignature) => {
                signature.iter_mut().for_each(|byte| *byte ^= 0x55);
                format!("v={}", STANDARD.encode(signature))
            }
            Some(_) | None => format!("v={}", STANDARD.encode(signature)),
        })
    }
}

/// The server's part of a nonce: printable, without a comma.
pub(super) fn nonce(entropy: &mut Entropy) -> String {
    STANDARD.encode(entropy.bytes::<24>())
}

/// `=2C` stands for a comma and `=3D` for itself.
fn unescape(name: &str) -> Result<String, InvalidMessage> {
    let mut parts = name.split('=');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (None, Some(rest)) => ('=', rest),
            (None, None) => return Err(InvalidMessage),
        };
        plain.push(character);
        plain.push_str(rest);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::super::credential::Hash;
    use super::{ClientFirst, Credential, Exchange, InvalidMessage, STANDARD, unescape};

    /// Plays a conversation that a specification prints.
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
        assert_eq!(exchange.finish(wrong.as_bytes(), None), Err(InvalidMessage));
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

    // AU-39: with MongoDB's digest of the password.
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
        assert_eq!(unescape("a=b"), Err(InvalidMessage));
    }
}
