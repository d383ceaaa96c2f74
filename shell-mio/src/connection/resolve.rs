//! From a name to addresses.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use crate::event_loop::{Answer, EventLoop, Promise, promise};

/// A name whose addresses are wanted: what [`Mongo::with_resolver`](crate::Mongo::with_resolver)
/// asks. Dropped without an [answer](Self::answer), it is an error.
pub struct Lookup {
    host: String,
    port: u16,
    answer: Answer<Outcome>,
}

/// Errors are shared by those who wait for the same answer.
type Outcome = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// Who is asked.
pub(super) enum Resolver {
    /// The operating system, on a thread that lives for as long as that takes. All who ask
    /// meanwhile get the same answer.
    System(Mutex<Option<UnderWay>>),
    /// Whatever the application brings.
    Own(Box<dyn Fn(Lookup) + Send + Sync>),
}

pub(super) struct UnderWay {
    event_loop: EventLoop,
    host: String,
    port: u16,
    promise: Promise<Outcome>,
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
            Self::System(under_way) => {
                let mut under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
                match &*under_way {
                    Some(other) if other.is(event_loop, host, port) => other.promise.clone(),
                    Some(_) | None => {
                        let promise = ask_system(event_loop, host.to_owned(), port)?;
                        let (event_loop, host) = (event_loop.clone(), host.to_owned());
                        let new = UnderWay { event_loop, host, port, promise: promise.clone() };
                        *under_way = Some(new);
                        promise
                    }
                }
            }
            Self::Own(resolve) => {
                let (promise, answer) = promise();
                resolve(Lookup { host: host.to_owned(), port, answer });
                promise
            }
        };
        let outcome = poll_fn(|cx| promise.poll_copy(cx)).await;
        self.forget(&promise);
        outcome?.map_err(|error| io::Error::new(error.kind(), error))
    }

    /// Who asks from now on gets an answer of its own.
    fn forget(&self, promise: &Promise<Outcome>) {
        if let Self::System(under_way) = self {
            let mut under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
            drop(under_way.take_if(|other| other.promise.is(promise)));
        }
    }
}

fn ask_system(event_loop: &EventLoop, host: String, port: u16) -> io::Result<Promise<Outcome>> {
    event_loop.promise_on_thread(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        found.map(Iterator::collect).map_err(Arc::new)
    })
}

impl UnderWay {
    /// One that is of another event loop was left behind by a fork, and will never come.
    fn is(&self, event_loop: &EventLoop, host: &str, port: u16) -> bool {
        self.event_loop.is(event_loop) && self.host == host && self.port == port
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
