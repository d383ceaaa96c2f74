//! The secrets of a world, and the search for them.
//!
//! Passwords are known from the start. Nonces, proofs, salts and signatures are collected from the
//! messages of every login, on both sides, and keys are computed as soon as there is a salt for them.
//! Each is searched for in every form in which it could leak into a text: plain, in hexadecimal, as a list of
//! numbers, in Base64, and percent-encoded.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{RawBsonRef, RawDocument};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use cenote_endpoint::scram::Hash;

/// The number of bytes that are compared first. Shorter secrets would be found by chance.
const HEAD: usize = 8;

/// Keys are computed for at most this many iterations.
const MOST_ITERATIONS: u32 = 20_000;

/// All known secrets.
#[derive(Default)]
pub(super) struct Secrets {
    /// By their first bytes.
    forms: HashMap<[u8; HEAD], Vec<Form>>,
    filter: Filter,
    /// The prepared password, and the hash of its mechanism.
    password: Option<(Hash, Vec<u8>)>,
    /// Salts and iteration counts whose keys are known.
    salts: HashSet<(Vec<u8>, u32)>,
    /// The text that is searched, without white space.
    flat: Vec<u8>,
    /// The payload that was kept last.
    #[cfg(test)]
    pub(super) last: Vec<u8>,
}

/// One form of a secret.
struct Form {
    bytes: Box<[u8]>,
    what: &'static str,
}

impl Secrets {
    /// Adds a secret.
    pub(super) fn keep(&mut self, what: &'static str, secret: &[u8]) {
        let decimal: Vec<_> = secret.iter().map(ToString::to_string).collect();
        let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.keep_form(what, hexadecimal.to_uppercase().as_bytes());
        self.keep_form(what, hexadecimal.as_bytes());
        self.keep_form(what, decimal.join(",").as_bytes());
        self.keep_form(what, STANDARD.encode(secret).as_bytes());
        self.keep_form(what, secret);
        if let Ok(text) = std::str::from_utf8(secret) {
            let encoded = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            self.keep_form(what, encoded.as_bytes());
        }
    }

    /// Adds the password of logins, and later the keys derived from it.
    pub(super) fn keep_password(&mut self, hash: Hash, user: &str, password: &str) {
        let Some(secret) = hash.secret(user, password) else { return };
        self.keep("a prepared password", &secret);
        self.password = Some((hash, secret));
    }

    /// Adds the payloads of a login in a command or a reply, and their parts.
    pub(super) fn keep_payloads(&mut self, message: &RawDocument) {
        self.keep_payload(message);
        if let Ok(Some(RawBsonRef::Document(inner))) = message.get("speculativeAuthenticate") {
            self.keep_payload(inner);
        }
    }

    fn keep_payload(&mut self, message: &RawDocument) {
        let Ok(Some(RawBsonRef::Binary(payload))) = message.get("payload") else { return };
        self.keep("the payload of a login", payload.bytes);
        #[cfg(test)]
        payload.bytes.clone_into(&mut self.last);
        let parts = || payload.bytes.split(|&byte| byte == b',');
        let field = |name: &[u8]| parts().find_map(|part| part.strip_prefix(name));
        if let (Some(salt), Some(iterations)) = (field(b"s="), field(b"i=")) {
            self.keep_keys(salt, iterations);
        }
        for part in parts() {
            // Other parts are names and numbers.
            if let [b'r' | b's' | b'p' | b'v', b'=', value @ ..] = part {
                let what = match part {
                    [b'r', ..] => "the nonce of a login",
                    [b's', ..] => "the salt of a password",
                    [b'p', ..] => "the proof of a login",
                    _ => "the server's signature",
                };
                self.keep(what, value);
                // All but nonces are in Base64.
                if let Ok(bytes) = STANDARD.decode(value) {
                    self.keep(what, &bytes);
                }
            }
        }
    }

    fn keep_keys(&mut self, salt: &[u8], iterations: &[u8]) {
        let Some((hash, secret)) = &self.password else { return };
        let iterations = std::str::from_utf8(iterations).ok().and_then(|text| text.parse().ok());
        let (Ok(salt), Some(iterations)) = (STANDARD.decode(salt), iterations) else { return };
        // A misbehaving server may send any number.
        if iterations > MOST_ITERATIONS || !self.salts.insert((salt.clone(), iterations)) {
            return;
        }
        for key in hash.keys(secret, &salt, iterations) {
            self.keep("a key of a login", &key);
        }
    }

