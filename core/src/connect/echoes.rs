//! A server may repeat what it was sent, in the text of an error: then nothing shows the text.

use alloc::collections::BTreeSet;

use super::{AccessToken, EstablishOptions};
use crate::error::ConnectionError;

/// The error without its texts, if they are long or repeat a part of the credential that the connection sends.
pub(super) fn without_echoes(
    error: &ConnectionError,
    options: &EstablishOptions,
    token: Option<&AccessToken>,
) -> Option<ConnectionError> {
    let refusal = error.command_error()?;
    let credential = options.credential.as_ref();
    let password = credential.and_then(|it| it.password.as_ref());
    let session = credential.and_then(|it| it.mechanism_properties.get("AWS_SESSION_TOKEN"));
    let secrets = [password, session, token.map(AccessToken::secret)];
    let is_shown = |text: &str| {
        let mut secrets = secrets.iter().flatten();
        text.len() <= TEXT_MAX && !secrets.any(|secret| repeats(text.as_bytes(), secret.expose()))
    };
    let reason = "the server's text is not shown: it is long, or repeats a part of the credential";
    let shown = refusal.with_texts_that(is_shown, reason)?;
    Some(ConnectionError::command(error.stage(), shown))
}

/// More than a server has to say about a login.
const TEXT_MAX: usize = 4_096;

/// Whether the text has a piece of the secret.
fn repeats(text: &[u8], secret: &str) -> bool {
    let length = PIECE.min(secret.len());
    // A shorter one is part of many texts.
    if length < SHORTEST {
        return false;
    }
    // In time that grows with both, however long the secret is.
    let pieces: BTreeSet<_> = text.windows(length).collect();
    secret.as_bytes().windows(length).any(|piece| pieces.contains(piece))
}

const PIECE: usize = 8;
const SHORTEST: usize = 4;

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
        let shown = without_echoes(&error, &options, token.as_ref()).unwrap_or(error);
        format!("{shown:?}")
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
    }
}
