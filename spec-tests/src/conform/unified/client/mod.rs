//! A minimal client that makes the files runnable: one server, one pool, a monitor that polls, sessions,
//! one retry where that is safe. It is for tests only, and not a driver.
//!
//! ```text
//! story         what was told
//! server        what is known of the server, and what failures do to it
//! monitor       asks the server, and makes the pool ready
//! command       sends a command, on a connection or wherever, once or more
//! cursor        results in batches, on the connection where they began
//! session       transactions, on the connection where they began
//! ```

pub(super) mod command;
pub(super) mod cursor;
mod error;
mod monitor;
mod server;
pub(super) mod session;
mod session_id;
pub(super) mod story;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bson::{Document, doc};
use cenote_core::connect::DriverInfo;
use cenote_core::pool::Purpose;
use cenote_core::uri::ConnectionString;

pub(super) use self::error::Failure;
use self::monitor::Monitor;
use self::server::Server;
use self::session_id::SessionId;
use self::story::Story;
use crate::conform::lock::lock;
use crate::conform::shell::{self, CLOSE_LIMIT, Pool, PoolSetup};
use crate::conform::target::Target;

/// A client of one server.
pub(super) struct Client {
    uri: ConnectionString,
    pool: Arc<dyn Pool>,
    server: Arc<Server>,
    story: Arc<Story>,
    monitor: Mutex<Option<Monitor>>,
    /// Sessions that were used and are free.
    sessions: Mutex<Vec<SessionId>>,
}

impl Client {
    /// How long an operation waits for a server, if the connection string does not say.
    const SERVER_SELECTION_TIMEOUT: Duration = Duration::from_secs(30);

    /// Makes the pool, and begins to watch the server.
    ///
    /// # Errors
    ///
    /// Whatever keeps a pool from being made.
    pub(super) fn new(target: Target, uri: ConnectionString) -> Result<Self, String> {
        let story = Arc::new(Story::begin());
        let load_balanced = uri.pool.load_balanced == Some(true);
        let server = Arc::new(Server::new(Arc::clone(&story), load_balanced));
        let (heard, watching) = (Arc::clone(&story), Arc::clone(&server));
        let pool = shell::of(target)?.pool(PoolSetup {
            uri: uri.clone(),
            options: uri.pool.clone(),
            server_api: None,
            metadata: None,
            log: None,
            on_event: Arc::new(move |event, address| heard.cmap(event, address)),
            on_failure: Some(Arc::new(move |failed| watching.heed(failed))),
        })?;
        let monitor = if load_balanced {
            pool.ready(); // A load balancer is not monitored (LB-08).
            None
        } else {
            Some(Monitor::start(&uri, Arc::clone(&server), Arc::clone(&pool))?)
        };
        let (monitor, sessions) = (Mutex::new(monitor), Mutex::default());
        Ok(Self { uri, pool, server, story, monitor, sessions })
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
        self.pool.append_metadata(driver);
    }

    /// Closes the pool while it is in use.
    pub(super) fn break_off(&self) {
        let _ = self.pool.close_within(CLOSE_LIMIT);
    }

    /// Ends its sessions, stops watching, closes the pool.
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
                let _ =
                    self.send(&mut *connection, "admin", doc! { "endSessions": sessions }, None);
            }
        }
        if let Some(monitor) = lock(&self.monitor).take() {
            monitor.stop();
        }
        self.pool.close_within(CLOSE_LIMIT)
    }
}
