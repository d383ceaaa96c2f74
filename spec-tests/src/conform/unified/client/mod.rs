//! The client of a shell, with as much of a driver around it as makes the files runnable: commands with one
//! retry where that is safe, sessions, cursors. That part is for tests only.
//!
//! ```text
//! story         what was told
//! received      what the server got
//! command       sends a command, on a connection or wherever, once or more
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

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::{Document, doc};
use cenote_core::connect::DriverInfo;
use cenote_core::pool::{Purpose, Snapshot};
use cenote_core::uri::{ConnectionString, Mechanism};

pub(super) use self::error::Failure;
use self::received::Received;
use self::session_id::SessionId;
use self::story::Story;
use super::venue::TOKEN;
use crate::conform::lock::lock;
use crate::conform::shell::{self, CLOSE_LIMIT, ClientSetup, Pool};
use crate::conform::target::Target;

/// The server of a client.
#[derive(Clone)]
pub(super) struct Server {
    /// What it receives.
    pub(super) received: Received,
    /// Whether it knows writes by their numbers, which a standalone server does not.
    pub(super) numbers_writes: bool,
}

/// A client of one server.
pub(super) struct Client {
    uri: ConnectionString,
    client: Box<dyn shell::Client>,
    /// Of its server.
    pool: Arc<dyn Pool>,
    story: Arc<Story>,
    server: Server,
    /// Sessions that were used and are free.
    sessions: Mutex<Vec<SessionId>>,
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
        let client = shell::of(target)?.client(ClientSetup {
            uri: text,
            options: None,
            token: (mechanism == Some(Mechanism::MongodbOidc)).then_some(TOKEN),
            on_event: Some(Arc::new(move |event, address| cmap.cmap(event, address))),
            on_heartbeat: Some(Arc::new(move |told| beats.heartbeat(&told.event))),
            on_topology_event: Some(Arc::new(move |told| sdam.topology(&told.event))),
        })?;
        let pool = client.pool(&shell::address(&uri)?).ok_or("a client without a pool")?;
        Ok(Self { uri, client, pool, story, server, sessions: Mutex::default() })
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

    /// Waits until there are as many connections as `minPoolSize` says.
    ///
    /// # Errors
    ///
    /// That there are fewer.
    pub(super) fn wait_for_min_pool_size(&self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            let Snapshot { available, in_use, min_pool_size, .. } = self.pool.snapshot();
            if available + in_use >= min_pool_size {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!(
                    "after {limit:?} {available} of {min_pool_size} connections are there"
                ));
            }
            thread::sleep(Duration::from_millis(5));
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
        if !sessions.is_empty() && self.pool.snapshot().available > 0 {
            // The result does not matter.
            if let Ok(mut connection) = self.pool.check_out(Purpose::Other, None) {
                let _ = self.send(&mut *connection, "admin", doc! { "endSessions": sessions });
            }
        }
        self.client.close_within(CLOSE_LIMIT)
    }
}
