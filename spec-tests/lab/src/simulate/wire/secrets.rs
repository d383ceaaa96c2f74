//! The secrets of a conversation, none of which may be in what an error shows.

use std::error::Error;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{RawBsonRef, RawDocument};
use cenote_core::error::ConnectionError;
use cenote_core::trace::TraceCause;

/// The fewest bytes of a secret. Shorter ones would be found by chance.
const SHORTEST: usize = 8;

/// All known secrets, in every form in which they could be shown: plain, in hexadecimal, as a list of numbers, and in
/// Base64.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    pub(super) fn keep(&mut self, what: &'static str, secret: &[u8]) {
        if secret.len() < SHORTEST {
            return;
        }
        let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let decimal: Vec<_> = secret.iter().map(ToString::to_string).collect();
        let plain = String::from_utf8_lossy(secret).into_owned();
        let upper = hexadecimal.to_uppercase();
        let forms = [plain, hexadecimal, upper, decimal.join(","), STANDARD.encode(secret)];
        self.0.extend(forms.map(|form| (what, form)));
    }

    /// Keeps the payloads of a login in a command or a reply, and their nonces, salts, proofs and signatures.
    pub(super) fn keep_payloads(&mut self, message: &RawDocument) {
        if let Ok(Some(RawBsonRef::Document(inner))) = message.get("speculativeAuthenticate") {
            self.keep_payloads(inner);
        }
        let Ok(Some(RawBsonRef::Binary(payload))) = message.get("payload") else { return };
        self.keep("the payload of a login", payload.bytes);
        for part in payload.bytes.split(|&byte| byte == b',') {
            if let [b'r' | b's' | b'p' | b'v', b'=', value @ ..] = part {
                self.keep("a part of a login", value);
                // All but nonces are in Base64.
                if let Ok(bytes) = STANDARD.decode(value) {
                    self.keep("a part of a login", &bytes);
                }
            }
        }
    }

    /// Searches the error, its sources, and what a trace and a log show of it.
    pub(super) fn expect_none_in(&self, error: &ConnectionError) -> Result<(), String> {
        let mut text =
            format!("{error} {error:?} {error:#?} {} {:?}", error.reason(), error.summary());
        error.write_text(&mut text).map_err(|error| error.to_string())?;
        let mut source = error.source();
        while let Some(error) = source {
            let _ = write!(text, " {error} {error:?}");
            source = error.source();
        }
        match self.found_in(&text) {
            Some(what) => Err(format!("{what} is in an error: {text}")),
            None => Ok(()),
        }
    }

    /// The secret that a text contains, regardless of line breaks.
    fn found_in(&self, text: &str) -> Option<&'static str> {
        let flat: String = text.split_ascii_whitespace().collect();
        self.0.iter().find(|(_, form)| flat.contains(form)).map(|(what, _)| *what)
    }
}

#[cfg(test)]
mod tests {
    use bson::spec::BinarySubtype;
    use bson::{Binary, rawdoc};
    use cenote_core::error::{ConnectionError, Stage};

    use super::Secrets;

    #[test]
    fn a_secret_is_found_in_every_form() {
        let mut secrets = Secrets::default();
        secrets.keep("a password", b"open:sesame");
        let bytes = b"c=biws,r=fyko+d2lbbFg,p=v0X8v3Bz2T0CJGbJQyF0".to_vec();
        let payload = Binary { subtype: BinarySubtype::Generic, bytes };
        let inner = rawdoc! { "saslContinue": 1, "payload": payload };
        secrets.keep_payloads(&rawdoc! { "hello": 1, "speculativeAuthenticate": inner });
        let (password, part) = (Some("a password"), Some("a part of a login"));
        for (text, found) in [
            ("the user said open:sesame", password),
            ("6f70656e3a736573616d65", password),
            ("6F70656E3A736573616D65", password),
            ("[111, 112, 101, 110, 58, 115, 101, 115, 97, 109, 101]", password),
            (
                "[\n 111,\n 112,\n 101,\n 110,\n 58,\n 115,\n 101,\n 115,\n 97,\n 109,\n 101,\n]",
                password,
            ),
            ("Binary(b3BlbjpzZXNhbWU=)", password),
            ("r=fyko+d2lbbFg", part),
            ("proof v0X8v3Bz2T0CJGbJQyF0", part),
            ("[191, 69, 252, 191, 112, 115, 217, 61, 2, 36, 102, 201, 67, 33, 116]", part),
            ("Secret(…)", None),
            ("open sesam", None),
            ("", None),
        ] {
            assert_eq!(secrets.found_in(text), found, "{text}");
        }
        let error = |text: &str| ConnectionError::network(Stage::Authentication, text.to_owned());
        assert!(secrets.expect_none_in(&error("refused: open:sesame")).is_err());
        assert_eq!(secrets.expect_none_in(&error("refused")), Ok(()));
    }
}
