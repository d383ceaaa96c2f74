//! The endpoint on real sockets: TCP or a UNIX domain socket, with TLS or without.

mod accept;
mod certificates;
mod connection;
mod host;
mod socket;
mod tls;
mod tls_fault;
mod uri;

use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cenote_core::address::ServerAddress;
use thiserror::Error;
use tokio::sync::oneshot;

use self::accept::Listener;
use self::host::Host;
use self::tls::Tls;
use self::uri::Coordinates;
use super::{ReplicaSet, Server, Settings, SettingsError, Topology, User};

pub use self::accept::ListenAddress;
pub use self::certificates::{CertificateError, Certificates, Identity, ServerCertificate};
pub use self::tls::TlsOptions;
pub use self::tls_fault::TlsFault;

/// How an endpoint listens; [`ListenOptions::default`] is any free port of 127.0.0.1 without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Where.
    pub place: ListenAddress,
    /// With TLS, if there is something here.
    pub tls: Option<TlsOptions>,
    /// With TLS the server shows this instead of a certificate of the endpoint's own authority. Its
    /// connection string still names that authority.
    pub identity: Option<Arc<Identity>>,
    /// How many threads serve all connections; one by default.
    pub threads: NonZeroUsize,
}

/// A [`Server`] on real sockets and threads of its own. It ends when it is dropped: no thread, no
/// socket and no file is left then.
///
/// ```
/// use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
/// use cenote_core::uri::ConnectionString;
///
/// let settings = Settings { users: vec![User::new("app", "pencil")], ..Settings::default() };
/// let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;
/// // Any client can use this as it is.
/// let uri = ConnectionString::parse(&endpoint.uri())?;
/// assert!(uri.tls.enabled());
///
/// // Faults, fail points, topology, statistics: whatever the server can be told and asked.
/// assert_eq!(endpoint.with(|server, _now| server.statistics()).open, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Endpoint {
    host: Arc<Host>,
    place: ListenAddress,
    user: Option<User>,
    tls: Option<TlsOptions>,
    certificates: Option<Arc<Certificates>>,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// Why an endpoint does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings of the server make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// There is nothing to show to clients.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The place is taken, or must not be used.
    #[error("cannot listen on {place}")]
    Listen {
        /// Where.
        place: ListenAddress,
        /// Why.
        source: io::Error,
    },
    /// The operating system has no thread or no entropy to give.
    #[error("the operating system refuses what an endpoint needs")]
    System(#[source] io::Error),
}

impl ListenOptions {
    /// Any free port of 127.0.0.1, with TLS and a good certificate.
    #[must_use]
    pub fn with_tls() -> Self {
        Self { tls: Some(TlsOptions::default()), ..Self::default() }
    }
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            place: ListenAddress::Tcp { port: 0 },
            tls: None,
            identity: None,
            threads: NonZeroUsize::MIN,
        }
    }
}

impl Endpoint {
    /// Makes certificates if there is to be TLS, and listens when it returns. The server is told
    /// its address and the time; settings without a seed get one from the operating system.
    ///
    /// # Errors
    ///
    /// Settings that make no sense, or a place that is taken.
    pub fn start(settings: Settings, options: ListenOptions) -> Result<Self, StartError> {
        Self::start_with(settings, options, None)
    }

