//! A server may repeat what it was sent, in the text of an error: then nothing shows the text.

use alloc::collections::BTreeSet;

use super::{AccessToken, EstablishOptions};
use crate::error::{ConnectionError, Stage};

impl EstablishOptions {
    /// The error of a command without those texts of the server that repeat a part of the credential or of `token`, the
    /// access token of the connection: as they are, or in base64, hexadecimal digits or decimal numbers. Other errors, and
    /// other texts, stay as they are.
    #[must_use]
    pub fn without_echoes(
        &self,
        error: ConnectionError,
        token: Option<&AccessToken>,
    ) -> ConnectionError {
        self.without_echoes_of(error, token, None)
    }

    /// Likewise of `sent`, which a mechanism of the embedder's own has sent: only that knows what of it is secret.
    pub(super) fn without_echoes_of(
        &self,
        error: ConnectionError,
        token: Option<&AccessToken>,
        sent: Option<&[u8]>,
    ) -> ConnectionError {
        let Some(refusal) = error.command_error() else { return error };
        let credential = self.credential.as_ref();
        let password = credential.and_then(|it| it.password.as_ref());
        let session = credential.and_then(|it| it.mechanism_properties.get("AWS_SESSION_TOKEN"));
        let secrets = [password, session, token.map(AccessToken::secret)];
        let secrets = secrets.map(|secret| secret.map(|it| it.expose().as_bytes()));
        // A login has little to say; of a command, a short piece would hide what it is about, such as a database.
        let [piece, shortest] = if error.stage() == Stage::Operation {
            [PIECE_OF_COMMAND, PIECE]
        } else {
            [PIECE, SHORTEST]
        };
        let secrets = secrets.into_iter().chain([sent]).flatten();
        let secrets = secrets.filter(|secret| secret.len() >= shortest);
        let secrets: Vec<_> = secrets.map(|secret| Pieces::of(secret, piece)).collect();
        let is_shown = |text: &str| {
            let text = text.as_bytes();
            match text.get(..TEXT_MAX) {
                // Nothing shows more of it.
                Some(first) if error.stage() == Stage::Operation => !repeats(first, &secrets),
                Some(_) => false,
                None => !repeats(text, &secrets),
            }
        };
        let reason =
            "the server's text is not shown: it is long, or repeats a part of the credential";
        match refusal.with_texts_that(is_shown, reason) {
            Some(shown) => ConnectionError::command(error.stage(), shown),
            None => error,
        }
    }
}

/// More than a server has to say about a login, and than any error shows.
const TEXT_MAX: usize = 4_096;

/// What of a secret no text may have.
struct Pieces<'s> {
    length: usize,
    // In time that grows with text and secret, however long they are.
    all: BTreeSet<&'s [u8]>,
}

impl<'s> Pieces<'s> {
    /// Of this length, or the whole secret.
    fn of(secret: &'s [u8], length: usize) -> Self {
        let length = length.min(secret.len());
        Self { length, all: secret.windows(length).collect() }
    }
}

