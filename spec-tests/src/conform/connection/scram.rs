//! The server's side of SCRAM, which is the endpoint's.

use std::sync::{Mutex, PoisonError};

use cenote_endpoint::scram::{ClientFirst, Credential, Exchange, Hash};
use serde_json::{Map, Value};

use super::script::{self, ClientsMessage};

/// A server of one password.
#[derive(Debug)]
pub(super) struct Scram {
    password: String,
    exchange: Option<Exchange>,
}

/// What the server says of its own: nothing here is secret.
const SALT: &[u8] = b"0123456789abcdef";
const NONCE: &str = "server";
const ITERATIONS: u32 = 4096;

impl Scram {
    pub(super) fn new(password: &str) -> Self {
        Self { password: password.to_owned(), exchange: None }
    }

    /// The payload that answers the one that was heard.
    ///
    /// # Errors
    ///
    /// The client's message is none, or proves nothing.
    pub(super) fn answer(
        &mut self,
        how: &script::Scram,
        heard: &Map<String, Value>,
    ) -> Result<String, String> {
        let within = heard.get("speculativeAuthenticate").and_then(Value::as_object);
        let heard = within.unwrap_or(heard);
        let payload = heard.get("payload").and_then(|payload| payload["$text"].as_str());
        let payload = payload.ok_or("there is no payload to answer")?;
        let fault = how.lie.map(script::Lie::fault);
        match how.answers {
            ClientsMessage::First => {
                let hash = match heard.get("mechanism").and_then(Value::as_str) {
                    Some("SCRAM-SHA-1") => Hash::Sha1,
                    Some("SCRAM-SHA-256") => Hash::Sha256,
                    other => return Err(format!("{other:?} is no SCRAM")),
                };
                let first = ClientFirst::read(payload.as_bytes());
                let first = first.map_err(|_| format!("malformed: {payload}"))?;
                let secret = hash.secret(first.user(), &self.password);
                let secret = secret.ok_or("the server's password is none")?;
                let iterations = how.iterations.unwrap_or(ITERATIONS);
                let credential = credential(hash, &secret, iterations);
                let (exchange, said) = Exchange::begin(credential, &first, NONCE, fault);
                self.exchange = Some(exchange);
                Ok(said)
            }
            ClientsMessage::Proof => {
                let exchange = self.exchange.as_ref().ok_or("no conversation has begun")?;
                let said = exchange.finish(payload.as_bytes(), fault);
                said.map_err(|_| format!("no proof of the password: {payload}"))
            }
        }
    }
}

/// What a server keeps of a password. It takes as long as it takes the client to compute, which some
/// files look at; so it is computed once, as by a server.
fn credential(hash: Hash, secret: &[u8], iterations: u32) -> Credential {
    type Known = ((Hash, Vec<u8>, u32), Credential);
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let key = (hash, secret.to_vec(), iterations);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, credential)) = known().iter().find(|(its, _)| *its == key) {
        return credential.clone();
    }
    let credential = Credential::new(hash, secret, SALT, iterations);
    known().push((key, credential.clone()));
    credential
}
