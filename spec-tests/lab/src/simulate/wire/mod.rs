//! Connections with real conversations: [`Establish`](cenote_core::connect::Establish) and
//! [`Channel`](cenote_core::wire::Channel) over virtual sockets to the mock server's state machine.
//!
//! Bytes are delayed, split and lost; replies are cut, garbled and held back. Everything else is as without a network:
//! the plan, callers, the monitor, and what is judged. In addition no error shows a secret of its conversation, neither
//! as a text, nor in a trace. TLS is left out, because its state machines are not part of this project.

mod client;
mod conversation;
mod network;
mod secrets;
mod server;
mod trouble;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions, Nonce, ScramCache};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{LoadBalanced, Mechanism, ScramSettings, Server, Settings, Topology, User};
use cenote_replay::random::SplitMix;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::conversation::Conversation;
use self::network::Network;
use self::secrets::Secrets;
use super::plan::Plan;

pub(super) use self::network::Side;

#[cfg(test)]
mod tests;

/// What is particular to connections with conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversations {
    /// How clients log in; `None`: without authentication.
    pub login: Option<Mechanism>,
    /// Data is split into packets of at most this many bytes; 0: not at all.
    pub pieces: u64,
}

/// The conversations, the network and the server. Links have the numbers of the pool's connections.
pub(super) struct Wire {
    /// Draws latencies, pieces, nonces and faults, so that a world is the same with and without conversations.
    random: SplitMix,
    pieces: u64,
    server: Server,
    listens: bool,
    /// When the server's timer fires next, if that is planned.
    timer: Option<Duration>,
    network: Network,
    options: Arc<EstablishOptions>,
    scram: ScramCache,
    conversations: BTreeMap<u64, Conversation>,
    /// Those that all conversations share.
    secrets: Secrets,
}

const HOST: &str = "db.example.com:27017";
const USER: &str = "app";

impl Conversations {
    pub(super) fn new(seed: u64) -> Self {
        let random = &mut SplitMix(seed ^ 0x0003_171e);
        let login = match random.below(6) {
            0 | 1 => None,
            2 => Some(Mechanism::ScramSha1),
            3 => Some(Mechanism::Plain),
            _ => Some(Mechanism::ScramSha256),
        };
        Self { login, pieces: if random.one_in(4) { random.between(1, 64) } else { 0 } }
    }
}

impl fmt::Display for Conversations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.login.map_or("no login", Mechanism::name))?;
        match self.pieces {
            0 => Ok(()),
            most => write!(f, ", in packets of up to {most} bytes"),
        }
    }
}

impl Wire {
    pub(super) fn new(plan: &Plan, conversations: Conversations) -> Result<Self, String> {
        let Conversations { login, pieces } = conversations;
        let mut random = SplitMix(plan.seed ^ 0x5eed_0003_171e);
        // With all characters that a connection string has to encode.
        let password = format!("open:{:016x}@/sesame%", random.number());
        let mut secrets = Secrets::default();
        secrets.keep("the password", password.as_bytes());
        let encoded = utf8_percent_encode(&password, NON_ALPHANUMERIC);
        let (user, options) = match login {
            Some(Mechanism::Plain) => {
                (Some(User::plain(USER, &password)), "&authMechanism=PLAIN".to_owned())
            }
            // hello says which mechanism it is.
            Some(mechanism) => {
                (Some(User::new(USER, &password).with_mechanisms(&[mechanism])), String::new())
            }
            None => (None, String::new()),
        };
        let credential = user.as_ref().map_or(String::new(), |_| format!("{USER}:{encoded}@"));
        let balanced = if plan.services == 0 { "" } else { "&loadBalanced=true" };
        let uri = format!("mongodb://{credential}{HOST}/?appName=world{options}{balanced}");
        let uri = ConnectionString::parse(&uri).map_err(|error| error.to_string())?;
        let client = ClientMetadata::new(uri.app_name.as_deref(), &Environment::default());
        let client = client.map_err(|error| error.to_string())?;
        let topology = match plan.services {
            0 => Topology::Standalone,
            services => Topology::LoadBalanced(LoadBalanced { services: services.into() }),
        };
        // The minimum that clients accept (AU-33).
        let scram = ScramSettings {
            sha1_iterations: 4096,
            sha256_iterations: 4096,
            ..ScramSettings::default()
        };
        let settings = Settings {
            address: HOST.to_owned(),
            topology,
            auth: login.is_some(),
            users: user.into_iter().collect(),
            scram,
            ..Settings::seeded(plan.seed)
        };
        Ok(Self {
            random,
            pieces,
            server: Server::new(settings).map_err(|error| error.to_string())?,
            listens: true,
            timer: None,
            network: Network::default(),
            options: Arc::new(EstablishOptions::new(&uri, &client)),
            scram: ScramCache::default(),
            conversations: BTreeMap::new(),
            secrets,
        })
    }

    fn nonce(&mut self) -> Nonce {
        let mut bytes = [0; Nonce::RANDOM_BYTES];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.number().to_le_bytes());
        }
        Nonce::from_random(bytes)
    }
}
