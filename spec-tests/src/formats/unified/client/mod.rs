//! The client of a shell, with as much of a driver around it as makes the files runnable: commands with one
//! retry where that is safe, sessions, cursors. That part is for tests only. Discovery, selection, pools, timeouts,
//! pinning, labels, authentication, events and messages are those of the client that is shipped.
//!
//! ```text
//! story         what was told
//! received      what the server got
//! command       sends a command, once or more
//! cursor        results in batches, on the connection where they began
//! session       transactions, on the connection where they began
//! ```

pub(super) mod command;
pub(super) mod cursor;
mod error;
pub(super) mod received;
pub(super) mod session;
mod session_id;
pub(super) mod story;

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::{Document, doc};
use cenote_core::connect::{AccessToken, DriverInfo};
use cenote_core::pool::Snapshot;
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::{ConnectionString, Mechanism};
use cenote_test_runtimes::{AnyClient, AnyPool, ClientSetup, Subscribers, Tokens};

use self::command::{Command, Safety};
pub(super) use self::error::Failure;
use self::received::Received;
use self::session_id::SessionId;
use self::story::Story;
use super::format::Limits;
use super::venue::TOKEN;
use crate::formats::CLOSE_LIMIT;
use crate::formats::lock::lock;
use crate::formats::target::Target;

/// The server of a client.
#[derive(Clone)]
pub(super) struct Server {
    /// What it receives.
    pub(super) received: Received,
    /// Whether it knows writes by their numbers, which a standalone server does not.
    pub(super) numbers_writes: bool,
}

/// A client, with what a driver adds to it.
pub(super) struct Client {
    uri: ConnectionString,
    client: Box<dyn AnyClient>,
    /// Of the first host, for its runtime.
    pool: Arc<dyn AnyPool>,
    story: Arc<Story>,
    server: Server,
    /// Sessions that were used and are free.
    sessions: Mutex<Vec<SessionId>>,
    /// How many operations there were.
    operations: AtomicI64,
}

impl Client {
    /// # Errors
    ///
    /// If the connection string is invalid.
    pub(super) fn new(target: Target, text: &str, server: Server) -> Result<Self, String> {
        let uri = ConnectionString::parse(text).map_err(|error| error.to_string())?;
        let story = Arc::new(Story::begin());
        let [cmap, beats, sdam] = [(); 3].map(|()| Arc::clone(&story));
        let mechanism = uri.credential.as_ref().and_then(|credential| credential.mechanism);
        let tokens: Tokens = Box::new(|_| Ok(AccessToken::new(TOKEN)));
        let setup = ClientSetup {
            tokens: (mechanism == Some(Mechanism::MongodbOidc)).then_some(tokens),
            subscribers: Subscribers {
                pools: Some(Box::new(move |event, address| cmap.cmap(event, address))),
                heartbeats: Some(Box::new(move |told| beats.heartbeat(&told.event))),
                topology: vec![Box::new(move |told| sdam.topology(&told.event))],
                ..Subscribers::default()
            },
            ..ClientSetup::default()
        };
        let client = target.shell()?.build_client(text, setup);
        let client = client.map_err(|error| error.to_string())?;
        let pool = uri.hosts.first().and_then(|host| client.pool(host));
        let pool = pool.ok_or("a client without a pool")?;
        let (sessions, operations) = (Mutex::default(), AtomicI64::new(1));
        Ok(Self { uri, client, pool, story, server, sessions, operations })
    }

    /// What was told.
    pub(super) fn story(&self) -> &Story {
        &self.story
    }

    /// What another thread is telling just now has been told when this returns.
    pub(super) fn catch_up(&self) {
        self.pool.flush();
    }

    /// Whether connections belong to services behind a load balancer, so that cursors and
    /// transactions pin them.
    pub(super) fn pins(&self) -> bool {
        self.uri.pool.load_balanced == Some(true)
    }

    /// Appends the metadata of a wrapping library to the handshake of new connections.
    pub(super) fn append_metadata(&self, driver: DriverInfo) {
        self.client.append_metadata(driver);
    }

    /// What is known of the servers.
    pub(super) fn topology(&self) -> Arc<TopologyDescription> {
        self.client.topology()
    }

    /// How long an operation of several commands may take from now on, if it has a limit.
    pub(super) fn deadline(&self, limits: Limits) -> Option<Instant> {
        let of_operation = limits.timeout.map(Duration::from_millis);
        let limit = of_operation.or(self.uri.timeouts.operation);
        limit.filter(|limit| !limit.is_zero()).map(|limit| Instant::now() + limit)
    }

    /// Waits until each pool has as many connections as `minPoolSize` says.
    ///
    /// # Errors
    ///
    /// That there are fewer.
    pub(super) fn wait_for_min_pool_size(&self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            let servers = self.client.servers();
            let is_short = |pool: &Snapshot| pool.available + pool.in_use < pool.min_pool_size;
            match servers.iter().find(|server| is_short(&server.pool)) {
                None => return Ok(()),
                Some(short) if Instant::now() >= deadline => {
                    return Err(format!("minPoolSize is not reached after {limit:?}: {short}"));
                }
                Some(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Closes the client while it is in use.
    pub(super) fn break_off(&self) {
        let _ = self.client.close_within(CLOSE_LIMIT);
    }

    /// Ends its sessions and closes it.
    ///
    /// # Errors
    ///
    /// That something is left in the pool.
    pub(super) fn close(&self) -> Result<(), String> {
        let sessions: Vec<Document> =
            lock(&self.sessions).drain(..).map(SessionId::into_document).collect();
        let has_connection =
            || self.client.servers().iter().any(|server| server.pool.available > 0);
        let has_server = || self.client.topology().has_writable_server();
        if !sessions.is_empty() && has_connection() && has_server() {
            let end = Command::new("admin", doc! { "endSessions": sessions }, Safety::Unknown);
            // The result does not matter.
            if let Ok(mut pin) = self.pin(&end) {
                let _ = self.send(&mut *pin, &end.database, &end.body);
            }
        }
        self.client.close_within(CLOSE_LIMIT).map_err(|left| left.to_string())
    }
}
