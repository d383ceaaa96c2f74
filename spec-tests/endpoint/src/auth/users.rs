//! The users that can log in.

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest as _, Sha256};

use super::credential::{Credential, Hash, same};
use crate::entropy::Entropy;
use crate::settings::{Settings, SettingsError};
use crate::user::{AccessToken, AwsKey, EXTERNAL, Mechanism, User};

/// The users that can log in, without their passwords.
#[derive(Debug)]
pub(in super::super) struct Users {
    /// By database and name.
    known: BTreeMap<(String, String), Known>,
    enabled: Vec<Mechanism>,
    tokens: Vec<AccessToken>,
    aws_keys: Vec<AwsKey>,
    sts_host: String,
    any_certificate: bool,
    spares_empty_exchange: bool,
}

#[derive(Debug, Default)]
struct Known {
    mechanisms: Vec<Mechanism>,
    scram: BTreeMap<Hash, Credential>,
    plain: Option<Fingerprint>,
}

/// A salted hash of a password.
struct Fingerprint {
    salt: [u8; 16],
    hash: [u8; 32],
}

impl Users {
    pub(in super::super) fn new(
        settings: &Settings,
        entropy: &mut Entropy,
    ) -> Result<Self, SettingsError> {
        let mut known = BTreeMap::new();
        for user in &settings.users {
            let name = (user.database.clone(), user.name.clone());
            known.insert(name, Known::new(user, settings, entropy)?);
        }
        Ok(Self {
            known,
            enabled: settings.mechanisms.clone(),
            tokens: settings.access_tokens.clone(),
            aws_keys: settings.aws_keys.clone(),
            sts_host: settings.sts_host.clone(),
            any_certificate: settings.any_certificate,
            spares_empty_exchange: settings.scram.skip_empty_exchange,
        })
    }

    pub(in super::super) fn enabled(&self) -> &[Mechanism] {
        &self.enabled
    }

    pub(in super::super) fn spares_empty_exchange(&self) -> bool {
        self.spares_empty_exchange
    }

    /// The mechanisms of the user `database.name`; `None` if there is no such user.
    pub(in super::super) fn mechanisms(&self, user: &str) -> Option<Vec<&'static str>> {
        let (database, name) = user.split_once('.')?;
        let mechanisms = self.get(database, name)?.mechanisms.iter();
        let enabled = mechanisms.filter(|mechanism| self.enabled.contains(mechanism));
        Some(enabled.map(|mechanism| mechanism.name()).collect())
    }

    pub(super) fn credential(&self, database: &str, name: &str, hash: Hash) -> Option<&Credential> {
        self.get(database, name)?.scram.get(&hash)
    }

    /// Whether a client with this certificate may log in.
    pub(super) fn has_certificate(&self, subject: &str) -> bool {
        let known = self.get(EXTERNAL, subject);
        self.any_certificate
            || known.is_some_and(|known| known.mechanisms.contains(&Mechanism::MongodbX509))
    }

    /// Whether this is a user's password for PLAIN.
    pub(super) fn has_password(&self, database: &str, name: &str, password: &str) -> bool {
        let known = self.get(database, name);
        known.and_then(|known| known.plain.as_ref()).is_some_and(|plain| plain.is_of(password))
    }

    /// The user that an access token is for, while it is valid.
    pub(in super::super) fn holder(&self, token: &str) -> Option<&str> {
        let known = self.tokens.iter().find(|known| same(known.text.as_bytes(), token.as_bytes()));
        known.map(|known| known.user.as_str())
    }

    pub(super) fn aws_key(&self, access_key: &str) -> Option<&AwsKey> {
        self.aws_keys.iter().find(|key| key.access_key == access_key)
    }

    pub(super) fn sts_host(&self) -> &str {
        &self.sts_host
    }

    pub(in super::super) fn set_tokens(&mut self, tokens: Vec<AccessToken>) {
        self.tokens = tokens;
    }

    fn get(&self, database: &str, name: &str) -> Option<&Known> {
        self.known.get(&(database.to_owned(), name.to_owned()))
    }
}

impl Known {
    fn new(user: &User, settings: &Settings, entropy: &mut Entropy) -> Result<Self, SettingsError> {
        let mut known = Self { mechanisms: user.mechanisms.clone(), ..Self::default() };
        for mechanism in &user.mechanisms {
            match mechanism {
                Mechanism::ScramSha1 => {
                    let salt = entropy.bytes::<16>();
                    known.add(user, Hash::Sha1, &salt, settings.scram.sha1_iterations)?;
                }
                Mechanism::ScramSha256 => {
                    let salt = entropy.bytes::<28>();
                    known.add(user, Hash::Sha256, &salt, settings.scram.sha256_iterations)?;
                }
                Mechanism::Plain => {
                    known.plain = Some(Fingerprint::new(&user.password, entropy.bytes()));
                }
                Mechanism::MongodbX509 | Mechanism::MongodbOidc | Mechanism::MongodbAws => {}
            }
        }
        Ok(known)
    }

    fn add(
        &mut self,
        user: &User,
        hash: Hash,
        salt: &[u8],
        iterations: u32,
    ) -> Result<(), SettingsError> {
        let secret = hash.secret(&user.name, &user.password);
        let secret = secret.ok_or_else(|| SettingsError::Password { name: user.name.clone() })?;
        self.scram.insert(hash, Credential::new(hash, &secret, salt, iterations));
        Ok(())
    }
}

impl Fingerprint {
    fn new(password: &str, salt: [u8; 16]) -> Self {
        let hash = Sha256::new().chain_update(salt).chain_update(password).finalize().into();
        Self { salt, hash }
    }

    fn is_of(&self, password: &str) -> bool {
        same(&Self::new(password, self.salt).hash, &self.hash)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(…)")
    }
}
