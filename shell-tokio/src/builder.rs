use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{Instant, InvalidOptions, PoolOptions, PoolState};
use cenote_core::uri::{ConnectionString, UriError};
use cenote_shell::trace::{self, RecordingError, TraceOptions};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use crate::connection::Mongo;
use crate::connector::Connector;
use crate::desk::Desk;
use crate::event::{PoolEvent, Subscriber};
use crate::failure::{Failure, Watcher};
use crate::held::{HeldTooLong, Overseer};
use crate::log;
use crate::pool::Pool;
use crate::shared::{Audience, Shared};

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
    /// thread of whoever uses the pool, one call at a time; meanwhile others are served, and sockets
    /// opened, broken off and closed. Who has begun to tell events tells those of everybody else until
    /// there are none, be it in a guard's drop: a subscriber that takes longer than the pool takes to
    /// give it work keeps that thread and fills the memory. One that takes microseconds sends them
    /// [elsewhere](Self::event_channel). It may use the pool. If it panics, nobody else notices.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.subscribers.push(Box::new(subscriber));
        self
    }

    /// Sends every event into a channel, until its receiver is dropped.
    #[must_use]
    pub fn event_channel(self, sender: UnboundedSender<PoolEvent>) -> Self {
        self.on_event(move |event| drop(sender.send(event.clone())))
    }

    /// Shows `watcher` every connection that could not be established, and every error of one that
    /// is in use, before the pool and the caller hear of it: so that SDAM may mark the server as
    /// unknown and [clear the pool](Failure::clear) first, as the specification orders (ES-05). Not
    /// shown is what says nothing about the server: that the pool gave a connection up, or
    /// interrupted it, or that somebody stopped in the middle of an exchange.
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

    /// Makes the pool, which is paused.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a file or folder for traces that cannot be made.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without time. Connections are opened on that one, whoever
    /// asks for them.
    pub fn build(self) -> Result<Pool<K>, BuildError> {
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
        // Panics where there is no time, here and not in the pool's timer when something is due.
        drop(tokio::time::sleep(Duration::ZERO));
        let mut first = VecDeque::new();
        let state = PoolState::new(Instant::ORIGIN, options, &mut first)?;
        let program = concat!("cenote-tokio ", env!("CARGO_PKG_VERSION"));
        let (state, traces) = tracing.begin(state, &address, program)?;
        let desk = Desk::new(state, first);
        let audience = Audience { subscribers, watcher, overseer, traces };
        let shared = Shared::new(Arc::new(address), connector, audience, Handle::current(), desk);
        trace::watch(&shared);
        when_built.into_iter().for_each(|act| act(&shared));
        Ok(Pool::start(shared))
    }
}

impl<K: Connector> Builder<K> {
    #[cfg(feature = "metrics")]
    pub(crate) fn when_built(
        mut self,
        act: impl FnOnce(&Arc<Shared<K>>) + Send + Sync + 'static,
    ) -> Self {
        self.when_built.push(Box::new(act));
        self
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
