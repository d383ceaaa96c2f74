//! A proxy between a client and a server on real sockets, which breaks what passes as it is told: at
//! which byte, and how.
//!
//! It looks into nothing, so that it serves any protocol, TLS or not. Each connection has a
//! [`ConnectionFault`], by a script or drawn by a seed. Besides, the network can be cut for all of them at once.
//! Open connections can be ended while they are idle, and given each other's replies.
//!
//! ```
//! use cenote_endpoint::{Endpoint, ListenOptions, Settings};
//! use cenote::proxy::{End, ConnectionFault, FaultProxy};
//! use cenote_tokio::Pool;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::start(Settings::default(), ListenOptions::default())?;
//! let proxy = FaultProxy::to(&endpoint.address())?;
//! let pool = Pool::connect_to(&proxy.uri(&endpoint.uri()))?;
//! pool.ready();
//!
//! // The next connection is reset after a hundred bytes, in the middle of hello.
//! proxy.expect([ConnectionFault::cut(100, End::Reset)]);
//! let error = pool.check_out().await.expect_err("not through this one");
//! assert!(error.to_string().contains("hello: "), "{error}");
//!
//! // All others are as they should be.
//! assert!(pool.check_out().await.is_ok());
//! # Ok(())
//! # }
//! ```

mod fault;
mod forward;

use std::collections::VecDeque;
use std::io;
use std::net::{self, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::sleep;

pub use self::fault::{ConnectionFault, Drip, End};
use self::forward::Cargo;
use cenote_replay::random::SplitMix;

/// See the module. It listens on any free port of 127.0.0.1, and ends with all of its connections when
/// it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    near: SocketAddr,
    far: SocketAddr,
    rules: Arc<Rules>,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// What the proxy is told.
#[derive(Debug)]
struct Rules {
    orders: Mutex<Orders>,
    is_cut: watch::Sender<bool>,
    holds_ends: watch::Sender<bool>,
    /// For the connections that are open.
    end: broadcast::Sender<End>,
}

#[derive(Debug, Default)]
struct Orders {
    /// Of the connections that come next.
    expected: VecDeque<ConnectionFault>,
    /// Draws the fates of the others.
    chance: Option<SplitMix>,
    /// How many pairs of connections are still to get each other's bytes.
    crossings: usize,
    /// What waits for another connection's bytes, and where those are wanted.
    crossed: Option<(Vec<u8>, oneshot::Sender<Vec<u8>>)>,
    /// How many have come.
    connections: usize,
    /// What has passed on the first of them.
    cargoes: Vec<Arc<Mutex<Cargo>>>,
}

/// After a connection that could not be let in.
const PAUSE: Duration = Duration::from_millis(10);

/// So many connections are written down: a proxy may be there for hours.
const WRITTEN_DOWN: usize = 1_000;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What the client sent.
    ToServer,
    /// What the server sent.
    ToClient,
}

