//! The texts of a conversation: `r=…,s=…,i=…` and `v=…`.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use super::ScramError;

/// The challenge of the server.
pub(super) struct ServerFirst<'a> {
    /// All of it, as both sides sign it.
    pub(super) text: &'a str,
    pub(super) nonce: &'a str,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
}

/// The final message of the server.
pub(super) struct ServerFinal {
    pub(super) signature: Vec<u8>,
}

/// The longest message that is read, in bytes; real ones have about 100.
const LENGTH_MAX: usize = 4096;

impl<'a> ServerFirst<'a> {
    /// Extensions after the three attributes are optional by their place, so that they are left
    /// alone; one in front of them is not.
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, ScramError> {
        let malformed = |problem| ScramError::Malformed { what: "first", problem };
        let text = text(payload).map_err(malformed)?;
        refusal(payload).map_or(Ok(()), Err)?;
        if text.starts_with("m=") {
            return Err(ScramError::Extension);
        }
        let mut attributes = text.split(',');
        let mut next = |name, problem| {
            let value = attributes.next().and_then(|it| it.strip_prefix(name));
            value.ok_or_else(|| malformed(problem))
        };
        let nonce = next("r=", "there is no nonce")?;
        let salt = next("s=", "there is no salt")?;
        let iterations = next("i=", "there is no number of iterations")?;
        let salt = STANDARD.decode(salt).map_err(|_| malformed("the salt is not base64"))?;
        if salt.is_empty() {
            return Err(malformed("the salt is empty"));
        }
        let iterations = number(iterations)
            .ok_or_else(|| malformed("the number of iterations is not a number of 32 bits"))?;
        Ok(Self { text, nonce, salt, iterations })
    }
}

impl ServerFinal {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, ScramError> {
        let malformed = |problem| ScramError::Malformed { what: "final", problem };
        let text = text(payload).map_err(malformed)?;
        refusal(payload).map_or(Ok(()), Err)?;
        let signature = text.split(',').next().and_then(|it| it.strip_prefix("v="));
        let signature = signature.ok_or_else(|| malformed("there is no signature"))?;
        let signature =
            STANDARD.decode(signature).map_err(|_| malformed("the signature is not base64"))?;
        Ok(Self { signature })
    }
}

/// A name in which nothing ends an attribute.
// AU-37
pub(super) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['=', ',']) {
        Cow::Owned(name.replace('=', "=3D").replace(',', "=2C"))
    } else {
        Cow::Borrowed(name)
    }
}

pub(super) fn encoded(bytes: &[u8]) -> Zeroizing<String> {
    STANDARD.encode(bytes).into()
}

fn text(payload: &[u8]) -> Result<&str, &'static str> {
    if payload.len() > LENGTH_MAX {
        return Err("it is longer than 4096 bytes");
    }
    core::str::from_utf8(payload).map_err(|_| "it is not UTF-8")
}

/// What the server says instead of an answer. Only a reason that is known is repeated: a server
/// could say what it was told, which would then stand in a log.
pub(super) fn refusal(payload: &[u8]) -> Option<ScramError> {
    let said = payload.strip_prefix(b"e=")?.split(|byte| *byte == b',').next();
    let known = REASONS.into_iter().find(|reason| said == Some(reason.as_bytes()));
    Some(ScramError::Refused(known.unwrap_or("for a reason that SCRAM does not know")))
}

/// Those of RFC 5802, section 7.
const REASONS: [&str; 11] = [
    "invalid-encoding",
    "extensions-not-supported",
    "invalid-proof",
    "channel-bindings-dont-match",
    "server-does-support-channel-binding",
    "channel-binding-not-supported",
    "unsupported-channel-binding-type",
    "unknown-user",
    "invalid-username-encoding",
    "no-resources",
    "other-error",
];

/// Digits and nothing else: no sign, no space.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
