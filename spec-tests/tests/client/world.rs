//! Endpoints as replica sets, clients of them, and everything that those tell.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bson::rawdoc;
use cenote::check::Sentry;
use cenote::endpoint::{Endpoint, ListenOptions, ReplicaSet, Role, Server, Settings, Topology};
use cenote_core::connect::ServerKind;
use cenote_core::pool::Event;
use cenote_tokio::{Client, PoolEvent, ServerEvent};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Longer than anything takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// How soon things happen in most stories.
pub(crate) const SOON: &str = "heartbeatFrequencyMS=500&connectTimeoutMS=500";

pub(crate) struct World {
    pub(crate) client: Client,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    pools: Mutex<Vec<PoolEvent>>,
    servers: Mutex<Vec<ServerEvent>>,
    news: Notify,
}

impl World {
    pub(crate) fn new(uri: &str) -> Self {
        let told = Arc::new(Told::default());
        let (of_pools, of_servers) = (Arc::clone(&told), Arc::clone(&told));
        let sentry = Sentry::new();
        let client = Client::builder(uri)
            .expect("a connection string")
            .on_event(move |event| {
                sentry.hear(&event.event, &event.address);
                of_pools.pools.lock().expect("no panic").push(event.clone());
                of_pools.news.notify_waiters();
            })
            .on_server_event(move |event| {
                of_servers.servers.lock().expect("no panic").push(event.clone());
                of_servers.news.notify_waiters();
            })
            .build()
            .expect("good options");
        Self { client, told }
    }

    /// Of these endpoints, in their order.
    pub(crate) fn of(endpoints: &[&Endpoint], options: &str) -> Self {
        let hosts: Vec<_> = endpoints.iter().map(|it| it.address().to_string()).collect();
        Self::new(&format!("mongodb://{}/?{options}", hosts.join(",")))
    }

    /// Until something that is told makes it so.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let wait = async {
            loop {
                let mut news = std::pin::pin!(self.told.news.notified());
                news.as_mut().enable();
                if holds(self) {
                    return;
                }
                news.await;
            }
        };
        let servers = || self.client.servers().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(timeout(LONG, wait).await.is_ok(), "never {what}: {:#?}", servers());
    }

    pub(crate) async fn until_all_known(&self) {
        self.until("all known", |world| world.kinds().iter().all(Option::is_some)).await;
    }

    pub(crate) fn kinds(&self) -> Vec<Option<ServerKind>> {
        self.client.servers().iter().map(|server| server.kind).collect()
    }

    /// Why the only server is Unknown.
    pub(crate) fn error(&self) -> Option<String> {
        let servers = self.client.servers();
        let [server] = servers.as_slice() else { panic!("{servers:?}") };
        server.description.error.as_ref().map(ToString::to_string)
    }

    /// How often that was told, of all pools together.
    pub(crate) fn count(&self, name: &str) -> usize {
        let pools = self.told.pools.lock().expect("no panic");
        pools.iter().filter(|event| event.event.name() == name).count()
    }

    pub(crate) fn pool_events(&self) -> Vec<String> {
        let pools = self.told.pools.lock().expect("no panic");
        pools.iter().map(|event| event.event.name().to_owned()).collect()
    }

    pub(crate) fn addresses_of(&self, name: &str) -> Vec<String> {
        let pools = self.told.pools.lock().expect("no panic");
        let named = pools.iter().filter(|event| event.event.name() == name);
        named.map(|event| event.address.to_string()).collect()
    }

    pub(crate) fn interrupts(&self) -> usize {
        let pools = self.told.pools.lock().expect("no panic");
        let interrupts = |event: &&PoolEvent| {
            let Event::ConnectionPoolCleared { interrupt_in_use_connections: it, .. } = event.event
            else {
                return false;
            };
            it
        };
        pools.iter().filter(interrupts).count()
    }

    pub(crate) fn server_events(&self) -> Vec<&'static str> {
        let servers = self.told.servers.lock().expect("no panic");
        servers.iter().map(|event| event.event.name()).collect()
    }

    pub(crate) async fn ping(&self) {
        let reply = self.client.command("admin", &rawdoc! { "ping": 1 }).await;
        let reply = reply.expect("a reply");
        assert!(reply.get_f64("ok").is_ok_and(|ok| ok == 1.0));
    }
}

pub(crate) fn start(topology: Topology) -> Endpoint {
    let settings = Settings { topology, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

pub(crate) fn standalone() -> Endpoint {
    start(Topology::Standalone)
}

pub(crate) fn member(role: Role) -> Endpoint {
    start(Topology::ReplicaSet(ReplicaSet { role, ..ReplicaSet::primary("rs0") }))
}

/// A primary and two secondaries.
pub(crate) fn three() -> [Endpoint; 3] {
    [member(Role::Primary), member(Role::Secondary), member(Role::Secondary)]
}

pub(crate) fn tell(endpoint: &Endpoint, act: impl FnOnce(&mut Server, Duration)) {
    endpoint.with(act);
}

pub(crate) fn open(endpoint: &Endpoint) -> u64 {
    endpoint.with(|server, _| server.statistics().open)
}

pub(crate) fn commands(endpoint: &Endpoint, name: &str) -> u64 {
    let statistics = endpoint.with(|server, _| server.statistics());
    statistics.commands.get(name).copied().unwrap_or_default()
}

/// Until the endpoint has noticed: it is another thread, and tells nobody.
pub(crate) async fn until_open(endpoint: &Endpoint, expected: u64) {
    let wait = async {
        while open(endpoint) != expected {
            tokio::task::yield_now().await;
        }
    };
    let waited = timeout(LONG, wait).await;
    assert!(waited.is_ok(), "{} sockets, not {expected}", open(endpoint));
}
