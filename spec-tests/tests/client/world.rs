//! Clients of endpoints, and everything that those tell.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_check::EventGuard;
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector};
use cenote_core::connect::ServerKind;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{Event, PoolOptions};
use cenote_endpoint::{
    Endpoint, ListenOptions, NameServer, ReplicaSet, Role, Server, Settings, Topology,
};
use cenote_shell::client::ClientBuildError;
use cenote_tokio::PoolEvent;

use crate::sdam_rules::{SdamEvent, SdamGuard};
use crate::shells::{
    AnyClient, AnyConnection, ClientSetup, NameService, Recordings, Shell, Subscribers, client,
};

/// Longer than anything takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// How soon things happen in most stories.
pub(crate) const SOON: &str = "heartbeatFrequencyMS=500&connectTimeoutMS=2000";

pub(crate) struct World {
    pub(crate) client: Box<dyn AnyClient>,
    told: Arc<Told>,
    token: Arc<()>,
}

#[derive(Default)]
struct Told {
    tales: Mutex<Tales>,
    news: Condvar,
}

#[derive(Default)]
struct Tales {
    pools: Vec<(Arc<ServerAddress>, Event<ConnectionError>)>,
    /// In one order for the whole client.
    servers: Vec<SdamEvent>,
}

impl Told {
    fn subscribers(token: &Arc<()>) -> (Arc<Self>, Subscribers) {
        let told = Arc::new(Self::default());
        let [of_pools, of_monitors, of_servers] = [(); 3].map(|()| Arc::clone(&told));
        // Whatever the story: every rule about events is kept.
        let guard = EventGuard::new();
        let sdam = Arc::new(SdamGuard::default());
        let also_sdam = Arc::clone(&sdam);
        let subscribers = Subscribers {
            pools: Some(Box::new(move |event, address| {
                guard.hear(event, address);
                let tale = (Arc::clone(address), event.clone());
                of_pools.note(|tales| tales.pools.push(tale));
            })),
            heartbeats: Some(Box::new(move |event| {
                let event = SdamEvent::Heartbeat(event.clone());
                sdam.hear(&event);
                of_monitors.note(|tales| tales.servers.push(event));
            })),
            topology: vec![Box::new(move |event| {
                let event = SdamEvent::Topology(event.clone());
                also_sdam.hear(&event);
                of_servers.note(|tales| tales.servers.push(event));
            })],
            token: Arc::clone(token),
            ..Subscribers::default()
        };
        (told, subscribers)
    }

    fn note(&self, note: impl FnOnce(&mut Tales)) {
        note(&mut self.tales());
        self.news.notify_all();
    }

    fn tales(&self) -> MutexGuard<'_, Tales> {
        self.tales.lock().expect("no panic")
    }
}

impl World {
    pub(crate) fn new(shell: Shell, uri: &str) -> Self {
        Self::with_options(shell, uri, None)
    }

    pub(crate) fn with_options(shell: Shell, uri: &str, options: Option<PoolOptions>) -> Self {
        let token = Arc::default();
        let (told, subscribers) = Told::subscribers(&token);
        Self { client: client(shell, uri, options, subscribers), told, token }
    }

    /// Of these endpoints, with what is recorded.
    pub(crate) fn recorded(
        shell: Shell,
        endpoints: &[&Endpoint],
        options: &str,
        recording: &Recordings,
    ) -> Self {
        let hosts: Vec<_> = endpoints.iter().map(|it| it.address().to_string()).collect();
        let uri = format!("mongodb://{}/?{options}", hosts.join(","));
        let token = Arc::default();
        let (told, subscribers) = Told::subscribers(&token);
        let setup =
            ClientSetup { recordings: recording.clone(), subscribers, ..ClientSetup::default() };
        let client = shell.build_client(&uri, setup).expect("good options");
        Self { client, told, token }
    }

    /// How often the client below looks its servers up again.
    pub(crate) const SRV_INTERVAL: Duration = Duration::from_millis(100);

    /// Of the servers that a name server names for `mongodb+srv://`.
    pub(crate) fn srv(
        shell: Shell,
        uri: &str,
        names: &NameServer,
    ) -> Result<Self, ClientBuildError> {
        let folder = tempfile::tempdir().expect("a folder");
        Self::srv_at(shell, uri, names, &folder.path().join("pools.sock"))
    }

