use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{Instant, InvalidOptions, PoolOptions, PoolState};
use cenote_core::uri::{ConnectionString, UriError};
use cenote_shell::trace::{self, RecordingError, TraceOptions};
use thiserror::Error;

use crate::connection::Mongo;
use crate::connector::Connector;
use crate::desk::Desk;
use crate::event::{PoolEvent, Subscriber};
use crate::event_loop::EventLoop;
use crate::failure::{Failure, Watcher};
use crate::held::{HeldTooLong, Overseer};
use crate::pool::Pool;
use crate::shared::{Audience, Shared};
use crate::{log, thread, timer};

/// Makes a [`Pool`].
pub struct Builder<K: Connector> {
    address: ServerAddress,
    connector: K,
    options: PoolOptions,
    subscribers: Vec<Subscriber>,
    watcher: Option<Watcher<K>>,
    overseer: Option<Overseer>,
    pub(crate) tracing: TraceOptions,
    when_built: Vec<WhenBuilt<K>>,
}

/// What is done with a pool as soon as it is there.
type WhenBuilt<K> = Box<dyn FnOnce(&Arc<Shared<K>>) + Send + Sync>;

/// Why there is no pool.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The connection string is none.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The options contradict each other.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// No connection could ever be made: a file that cannot be read, a credential that cannot be
    /// used.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// What was to be recorded could not be written anywhere.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The operating system has no event loop or no thread for it.
    #[error("no event loop for the pool: {0}")]
    EventLoop(Arc<io::Error>),
}

impl Builder<Mongo> {
    /// A pool for the first host of a connection string. Options of it that are not known, or have
    /// values that they cannot have, are ignored with a warning through `tracing` (OP-35, OP-36).
    ///
    /// # Errors
    ///
    /// A connection string that is none, or files of it that cannot be read.
    pub fn from_uri(uri: &str) -> Result<Self, BuildError> {
        let uri = ConnectionString::parse(uri)?;
        uri.warnings().iter().for_each(log::connection_string);
        let address = uri.hosts.first().cloned();
        let address = address.unwrap_or_else(|| unreachable!("a connection string has a host"));
        Ok(Self::new(address, Mongo::new(&uri)?).options(uri.pool))
    }
}

impl<K: Connector> Builder<K> {
    /// A pool of what `connector` makes.
    #[must_use]
    pub fn new(address: ServerAddress, connector: K) -> Self {
        let (options, subscribers) = (PoolOptions::default(), Vec::new());
        Self {
            address,
            connector,
            options,
            subscribers,
            watcher: None,
            overseer: None,
            tracing: TraceOptions::default(),
            when_built: Vec::new(),
        }
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Takes these options and no others: those of a connection string are forgotten.
    #[must_use]
    pub fn options(mut self, options: PoolOptions) -> Self {
        self.options = options;
        self
    }

    /// Tells `subscriber` every event, in the machine's order and never under a lock. It runs on the
    /// thread of whoever uses the pool, or of its loop, one call at a time. On a thread that uses the
    /// pool it keeps nobody else: others are served, and sockets opened, broken off and closed
    /// meanwhile. On the loop's thread, nothing is opened until it is done. It may use the pool, but
    /// not wait for it: a check-out that is not served at once would wait for what comes after this
    /// call. If it panics, nobody else notices.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.subscribers.push(Box::new(subscriber));
        self
    }

    /// Sends every event into a channel, until its receiver is dropped.
    #[must_use]
    pub fn event_channel(self, sender: Sender<PoolEvent>) -> Self {
        self.on_event(move |event| drop(sender.send(event.clone())))
    }

    /// Shows `watcher` every connection that could not be established, and every error of one that
    /// is in use, before the pool and the caller hear of it: so that SDAM may mark the server as
    /// unknown and [clear the pool](Failure::clear) first, as the specification orders (ES-05). Not
    /// shown is what says nothing about the server: that the pool gave a connection up, or
    /// interrupted it, or that somebody stopped in the middle of a command.
    ///
    /// It runs on the thread where the failure was noticed, several calls at a time, never under a
    /// lock, and must not block. It may use the pool. If it panics, nobody else notices. The last one
    /// that is set counts.
    #[must_use]
    pub fn on_failure(mut self, watcher: impl Fn(&Failure<'_, K>) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// Shows `overseer` every connection that is held for as long as
    /// [`held_too_long`](PoolOptions::held_too_long) says, once for each time that it is checked out,
    /// with the place in the application where that was. Without that option nothing is reported, and
    /// nothing noted. A warning through `tracing` says the same.
    ///
    /// It runs as subscribers do, never under a lock. The last one that is set counts.
    #[must_use]
    pub fn on_held_too_long(
        mut self,
        overseer: impl Fn(&HeldTooLong) + Send + Sync + 'static,
    ) -> Self {
        self.overseer = Some(Box::new(overseer));
        self
    }

    /// Makes the pool, which is paused, and the thread that turns its event loop.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; no event loop, or no thread, to be had; a file or folder for
    /// traces that cannot be made.
    pub fn build(self) -> Result<Pool<K>, BuildError> {
        let (event_loop, poll) = thread::event_loop()?;
        let pool = Pool::new(self.build_on(&event_loop)?);
        // If there is none, the pool goes as it came.
        pool.shared().start_thread(event_loop, poll)?;
        Ok(pool)
    }

    /// Makes the pool; somebody else turns the loop.
    pub(crate) fn build_on(self, event_loop: &EventLoop) -> Result<Arc<Shared<K>>, BuildError> {
        let Self {
            address,
            connector,
            options,
            subscribers,
            watcher,
            overseer,
            tracing,
            when_built,
        } = self;
        let mut first = VecDeque::new();
        let state = PoolState::new(Instant::ORIGIN, options, &mut first)?;
        let program = concat!("cenote-mio ", env!("CARGO_PKG_VERSION"));
        let (state, traces) = tracing.begin(state, &address, program)?;
        let desk = Desk::new(state, first, event_loop.clone());
        let audience = Audience { subscribers, watcher, overseer, traces };
        let shared = Shared::new(Arc::new(address), connector, audience, desk);
        timer::start(&shared, event_loop);
        trace::watch(&shared);
        when_built.into_iter().for_each(|act| act(&shared));
        Ok(shared)
    }
}

#[cfg(feature = "metrics")]
impl<K: Connector> Builder<K> {
    pub(crate) fn when_built(
        mut self,
        act: impl FnOnce(&Arc<Shared<K>>) + Send + Sync + 'static,
    ) -> Self {
        self.when_built.push(Box::new(act));
        self
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::EventLoop(Arc::new(error))
    }
}

impl<K: Connector> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("address", &self.address)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