/// Whether the text has a piece of a secret, as it is or encoded.
fn repeats(text: &[u8], secrets: &[Pieces<'_>]) -> bool {
    let readings = readings(text);
    secrets.iter().any(|Pieces { length, all }| {
        readings.iter().flat_map(|it| it.windows(*length)).any(|piece| all.contains(piece))
    })
}

const PIECE: usize = 8;
const PIECE_OF_COMMAND: usize = 16;
/// A shorter one is part of many texts.
const SHORTEST: usize = 4;

/// What the text may stand for: itself; hexadecimal digits or base64, which begin anywhere; and decimal numbers.
fn readings(text: &[u8]) -> Vec<Vec<u8>> {
    let numbers = text.split(|byte| !byte.is_ascii_digit());
    let numbers = numbers.filter_map(|digits| core::str::from_utf8(digits).ok()?.parse().ok());
    let mut readings = vec![text.to_vec(), numbers.collect()];
    // The place of the first digit decides how the others share bytes.
    let hexadecimal = |begin| bytes_of(text.iter().filter_map(hexadecimal).skip(begin), 4);
    let base64 = |begin| bytes_of(text.iter().filter_map(base64).skip(begin), 6);
    readings.extend((0..2).map(hexadecimal).chain((0..4).map(base64)));
    readings
}

/// Bytes from digits of so many bits; those of an incomplete byte at the end are left out.
fn bytes_of(digits: impl Iterator<Item = u8>, bits: u32) -> Vec<u8> {
    let (mut bytes, mut pending, mut count) = (Vec::new(), 0_u32, 0);
    for digit in digits {
        pending = (pending << bits) | u32::from(digit);
        count += bits;
        if count >= 8 {
            count -= 8;
            bytes.extend((pending >> count).to_le_bytes().first());
        }
    }
    bytes
}

fn hexadecimal(byte: &u8) -> Option<u8> {
    char::from(*byte).to_digit(16)?.try_into().ok()
}

/// Of both alphabets.
fn base64(byte: &u8) -> Option<u8> {
    match *byte {
        byte @ b'A'..=b'Z' => Some(byte - b'A'),
        byte @ b'a'..=b'z' => Some(byte - b'a' + 26),
        byte @ b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::prelude::v1::*;
    use std::sync::Arc;

    use super::*;
    use crate::connect::{ClientMetadata, Environment};
    use crate::error::{CommandError, Stage};
    use crate::uri::ConnectionString;

    fn shown(uri: &str, token: Option<&str>, message: &str) -> String {
        let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
        let uri: ConnectionString = uri.parse().expect("a connection string");
        let mut options = EstablishOptions::for_client(&Arc::new(client));
        options.credential = uri.credential;
        let token = token.map(AccessToken::new);
        let refusal = CommandError::new(18, message);
        let error = ConnectionError::command(Stage::Authentication, refusal);
        format!("{:?}", options.without_echoes(error, token.as_ref()))
    }

    /// Errors of commands may be long: what is shown of them is looked at.
    #[test]
    fn long_texts_of_commands_stay() {
        let uri = "mongodb://app:correct-horse@a/".parse::<ConnectionString>().expect("one");
        let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
        let options = EstablishOptions::new(&uri, &client);
        let kept = |text: &str| {
            let error = ConnectionError::command(Stage::Operation, CommandError::new(2, text));
            options.without_echoes(error, None).reason().contains("said")
        };
        let rest = "a".repeat(5_000);
        assert!(kept(&format!("said: {rest}")));
        assert!(!kept(&format!("said: correct-horse {rest}")));
    }

    #[test]
    fn what_was_sent_is_not_shown() {
        let plain = "mongodb://app:correct-horse@a/?authMechanism=PLAIN&authSource=$external";
        let oidc =
            "mongodb://a/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:test";
        let said = |text: &str| text.contains("said");
        assert!(said(&shown(plain, None, "said: no such user")));
        assert!(!said(&shown(plain, None, "said: password correct-horse is wrong")));
        assert!(!said(&shown(plain, None, "said: …rect-horse")), "a piece of eight");
        assert!(said(&shown(plain, None, "said: horse")), "of five");
        assert!(!said(&shown(oidc, Some("eyJhbGciOiJSUzI1NiJ9"), "said: bad jwt eyJhbGciOi")));
        assert!(!said(&shown(plain, None, &format!("said: {}", "a".repeat(5_000)))));
        assert!(shown(plain, None, "said: correct-horse").contains("18"), "the code is kept");
        for encoded in [
            "Y29ycmVjdC1ob3JzZQ",
            "AGNvcnJlY3QtaG9yc2U=",
            "63:6f:72:72:65:63:74:2D:68",
            "99, 111, 114, 114, 101, 99, 116, 45]",
        ] {
            assert!(!said(&shown(plain, None, &format!("said: {encoded}"))), "{encoded}");
        }
    }
}