    /// As [`srv`](Self::srv), with the socket at which its pools can be inspected.
    pub(crate) fn srv_at(
        shell: Shell,
        uri: &str,
        names: &NameServer,
        socket: &Path,
    ) -> Result<Self, ClientBuildError> {
        let token = Arc::default();
        let (told, subscribers) = Told::subscribers(&token);
        let names = NameService::new(names.address(), Self::SRV_INTERVAL);
        let (names, inspect) = (Some(names), Some(socket));
        let setup = ClientSetup { names, inspect, subscribers, ..ClientSetup::default() };
        let client = shell.build_client(uri, setup)?;
        Ok(Self { client, told, token })
    }

    /// Of these endpoints, in their order.
    pub(crate) fn of(shell: Shell, endpoints: &[&Endpoint], options: &str) -> Self {
        let addresses: Vec<_> = endpoints.iter().map(|it| it.address()).collect();
        Self::at(shell, &addresses, options)
    }

    pub(crate) fn at(shell: Shell, addresses: &[ServerAddress], options: &str) -> Self {
        let hosts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        Self::new(shell, &format!("mongodb://{}/?{options}", hosts.join(",")))
    }

    /// Until something that is told makes it so.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + LONG;
        loop {
            let before = self.told.tales().count();
            if holds(self) {
                return;
            }
            let servers = || self.client.servers().iter().map(ToString::to_string).collect();
            let mut tales = self.told.tales();
            while tales.count() == before {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    drop(tales);
                    let servers: Vec<String> = servers();
                    panic!("never {what}: {servers:#?}");
                }
                tales = self.told.news.wait_timeout(tales, left).expect("no panic").0;
            }
        }
    }

    pub(crate) fn until_all_known(&self) {
        self.until("all known", |world| world.kinds().iter().all(Option::is_some));
    }

    /// How many pools there are in memory, those of servers that were removed among them.
    pub(crate) fn pools(&self) -> usize {
        // This world has the token, too, and the client for pools that it makes later.
        Arc::strong_count(&self.token) - 2
    }

    /// What the servers are, in the order of the connection string.
    pub(crate) fn kinds(&self) -> Vec<Option<ServerKind>> {
        self.client.servers().iter().map(|server| server.kind).collect()
    }

    /// Why the only server is Unknown.
    pub(crate) fn error(&self) -> Option<String> {
        assert_eq!(self.client.servers().len(), 1);
        self.error_of(0)
    }

    /// Why that server is Unknown.
    pub(crate) fn error_of(&self, index: usize) -> Option<String> {
        self.client.servers()[index].description.error.as_ref().map(ToString::to_string)
    }

    /// Until that was told so often, of all pools together: a caller may get a result
    /// before another thread has told the subscribers.
    pub(crate) fn until_told(&self, name: &str, times: usize) {
        self.until(&format!("{times} {name}"), |world| world.count(name) >= times);
        assert_eq!(self.count(name), times, "{name}");
    }

    /// How often that was told, of all pools together.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.addresses_of(name).len()
    }

    /// Why a host of the connection string is not used.
    pub(crate) fn exclusion(&self, address: &ServerAddress) -> Option<String> {
        let topology = self.client.topology();
        let mut excluded = topology.excluded();
        excluded.find(|(its, _)| ***its == *address).map(|(_, reason)| reason.to_string())
    }

    /// How often a server became something else.
    pub(crate) fn count_changes(&self) -> usize {
        self.server_events().iter().filter(|&&name| name == "ServerDescriptionChanged").count()
    }

    /// What was told of servers, as it is shown.
    pub(crate) fn server_texts(&self) -> Vec<String> {
        self.told.tales().servers.iter().map(|event| format!("{event:?}")).collect()
    }

    pub(crate) fn pool_events(&self) -> Vec<&'static str> {
        self.told.tales().pools.iter().map(|(_, event)| event.name()).collect()
    }

    pub(crate) fn addresses_of(&self, name: &str) -> Vec<String> {
        let tales = self.told.tales();
        let named = tales.pools.iter().filter(|(_, event)| event.name() == name);
        named.map(|(address, _)| address.to_string()).collect()
    }

    /// Why connections were closed.
    pub(crate) fn closed_for(&self) -> Vec<String> {
        let tales = self.told.tales();
        let reason = |event: &Event<ConnectionError>| {
            let Event::ConnectionClosed { reason, .. } = event else { return None };
            Some(reason.as_str().to_owned())
        };
        tales.pools.iter().filter_map(|(_, event)| reason(event)).collect()
    }

    pub(crate) fn interrupts(&self) -> usize {
        let tales = self.told.tales();
        let interrupts = |event: &Event<ConnectionError>| {
            let Event::ConnectionPoolCleared { interrupt_in_use_connections, .. } = event else {
                return false;
            };
            *interrupt_in_use_connections
        };
        tales.pools.iter().filter(|(_, event)| interrupts(event)).count()
    }

    pub(crate) fn server_events(&self) -> Vec<&'static str> {
        self.told.tales().servers.iter().map(SdamEvent::name).collect()
    }

    /// As the stories of a pool and of its server were told, one after another.
    pub(crate) fn seen_by<R>(
        &self,
        look: impl FnOnce(&[(Arc<ServerAddress>, Event<ConnectionError>)], &[SdamEvent]) -> R,
    ) -> R {
        let tales = self.told.tales();
        look(&tales.pools, &tales.servers)
    }

    pub(crate) fn command(&self, command: &RawDocumentBuf) -> Result<RawDocumentBuf, ClientError> {
        self.client.command("zoo", command)
    }

    pub(crate) fn check_out(&self, selector: &Selector) -> Box<dyn AnyConnection> {
        self.client.check_out(selector).expect("a connection")
    }

    pub(crate) fn ping(&self) {
        let reply = self.client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
        assert!(reply.get_f64("ok").is_ok_and(|ok| ok == 1.0));
    }
}