    fn keep_form(&mut self, what: &'static str, form: &[u8]) {
        let Some(head) = form.first_chunk::<HEAD>() else { return };
        let forms = self.forms.entry(*head).or_default();
        if !forms.iter().any(|known| *known.bytes == *form) {
            self.filter.add(*head);
            forms.push(Form { bytes: form.into(), what });
        }
    }

    /// The secret that a text contains, regardless of line breaks.
    pub(super) fn found_in(&mut self, text: &str) -> Option<&'static str> {
        self.flat.clear();
        self.flat.extend(text.bytes().filter(|byte| !byte.is_ascii_whitespace()));
        self.found_in_bytes(&self.flat)
    }

    /// The secret that a file contains.
    pub(super) fn found_in_bytes(&self, bytes: &[u8]) -> Option<&'static str> {
        (0..bytes.len()).find_map(|start| {
            let rest = bytes.get(start..)?;
            let head = rest.first_chunk::<HEAD>()?;
            if !self.filter.may_contain(*head) {
                return None;
            }
            let form = self.forms.get(head)?.iter().find(|form| rest.starts_with(&form.bytes))?;
            Some(form.what)
        })
    }
}

/// A filter that quickly rejects most heads.
struct Filter(Box<[u64; 1024]>);

impl Filter {
    fn add(&mut self, head: [u8; HEAD]) {
        let (word, bit) = Self::place(head);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    fn may_contain(&self, head: [u8; HEAD]) -> bool {
        let (word, bit) = Self::place(head);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    fn place(head: [u8; HEAD]) -> (usize, u64) {
        let mixed = u64::from_le_bytes(head).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 54) as usize, 1 << (mixed >> 48 & 63))
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self(Box::new([0; 1024]))
    }
}

#[cfg(test)]
mod tests {
    use bson::spec::BinarySubtype;
    use bson::{Binary, rawdoc};

    use super::{Hash, Secrets};

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.keep("a password", b"open:sesame");
        let bytes = b"c=biws,r=fyko+d2lbbFg,p=v0X8v3Bz2T0CJGbJQyF0".to_vec();
        let payload = Binary { subtype: BinarySubtype::Generic, bytes };
        secrets.keep_payloads(&rawdoc! { "saslContinue": 1, "payload": payload });
        secrets
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let password = Some("a password");
        let (nonce, proof) = (Some("the nonce of a login"), Some("the proof of a login"));
        for (text, found) in [
            ("the user said open:sesame", password),
            ("open%3Asesame", password),
            ("6f70656e3a736573616d65", password),
            ("6F70656E3A736573616D65", password),
            ("[111, 112, 101, 110, 58, 115, 101, 115, 97, 109, 101]", password),
            (
                "[\n    111,\n    112,\n    101,\n    110,\n    58,\n    115,\n    101,\n    115,\n    97,\n    109,\n    101,\n]",
                password,
            ),
            ("Binary(b3BlbjpzZXNhbWU=)", password),
            ("r=fyko+d2lbbFg", nonce),
            ("proof v0X8v3Bz2T0CJGbJQyF0", proof),
            ("[191, 69, 252, 191, 112, 115, 217, 61, 2, 36, 102, 201, 67, 33, 116]", proof),
            ("Secret(…)", None),
            ("open sesam", None),
            ("", None),
        ] {
            assert_eq!(secrets().found_in(text), found, "{text}");
        }
    }

    /// The example of RFC 7677.
    #[test]
    fn computed_keys_are_found() {
        let mut secrets = Secrets::default();
        secrets.keep_password(Hash::Sha256, "user", "pencil");
        let bytes = b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".to_vec();
        let payload = Binary { subtype: BinarySubtype::Generic, bytes };
        secrets.keep_payloads(&rawdoc! { "ok": 1, "payload": payload });
        let salted = "c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d";
        assert_eq!(secrets.found_in(salted), Some("a key of a login"));
    }

    #[test]
    fn payloads_are_found_inside_hello_and_in_files() {
        let mut secrets = Secrets::default();
        let bytes = b"n,,n=app,r=rOprNGfwEbeRWgbNEkqO".to_vec();
        let payload = Binary { subtype: BinarySubtype::Generic, bytes };
        let inner = rawdoc! { "saslStart": 1, "payload": payload };
        secrets.keep_payloads(&rawdoc! { "hello": 1, "speculativeAuthenticate": inner });
        let file = b"\x00\x07n,,n=app,r=rOprNGfwEbeRWgbNEkqO\xff";
        assert_eq!(secrets.found_in_bytes(file), Some("the payload of a login"));
        assert_eq!(secrets.found_in_bytes(&file[8..]), Some("the nonce of a login"));
        assert_eq!(secrets.found_in_bytes(b"\x00\x07n,,n=app,r=\xff"), None);
    }
}
