//! SCRAM, RFC 5802 and RFC 7677, as used by MongoDB.

mod cache;
mod derivation;
mod hash;
mod message;
mod saslprep;

use thiserror::Error;
use zeroize::Zeroizing;

pub use self::{
    cache::ScramCache,
    derivation::{DerivedKeys, KeyDerivation},
};
use self::{
    hash::{Hash, Keys, SecretBytes},
    message::{ServerFinal, ServerFirst, escaped},
};
use super::{
    Nonce,
    sasl::{Ended, SaslReply},
};
use crate::uri::{Mechanism, Secret};

/// How many iterations of PBKDF2 a server must ask for at least: fewer would let an eavesdropper
/// guess passwords too fast.
// AU-33
pub const MIN_ITERATIONS: u32 = 4096;

/// How many iterations a server may ask for, unless
/// [`max_scram_iterations`](super::EstablishOptions::max_scram_iterations) says otherwise. Servers
/// ask for 10,000 or 15,000; this is some seventy times as much, and still ends within seconds.
pub const MAX_ITERATIONS: u32 = 1_000_000;

/// Why a SCRAM conversation cannot go on. No message holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ScramError {
    #[error("the password has characters that SASLprep prohibits")]
    Password,
    #[error("the server's {what} message is malformed: {problem}")]
    Malformed { what: &'static str, problem: &'static str },
    #[error("the server asks for an extension of SCRAM that is not supported")]
    Extension,
    #[error("the server's nonce does not continue the client's")]
    Nonce,
    #[error("the server asks for {got} iterations, fewer than {MIN_ITERATIONS}")]
    TooFewIterations { got: u32 },
    #[error("the server asks for {got} iterations, more than {max}")]
    TooManyIterations { got: u32, max: u32 },
    #[error("the server refuses: {0}")]
    Refused(&'static str),
    #[error("the server's signature is wrong: it does not know the password")]
    Signature,
    #[error("the conversation ended before the server proved that it knows the password")]
    NotProven,
    #[error("{}", Ended)]
    Endless,
    #[error("the keys are not those that were asked for")]
    ForeignKeys,
}

/// The step after a reply.
pub(super) enum ScramStep {
    Send(Zeroizing<Vec<u8>>),
    /// The caller has to [derive](KeyDerivation::run) keys.
    Derive,
    Done,
}

/// The client's side of one conversation.
pub(super) struct Scram {
    hash: Hash,
    /// What the password is to PBKDF2; `None` if it cannot be a password of this mechanism.
    secret: Option<SecretBytes>,
    max_iterations: u32,
    nonce: Nonce,
    /// The first message without its header, as both sides sign it.
    first_bare: Zeroizing<String>,
    state: State,
}

enum State {
    /// Our first message is under way.
    First,
    /// The server has said how keys are derived, and that is still to be done.
    Challenged { derivation: KeyDerivation, unproven: Zeroizing<String>, signed: Zeroizing<String> },
    /// Our proof is under way; this is what the server must sign, and with which key.
    Proof { keys: Keys, signed: Zeroizing<String> },
    /// The server has proved itself and insists on an empty message.
    // AU-22
    Proven,
}

/// No channel binding; encoded, it is the `c=biws` of the final message.
// AU-34
const HEADER: &str = "n,,";

impl Scram {
    /// A password that SASLprep does not allow matters only when it is asked for: until then the
    /// server may say that it wants SCRAM-SHA-1, which takes it.
    pub(super) fn new(
        mechanism: ScramMechanism,
        username: &str,
        password: &Secret,
        nonce: Nonce,
        max_iterations: u32,
    ) -> Self {
        let hash = mechanism.hash();
        let secret = hash.secret(username, password.expose());
        // The name goes as it is, apart from what would end it (AU-30, AU-37).
        let first_bare = ["n=", &escaped(username), ",r=", nonce.as_str()].concat().into();
        Self { hash, secret, max_iterations, nonce, first_bare, state: State::First }
    }

    /// Says whether this can be a password, before anything is sent.
    ///
    /// # Errors
    ///
    /// [`ScramError::Password`].
    pub(super) fn check(
        mechanism: ScramMechanism,
        username: &str,
        password: &Secret,
    ) -> Result<(), ScramError> {
        let secret = mechanism.hash().secret(username, password.expose());
        secret.map(drop).ok_or(ScramError::Password)
    }

    pub(super) const fn mechanism(&self) -> Mechanism {
        match self.hash {
            Hash::Sha1 => Mechanism::ScramSha1,
            Hash::Sha256 => Mechanism::ScramSha256,
        }
    }

