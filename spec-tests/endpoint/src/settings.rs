//! What a server is told before it starts.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use cenote_core::wire::CompressorId;
use thiserror::Error;

use super::fault::Script;
use super::topology::{LoadBalanced, Topology};
use super::user::{AccessToken, AwsKey, Mechanism, User};

/// The configuration of a server. [`Settings::default`] is a standalone server without users and
/// authentication that offers every compressor that is built in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where all entropy comes from: nonces, salts, ObjectIds, ids of cursors. The same seed and
    /// the same inputs give the same outputs. [`Endpoint`](crate::Endpoint) draws it from the operating
    /// system if it is `None`; a [`Server`](crate::Server) needs one.
    pub seed: Option<u64>,
    /// The address as clients know it, `host:port`: what a replica set's member calls itself.
    pub address: String,
    /// The time since the Unix epoch when the server starts, for `localTime`.
    pub started_at: Duration,
    /// What the server is part of.
    pub topology: Topology,
    /// Whether clients have to authenticate before they run anything but a handshake.
    pub auth: bool,
    /// The users that can authenticate, whether or not [`auth`](Self::auth) requires it.
    pub users: Vec<User>,
    /// The access tokens that MONGODB-OIDC accepts; [`Server::set_access_tokens`](crate::Server::set_access_tokens)
    /// replaces them.
    pub access_tokens: Vec<AccessToken>,
    /// The keys that MONGODB-AWS accepts. The server verifies signatures itself, and asks no service of AWS.
    pub aws_keys: Vec<AwsKey>,
    /// The host of AWS STS that the server names; `sts.amazonaws.com` by default.
    pub sts_host: String,
    /// The authentication mechanisms that the server supports.
    pub mechanisms: Vec<Mechanism>,
    /// Parameters of SCRAM.
    pub scram: ScramSettings,
    /// MONGODB-X509 lets every certificate in, not only those whose subject is a user.
    pub any_certificate: bool,
    /// The compressors that the server agrees to.
    pub compressors: Vec<CompressorId>,
    /// `configureFailPoint` is there, as with `enableTestCommands=1`.
    pub test_commands: bool,
    /// Limits of what the server accepts.
    pub limits: Limits,
    /// The wire versions in the reply to hello, from the oldest to the newest; 0 to 25 by default, which is that
    /// of MongoDB 8.0.
    pub wire_versions: RangeInclusive<i32>,
    /// Faults from the start on; more come by [`Server::set_fault`](super::Server::set_fault).
    pub scripts: Vec<Script>,
}

/// Parameters of SCRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScramSettings {
    /// Iterations of SCRAM-SHA-1; 10,000 by default. Clients refuse fewer than 4096.
    pub sha1_iterations: u32,
    /// Iterations of SCRAM-SHA-256; 15,000 by default.
    pub sha256_iterations: u32,
    /// Whether the server skips the empty exchange at the end for a client that asks for it. True by
    /// default.
    pub skip_empty_exchange: bool,
}

/// Limits of what the server accepts. The first three are in the reply to hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `maxMessageSizeBytes`, from 1024 to 2^31 - 1; 48,000,000 by default.
    pub message_size: u32,
    /// `maxBsonObjectSize`; 16 MiB by default.
    pub document_size: u32,
    /// `maxWriteBatchSize`; 100,000 by default.
    pub write_batch: u32,
    /// Bytes of all documents that are stored; 256 MiB by default.
    pub stored_bytes: usize,
    /// Cursors that are open at the same time; 10,000 by default.
    pub cursors: usize,
}

/// Settings with which no server can start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A [`Server`](crate::Server) has no entropy of its own.
    #[error("`seed` is missing: draw one from the operating system, or choose one for a test")]
    NoSeed,
    /// A message that is smaller could not even hold a hello.
    #[error("`limits.message_size` is {got}, but must be from 1024 to 2147483647")]
    MessageSize {
        /// As it was given.
        got: u32,
    },
    /// A load balancer without services accepts no connection.
    #[error("`topology` has a load balancer without services: there must be one at least")]
    NoServices,
    /// A user without a mechanism cannot authenticate.
    #[error("user {name:?} of database {database:?} has no mechanism")]
    NoMechanism {
        /// Whose.
        name: String,
        /// Whose.
        database: String,
    },
    /// A name is taken once a database.
    #[error("user {name:?} of database {database:?} is there twice")]
    DuplicateUser {
        /// Whose.
        name: String,
        /// Whose.
        database: String,
    },
    /// SASLprep does not allow the password.
    #[error("the password of user {name:?} has characters that SCRAM-SHA-256 does not allow")]
    Password {
        /// Whose.
        name: String,
    },
    /// PBKDF2 iterates once at least.
    #[error("SCRAM needs one iteration at least")]
    NoIterations,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: None,
            address: "localhost:27017".to_owned(),
            started_at: Duration::ZERO,
            topology: Topology::Standalone,
            auth: false,
            users: Vec::new(),
            access_tokens: Vec::new(),
            aws_keys: Vec::new(),
            sts_host: "sts.amazonaws.com".to_owned(),
            mechanisms: Mechanism::ALL.to_vec(),
            scram: ScramSettings::default(),
            any_certificate: false,
            compressors: [CompressorId::Snappy, CompressorId::Zstd, CompressorId::Zlib]
                .into_iter()
                .filter(|compressor| compressor.is_built())
                .collect(),
            test_commands: true,
            limits: Limits::default(),
            wire_versions: 0..=25,
            scripts: Vec::new(),
        }
    }
}

impl Settings {
    /// The default settings with this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let message_size = self.limits.message_size;
        if !(1024..=i32::MAX as u32).contains(&message_size) {
            return Err(SettingsError::MessageSize { got: message_size });
        }
        if self.scram.sha1_iterations == 0 || self.scram.sha256_iterations == 0 {
            return Err(SettingsError::NoIterations);
        }
        if self.topology == Topology::LoadBalanced(LoadBalanced { services: 0 }) {
            return Err(SettingsError::NoServices);
        }
        self.check_users()
    }

    fn check_users(&self) -> Result<(), SettingsError> {
        let mut seen = BTreeSet::new();
        for User { name, database, mechanisms, .. } in &self.users {
            let (name, database) = (name.clone(), database.clone());
            if mechanisms.is_empty() {
                return Err(SettingsError::NoMechanism { name, database });
            }
            if !seen.insert((name.clone(), database.clone())) {
                return Err(SettingsError::DuplicateUser { name, database });
            }
        }
        Ok(())
    }
}

impl Default for ScramSettings {
    fn default() -> Self {
        Self { sha1_iterations: 10_000, sha256_iterations: 15_000, skip_empty_exchange: true }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_size: 48_000_000,
            document_size: 16 * 1024 * 1024,
            write_batch: 100_000,
            stored_bytes: 256 * 1024 * 1024,
            cursors: 10_000,
        }
    }
}
