//! From a name to addresses.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clerks::Clerks;
use crate::event_loop::{Answer, EventLoop, promise};

/// A name whose addresses are wanted: what [`MongoConnector::with_resolver`](crate::MongoConnector::with_resolver)
/// asks. Dropped without an [answer](Self::answer), it is an error.
pub struct Lookup {
    host: String,
    port: u16,
    answer: Answer<Outcome>,
}

/// Errors are shared by those who wait for the same answer.
pub(super) type Outcome = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// Who is asked.
pub(super) enum Resolver {
    /// The operating system, on threads that live for as long as that takes. Those of another event
    /// loop were left behind by a fork, and answer nobody.
    System(Mutex<Option<(EventLoop, Arc<Clerks>)>>),
    /// Whatever the application brings.
    Own(Box<dyn Fn(Lookup) + Send + Sync>),
}

impl Lookup {
    /// The name, which is none of numbers.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, which belongs to each address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The addresses, in the order in which they are to be tried; from any thread, at once or later.
    pub fn answer(self, addresses: io::Result<Vec<SocketAddr>>) {
        self.answer.give(addresses.map_err(Arc::new));
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::System(Mutex::default())
    }
}

impl Resolver {
    pub(super) async fn resolve(
        &self,
        event_loop: &EventLoop,
        host: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let promise = match self {
            Self::System(clerks) => clerks_of(clerks, event_loop).ask(event_loop, host, port),
            Self::Own(resolve) => {
                let (promise, answer) = promise();
                resolve(Lookup { host: host.to_owned(), port, answer });
                promise
            }
        };
        let outcome = poll_fn(|cx| promise.poll_copy(cx)).await;
        outcome?.map_err(|error| io::Error::new(error.kind(), error))
    }
}

fn clerks_of(
    clerks: &Mutex<Option<(EventLoop, Arc<Clerks>)>>,
    event_loop: &EventLoop,
) -> Arc<Clerks> {
    let mut clerks = lock(clerks);
    match &*clerks {
        Some((of, clerks)) if of.is(event_loop) => Arc::clone(clerks),
        Some(_) | None => Arc::clone(&clerks.insert((event_loop.clone(), Arc::default())).1),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
