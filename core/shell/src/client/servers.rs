use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientSettings, SelectionError, Selector, ServerStatus, choose, seen};

use super::{ClientPool, Server};
use crate::monitor::MonitorRuntime;

/// All servers of a client, in the order of the connection string.
#[derive(Debug)]
pub struct Servers<P, M> {
    all: Vec<Arc<Server<P, M>>>,
    settings: ClientSettings,
    is_closed: AtomicBool,
}

impl<P, M> Servers<P, M> {
    /// One for each of the [hosts](ClientSettings::hosts), in their order.
    #[must_use]
    pub const fn new(all: Vec<Arc<Server<P, M>>>, settings: ClientSettings) -> Self {
        Self { all, settings, is_closed: AtomicBool::new(false) }
    }

    /// What the connection string says of all of them.
    pub const fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// Each of them.
    pub fn iter(&self) -> slice::Iter<'_, Arc<Server<P, M>>> {
        self.all.iter()
    }

    /// That of a host.
    pub fn get(&self, address: &ServerAddress) -> Option<&Arc<Server<P, M>>> {
        self.all.get(self.settings.place_of(address)?)
    }

    /// Whoever waits for one is to hear that there will be none.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }
}

impl<P: ClientPool, M: MonitorRuntime> Servers<P, M> {
    /// What is known of each now.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.iter().map(|server| server.status()).collect()
    }

    /// One that fits, as last seen, if the client is not closed: for who has not waited yet.
    pub fn choose(&self, selector: &Selector) -> Option<&Arc<Server<P, M>>> {
        self.fitting(selector).filter(|_| !self.is_closed())
    }

    /// One that fits, or `None`: then it is waited for, until there is news of one. Has servers checked
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Waiting would not help.
    pub fn look(&self, selector: &Selector) -> Result<Option<&Arc<Server<P, M>>>, SelectionError> {
        if let Selector::Address(address) = selector {
            if self.candidates(selector).next().is_none() {
                return Err(SelectionError::NotOfThisClient { address: address.clone() });
            }
        }
        if self.is_closed() {
            return Err(SelectionError::Closed);
        }
        if let Some(server) = self.fitting(selector) {
            return Ok(Some(server));
        }
        let is_hopeless = self.candidates(selector).all(|server| server.is_hopeless());
        self.candidates(selector).for_each(|server| server.request_check());
        if is_hopeless {
            let (selector, servers) = (selector.clone(), self.seen());
            return Err(SelectionError::Hopeless { selector, servers });
        }
        Ok(None)
    }

    /// Whoever waited `after` so long waits no longer.
    pub fn timed_out(&self, selector: &Selector, after: Duration) -> SelectionError {
        let (selector, servers) = (selector.clone(), self.seen());
        SelectionError::TimedOut { selector, after, servers }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn fitting(&self, selector: &Selector) -> Option<&Arc<Server<P, M>>> {
        let servers = self.candidates(selector);
        choose(selector, servers, |server| server.candidate(), |server| server.pool.snapshot())
    }

    fn candidates(&self, selector: &Selector) -> slice::Iter<'_, Arc<Server<P, M>>> {
        self.all.get(self.settings.places(selector)).unwrap_or_default().iter()
    }

    fn seen(&self) -> String {
        seen(self.iter().map(|server| server.status()))
    }
}