    pub(super) fn first_payload(&self) -> Zeroizing<Vec<u8>> {
        [HEADER.as_bytes(), self.first_bare.as_bytes()].concat().into()
    }

    /// The next step. At most three replies are accepted.
    ///
    /// # Errors
    ///
    /// Each ends the conversation.
    pub(super) fn reply(
        &mut self,
        reply: &SaslReply<'_>,
        cache: &mut ScramCache,
    ) -> Result<ScramStep, ScramError> {
        match &self.state {
            State::First if reply.done => {
                Err(message::refusal(reply.payload).unwrap_or(ScramError::NotProven))
            }
            State::First => self.challenged(reply.payload, cache),
            State::Challenged { .. } => Err(ScramError::Endless),
            State::Proof { keys, signed } => {
                if reply.done && reply.payload.is_empty() {
                    return Err(ScramError::NotProven);
                }
                let signature = ServerFinal::parse(reply.payload)?.signature;
                if !keys.is_server_signature(signed.as_bytes(), &signature) {
                    return Err(ScramError::Signature);
                }
                self.state = State::Proven;
                Ok(if reply.done { ScramStep::Done } else { ScramStep::Send(Zeroizing::default()) })
            }
            State::Proven if reply.done => Ok(ScramStep::Done),
            State::Proven => Err(ScramError::Endless),
        }
    }

    /// What the caller has to do before this goes on.
    pub(super) const fn derivation(&self) -> Option<&KeyDerivation> {
        match &self.state {
            State::Challenged { derivation, .. } => Some(derivation),
            State::First | State::Proof { .. } | State::Proven => None,
        }
    }

    /// Goes on with the keys that were asked for.
    ///
    /// # Errors
    ///
    /// [`ScramError::ForeignKeys`].
    pub(super) fn derived(&mut self, derived: &DerivedKeys) -> Result<ScramStep, ScramError> {
        match std::mem::replace(&mut self.state, State::First) {
            State::Challenged { derivation, unproven, signed } if derived.are_of(&derivation) => {
                Ok(self.prove(derived.keys().clone(), &unproven, signed))
            }
            State::Challenged { .. } | State::First | State::Proof { .. } | State::Proven => {
                Err(ScramError::ForeignKeys)
            }
        }
    }

    fn challenged(
        &mut self,
        payload: &[u8],
        cache: &mut ScramCache,
    ) -> Result<ScramStep, ScramError> {
        let secret = self.secret.as_ref().ok_or(ScramError::Password)?;
        let challenge = ServerFirst::parse(payload)?;
        self.judge(&challenge)?;
        let unproven = Zeroizing::new(["c=biws,r=", challenge.nonce].concat());
        let signed = Zeroizing::new([&self.first_bare, challenge.text, &unproven].join(","));
        let (salt, iterations) = (challenge.salt, challenge.iterations);
        let derivation =
            KeyDerivation { hash: self.hash, secret: secret.clone(), salt, iterations };
        if let Some(keys) = cache.look_up(&derivation) {
            return Ok(self.prove(keys, &unproven, signed));
        }
        self.state = State::Challenged { derivation, unproven, signed };
        Ok(ScramStep::Derive)
    }

    // AU-39
    fn prove(&mut self, keys: Keys, unproven: &str, signed: Zeroizing<String>) -> ScramStep {
        let proof = message::encoded(&keys.client_proof(signed.as_bytes()));
        let message = [unproven.as_bytes(), b",p=", proof.as_bytes()].concat();
        self.state = State::Proof { keys, signed };
        ScramStep::Send(message.into())
    }

    fn judge(&self, challenge: &ServerFirst<'_>) -> Result<(), ScramError> {
        let added = challenge.nonce.strip_prefix(self.nonce.as_str());
        // A nonce that only repeats ours would let an old conversation be played again.
        if added.is_none_or(str::is_empty) {
            return Err(ScramError::Nonce);
        }
        let got = challenge.iterations;
        if got < MIN_ITERATIONS {
            return Err(ScramError::TooFewIterations { got });
        }
        if got > self.max_iterations {
            return Err(ScramError::TooManyIterations { got, max: self.max_iterations });
        }
        Ok(())
    }
}

/// The mechanisms that are SCRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScramMechanism {
    Sha1,
    Sha256,
}

impl ScramMechanism {
    const fn hash(self) -> Hash {
        match self {
            Self::Sha1 => Hash::Sha1,
            Self::Sha256 => Hash::Sha256,
        }
    }
}
