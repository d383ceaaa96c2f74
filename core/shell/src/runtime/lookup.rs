use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use super::signal::Signal;

/// What resolves names.
pub(crate) type Resolver = dyn Fn(Lookup) + Send + Sync;

/// A host name to resolve, as given to
/// [`MongoConnector::with_resolver`](crate::connection::MongoConnector::with_resolver). Dropped without an
/// [answer](Self::answer), the lookup fails.
pub struct Lookup {
    host: String,
    port: u16,
    answer: Arc<Answer>,
}

#[derive(Default)]
struct Answer {
    outcome: Mutex<Option<io::Result<Vec<SocketAddr>>>>,
    given: Signal,
}

impl Lookup {
    /// The host name. It is never an IP address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, which is part of each address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether its answer is waited for. Once it is not, it never is again.
    pub(super) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.answer) > 1
    }

    /// Gives the addresses in the order in which they are tried, or why there are none. From any
    /// thread, now or later.
    pub fn answer(self, addresses: io::Result<Vec<SocketAddr>>) {
        self.answer.give(addresses);
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        self.answer.give(Err(io::Error::other("the resolver gave no answer")));
    }
}

impl Answer {
    /// The first outcome counts. An outcome that was taken already is asked for by nothing.
    fn give(&self, outcome: io::Result<Vec<SocketAddr>>) {
        let mut given = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        given.get_or_insert(outcome);
        drop(given);
        self.given.notify_all();
    }

    fn take(&self) -> Option<io::Result<Vec<SocketAddr>>> {
        mem::take(&mut *self.outcome.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Asks a resolver, and waits for its answer.
pub(crate) async fn ask(
    resolver: &(impl Fn(Lookup) + Sync + ?Sized),
    host: &str,
    port: u16,
) -> io::Result<Vec<SocketAddr>> {
    let answer = Arc::<Answer>::default();
    resolver(Lookup { host: host.to_owned(), port, answer: Arc::clone(&answer) });
    loop {
        let given = answer.given.listen();
        if let Some(outcome) = answer.take() {
            return outcome;
        }
        given.await;
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