impl Tales {
    fn count(&self) -> usize {
        self.pools.len() + self.servers.len()
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
    let set = [member(Role::Primary), member(Role::Secondary), member(Role::Secondary)];
    join(&set.each_ref());
    set
}

/// From now on each of them names all of them as the members of the set.
pub(crate) fn join(members: &[&Endpoint]) {
    Endpoint::join(members);
}

/// The same where they are reached at these addresses; there may be more addresses than members.
pub(crate) fn join_at(members: &[&Endpoint], addresses: &[ServerAddress]) {
    let hosts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    for (member, me) in members.iter().zip(&hosts) {
        change_set(member, |set| ReplicaSet { hosts: hosts.clone(), me: Some(me.clone()), ..set });
    }
}

/// Changes what a member says of its set.
pub(crate) fn change_set(member: &Endpoint, change: impl FnOnce(ReplicaSet) -> ReplicaSet) {
    tell(member, |server, now| {
        let Topology::ReplicaSet(set) = server.topology().clone() else {
            panic!("no member of a replica set");
        };
        server.set_topology(now, Topology::ReplicaSet(change(set)));
    });
}

pub(crate) fn tell(endpoint: &Endpoint, act: impl FnOnce(&mut Server, Duration)) {
    endpoint.with(act);
}

pub(crate) fn fail_point(endpoint: &Endpoint, data: RawDocumentBuf, times: i32) {
    let command = rawdoc! {
        "configureFailPoint": "failCommand", "mode": { "times": times }, "data": data,
    };
    endpoint.with(|server, _| server.set_fail_point(&command).expect("a fail point"));
}

pub(crate) fn open(endpoint: &Endpoint) -> u64 {
    endpoint.with(|server, _| server.statistics().open)
}

/// Judges the events of a client that is made by hand.
pub(crate) fn judge() -> impl Fn(&PoolEvent) + Send + Sync + 'static {
    let guard = EventGuard::new();
    move |told| guard.hear(&told.event, &told.address)
}

pub(crate) fn commands(endpoint: &Endpoint, name: &str) -> u64 {
    let statistics = endpoint.with(|server, _| server.statistics());
    statistics.commands.get(name).copied().unwrap_or_default()
}

/// Waits until the endpoint has noticed: it runs in another thread, and emits no event.
pub(crate) fn until_open(endpoint: &Endpoint, expected: u64) {
    until_so(|| match open(endpoint) {
        open if open == expected => Ok(()),
        open => Err(format!("{open} sockets, not {expected}")),
    });
}

/// Polls for a condition without an event.
pub(crate) fn until_so(mut holds: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + LONG;
    while let Err(what) = holds() {
        assert!(Instant::now() < end, "{what}");
        thread::yield_now();
    }
}

/// Sockets to an endpoint that are connected, as the operating system counts them, where it does.
pub(crate) fn sockets_to(endpoint: &Endpoint) -> u64 {
    let Ok(table) = fs::read_to_string("/proc/net/tcp") else { return open(endpoint) };
    let port = endpoint.address().port().expect("a port");
    let is_to_it = |line: &&str| {
        // sl local_address rem_address st …, of which 01 is connected.
        let mut columns = line.split_whitespace().skip(2);
        let remote = columns.next().and_then(|remote| remote.split_once(':'));
        let remote = remote.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        remote == Some(port) && columns.next() == Some("01")
    };
    table.lines().filter(is_to_it).count().try_into().expect("not so many")
}