    /// Starts another endpoint whose certificates are those of this one, if both have TLS: a client can use the
    /// servers of one deployment with one connection string.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_beside(
        &self,
        settings: Settings,
        options: ListenOptions,
    ) -> Result<Self, StartError> {
        Self::start_with(settings, options, self.certificates.clone())
    }

    /// From now on each of these members of a replica set names all of them, where they listen. Servers of other kinds stay
    /// as they are.
    pub fn join(members: &[&Self]) {
        let hosts: Vec<_> = members.iter().map(|member| member.address().to_string()).collect();
        for (member, me) in members.iter().zip(&hosts) {
            member.with(|server, now| {
                if let Topology::ReplicaSet(set) = server.topology().clone() {
                    let set = ReplicaSet { hosts: hosts.clone(), me: Some(me.clone()), ..set };
                    server.set_topology(now, Topology::ReplicaSet(set));
                }
            });
        }
    }

    fn start_with(
        settings: Settings,
        options: ListenOptions,
        certificates: Option<Arc<Certificates>>,
    ) -> Result<Self, StartError> {
        let ListenOptions { place, tls, identity, threads } = options;
        let certificates = match (tls, certificates) {
            (Some(_), None) => Some(Arc::new(Certificates::new()?)),
            (Some(_), of_another) => of_another,
            (None, _) => None,
        };
        let acceptor = match (tls, &certificates) {
            (Some(options), Some(certificates)) => {
                Some(Arc::new(Tls::new(Arc::clone(certificates), options, identity.as_deref())?))
            }
            _ => None,
        };
        let user = settings.users.first().cloned();
        let (tell, told) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("cenote-endpoint".to_owned());
        let thread = thread
            .spawn(move || match prepare(settings, &place, threads) {
                Ok((runtime, host, listener, place)) => {
                    let _ = tell.send(Ok((Arc::clone(&host), place.clone())));
                    let accepting =
                        accept::accept(Arc::clone(&host), place.clone(), listener, acceptor);
                    runtime.spawn(accepting);
                    runtime.spawn(async move { host.keep_time().await });
                    let _ = runtime.block_on(stopped);
                    drop(runtime);
                    place.vacate();
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            })
            .map_err(StartError::System)?;
        let (host, place) = told.recv().map_err(|_| {
            StartError::System(io::Error::other("the endpoint's thread ended by itself"))
        })??;
        // A script may refuse connections from the start on.
        host.with(|_, _| ());
        Ok(Self { host, place, user, tls, certificates, thread: Some((stop, thread)) })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn place(&self) -> &ListenAddress {
        &self.place
    }

    /// Where it listens, as a MongoDB address.
    ///
    /// # Panics
    ///
    /// For a UNIX domain socket whose path is not a MongoDB address: not UTF-8, or not ending in
    /// `.sock`.
    #[must_use]
    pub fn address(&self) -> ServerAddress {
        let address = match &self.place {
            ListenAddress::Tcp { port } => ServerAddress::tcp("127.0.0.1", *port),
            ListenAddress::Unix { path } => ServerAddress::unix(&path.to_string_lossy()),
        };
        address.expect("an address")
    }

    /// A connection string that any client can use as it is: as the first of the users, if there
    /// are any, with the files that TLS needs, and with what the topology needs.
    #[must_use]
    pub fn uri(&self) -> String {
        self.uri_of(self.user.as_ref())
    }

    /// The connection string for another user, or without a user.
    #[must_use]
    pub fn uri_of(&self, user: Option<&User>) -> String {
        let topology = self.host.with(|server, _| server.topology().clone());
        let coordinates = Coordinates {
            place: &self.place,
            topology: &topology,
            certificates: self.certificates(),
            requires_client_certificate: self
                .tls
                .is_some_and(|options| options.requires_client_certificate),
        };
        coordinates.uri(user)
    }

    /// The authority that signed what the server shows; `None` without TLS.
    #[must_use]
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_deref()
    }

    /// Runs `act` on the server with its current time. If that starts or stops listening, returns when it
    /// is done, which may take until another process releases the address. Blocks for the server's lock,
    /// which is held briefly.
    pub fn with<R>(&self, act: impl FnOnce(&mut Server, Duration) -> R) -> R {
        self.host.with(act)
    }

    /// What goes wrong in TLS handshakes that begin from now on; `None` for nothing. Without TLS
    /// it changes nothing.
    pub fn set_tls_fault(&self, fault: Option<TlsFault>) {
        self.host.set_tls_fault(fault);
    }

    /// How many TLS handshakes have resumed the session of an earlier connection.
    #[must_use]
    pub fn resumed_handshakes(&self) -> u64 {
        self.host.resumed()
    }

    /// Ends all connections and threads, as dropping does.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            let _ = stop.send(());
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

type Prepared = (tokio::runtime::Runtime, Arc<Host>, Listener, ListenAddress);

/// Everything that may fail before the first connection comes.
fn prepare(
    mut settings: Settings,
    place: &ListenAddress,
    threads: NonZeroUsize,
) -> Result<Prepared, StartError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.get())
        .thread_name("cenote-endpoint")
        .enable_all()
        .build()
        .map_err(StartError::System)?;
    let (listener, place) = {
        let _context = runtime.enter();
        let refused = |source| StartError::Listen { place: place.clone(), source };
        let listener = place.listen().map_err(refused)?;
        let place = listener.place(place).map_err(refused)?;
        (listener, place)
    };
    settings.address = place.to_string();
    // Read together: elections at several endpoints are ordered by their wall clocks.
    let (start, wall_clock) = (Instant::now(), SystemTime::now());
    settings.started_at = wall_clock.duration_since(UNIX_EPOCH).unwrap_or_default();
    if settings.seed.is_none() {
        let seed = getrandom::u64().map_err(|error| StartError::System(error.into()))?;
        settings.seed = Some(seed);
    }
    let server = Server::new(settings)?;
    let host = Arc::new(Host::new(server, start));
    Ok((runtime, host, listener, place))
}
