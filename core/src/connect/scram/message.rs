//! The texts of a conversation: `r=…,s=…,i=…` and `v=…`.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::ScramError;

/// What the server asks for.
pub(super) struct ServerFirst<'a> {
    /// All of it, as both sides sign it.
    pub(super) text: &'a str,
    pub(super) nonce: &'a str,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
}

/// What the server says at the end.
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
        refuse_error(text)?;
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
        refuse_error(text)?;
        let signature = text.split(',').next().and_then(|it| it.strip_prefix("v="));
        let signature = signature.ok_or_else(|| malformed("there is no signature"))?;
        let signature =
            STANDARD.decode(signature).map_err(|_| malformed("the signature is not base64"))?;
        Ok(Self { signature })
    }
}

/// A name in which nothing ends an attribute.
pub(super) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['=', ',']) {
        Cow::Owned(name.replace('=', "=3D").replace(',', "=2C"))
    } else {
        Cow::Borrowed(name)
    }
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn text(payload: &[u8]) -> Result<&str, &'static str> {
    if payload.len() > LENGTH_MAX {
        return Err("it is longer than 4096 bytes");
    }
    core::str::from_utf8(payload).map_err(|_| "it is not UTF-8")
}

fn refuse_error(text: &str) -> Result<(), ScramError> {
    match text.strip_prefix("e=") {
        Some(reason) => Err(ScramError::Refused(reason.to_owned())),
        None => Ok(()),
    }
}

/// Digits and nothing else: no sign, no space.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