impl FaultProxy {
    /// A proxy to a server, through which everything passes until it is told otherwise, the ends of
    /// connections as they were, too. Where the server refuses one, it is reset.
    ///
    /// # Errors
    ///
    /// A server whose address has no numbers, or an operating system without a port or a thread.
    pub fn to(server: &ServerAddress) -> io::Result<Self> {
        let far = server.to_string().parse().map_err(io::Error::other)?;
        let rules = Arc::<Rules>::default();
        let listener = net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let near = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let of_thread = Arc::clone(&rules);
        let thread = thread::Builder::new().name("cenote-proxy".to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    () = of_thread.accept(listener, far) => {}
                }
            });
        })?;
        Ok(Self { near, far, rules, thread: Some((stop, thread)) })
    }

    /// Where it listens.
    ///
    /// # Panics
    ///
    /// Never: an address of numbers is one.
    #[must_use]
    pub fn address(&self) -> ServerAddress {
        self.near.to_string().parse().expect("an address in numbers")
    }

    /// The same connection string, through here.
    #[must_use]
    pub fn uri(&self, uri: &str) -> String {
        uri.replacen(&self.far.to_string(), &self.near.to_string(), 1)
    }

    /// What becomes of the connections that come next, in this order. Those after them pass, or are as
    /// [chance](Self::draw) has it.
    pub fn expect(&self, fates: impl IntoIterator<Item = ConnectionFault>) {
        self.rules.lock().expected.extend(fates);
    }

    /// From now on the fates of connections that nothing is said of are drawn from this seed; `None`:
    /// they pass.
    pub fn draw(&self, seed: Option<u64>) {
        self.rules.lock().chance = seed.map(SplitMix);
    }

    /// From now on nothing passes, and nothing is lost.
    pub fn cut(&self) {
        self.rules.is_cut.send_replace(true);
    }

    /// What was held up passes.
    pub fn mend(&self) {
        self.rules.is_cut.send_replace(false);
    }

    /// Ends every open connection, as the balancers and firewalls do that close what is idle.
    pub fn end_all(&self, end: End) {
        // Without a connection there is no receiver.
        let _ = self.rules.end.send(end);
    }

    /// What the server sends next on a connection waits until it sends something on another one, and each
    /// client gets what was for the other; this many times.
    pub fn cross(&self, times: usize) {
        self.rules.lock().crossings = times;
    }

    /// Whether the end of what the server sends is held back: bytes before it, such as TLS's `close_notify`,
    /// pass, and FIN does not.
    pub fn hold_ends(&self, holds: bool) {
        self.rules.holds_ends.send_replace(holds);
    }

    /// How many connections have come.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.rules.lock().connections
    }

    /// What has passed on a connection, of those that have come: so many bytes that way, then so many
    /// the other way, and so on, sixteen times at most. `None` if there was none, or more than a
    /// thousand before it.
    #[must_use]
    pub fn passed(&self, connection: usize) -> Option<Vec<(Way, u64)>> {
        let cargo = self.rules.lock().cargoes.get(connection).map(Arc::clone)?;
        let cargo = cargo.lock().unwrap_or_else(PoisonError::into_inner);
        Some(cargo.turns().to_vec())
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            let _ = stop.send(());
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        // More orders than one connection has not seen yet are lost on it.
        const ORDERS: usize = 64;
        Self {
            orders: Mutex::default(),
            is_cut: watch::Sender::new(false),
            holds_ends: watch::Sender::new(false),
            end: broadcast::Sender::new(ORDERS),
        }
    }
}

impl Rules {
    async fn accept(self: Arc<Self>, listener: TcpListener, far: SocketAddr) {
        loop {
            // One that is gone already, or no descriptor for it: the next one may do, a little later.
            let Ok((near, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let (fault, cargo) = self.receive();
            self.wait_until_whole().await;
            // Here and not in a task of its own, so that the order is this one.
            let Ok(far) = TcpStream::connect(far).await else {
                // It was let in already, and cannot be refused any more.
                forward::reset(&near);
                continue;
            };
            let rules = Arc::clone(&self);
            tokio::spawn(async move { forward::forward(near, far, fault, cargo, &rules).await });
        }
    }

    /// The fault of the next one, and where to write down what passes.
    fn receive(&self) -> (ConnectionFault, Arc<Mutex<Cargo>>) {
        let mut orders = self.lock();
        let cargo = Arc::<Mutex<Cargo>>::default();
        orders.connections += 1;
        if orders.cargoes.len() < WRITTEN_DOWN {
            orders.cargoes.push(Arc::clone(&cargo));
        }
        let drawn = orders.chance.as_mut().map(ConnectionFault::draw);
        let fault = orders.expected.pop_front().or(drawn).unwrap_or_default();
        (fault, cargo)
    }

    /// The bytes that a client gets instead of these.
    async fn crossed(&self, bytes: Vec<u8>) -> Vec<u8> {
        let received = {
            let mut orders = self.lock();
            match orders.crossed.take() {
                Some((others, wanted)) => {
                    // That connection may have ended.
                    let _ = wanted.send(bytes);
                    return others;
                }
                None if orders.crossings == 0 => return bytes,
                None => {
                    orders.crossings -= 1;
                    let (wanted, received) = oneshot::channel();
                    orders.crossed = Some((bytes, wanted));
                    received
                }
            }
        };
        received.await.unwrap_or_default()
    }

    async fn wait_until_ends_pass(&self) {
        let _ = self.holds_ends.subscribe().wait_for(|holds| !holds).await;
    }

    async fn wait_until_whole(&self) {
        // The sender is here, so that it cannot be gone.
        let _ = self.is_cut.subscribe().wait_for(|is_cut| !is_cut).await;
    }

    /// Poisoning is ignored: orders are written whole.
    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
