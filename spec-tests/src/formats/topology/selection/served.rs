//! The same on a shell: real servers of these kinds, and the client that finds them.
//!
//! Nothing tells how long a real server takes to answer, so that its times are not those of the file, and all that are
//! suitable are in the latency window.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::{ClientError, SelectionError, Selector};
use cenote_endpoint::{
    Endpoint, ListenOptions, LoadBalanced, ReplicaSet, Role, Settings, Topology,
};
use cenote_test_runtimes::{AnyClient, ClientSetup, Shell};

use super::{File, Server};
use crate::formats::lock::lock;

/// How often is selected: each of three servers is missed about once in 10⁷ files.
const DRAWS: usize = 40;

/// How long the client may take to find the servers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where nothing listens.
const NOWHERE: &str = "127.0.0.1:1";

/// The servers of a file, in its order. `None` is one that cannot be reached.
struct Served {
    endpoints: Vec<Option<Endpoint>>,
    /// Which of them got a ping.
    pinged: Arc<Mutex<BTreeSet<usize>>>,
}

impl File {
    /// Whether the client of a shell selects what is suitable, and nothing else.
    pub(super) fn play_on(&self, shell: Shell) -> Result<(), String> {
        let served = Served::start(self)?;
        let expected = self.suitable_servers.as_deref().ok_or("no servers are expected")?;
        let expected: BTreeSet<_> = expected.iter().map(|server| self.index(server)).collect();
        let client = shell.build_client(&served.uri(self), ClientSetup::default());
        let client = client.map_err(|error| error.to_string())?;
        let played = self.wait_for(&*client).and_then(|()| {
            let avoided = self.deprioritized_servers.iter();
            let avoided =
                avoided.filter_map(|server| served.address(self.index(server)?).parse().ok());
            let selector = Selector::ReadPreference(self.preference()?).avoiding(avoided);
            match expected.is_empty() {
                true => select_none(&*client, &selector),
                false => (0..DRAWS).try_for_each(|_| ping(&*client, &selector)),
            }
        });
        client.close();
        played?;
        let seen: BTreeSet<_> = lock(&served.pinged).iter().copied().map(Some).collect();
        if seen == expected {
            return Ok(());
        }
        let names = |servers: &BTreeSet<Option<usize>>| -> Vec<_> {
            servers
                .iter()
                .flatten()
                .map(|index| &self.topology_description.servers[*index].address)
                .collect()
        };
        Err(format!("selected: expected {:?}, seen {:?}", names(&expected), names(&seen)))
    }

    fn index(&self, server: &Server) -> Option<usize> {
        let mut all = self.topology_description.servers.iter();
        all.position(|it| it.address == server.address)
    }

    /// Until the client knows of all servers what the file knows.
    fn wait_for(&self, client: &dyn AnyClient) -> Result<(), String> {
        let expected = &self.topology_description;
        let mut kinds: Vec<_> = expected.servers.iter().map(Server::kind).collect();
        kinds.sort_unstable();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let topology = client.topology();
            let mut seen: Vec<_> = topology
                .servers()
                .map(|(_, it)| it.kind().map_or("Unknown", |kind| kind.name()))
                .collect();
            seen.sort_unstable();
            if topology.kind.name() == expected.r#type && seen == kinds {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("expected {} of {kinds:?}, found {topology}", expected.r#type));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Which server was selected shows in the ping that it gets.
fn ping(client: &dyn AnyClient, selector: &Selector) -> Result<(), String> {
    let mut connection = client.check_out(selector).map_err(|error| error.to_string())?;
    let reply = connection.command("admin", &rawdoc! { "ping": 1 });
    reply.map(drop).map_err(|error| error.to_string())
}

fn select_none(client: &dyn AnyClient, selector: &Selector) -> Result<(), String> {
    match client.check_out(selector) {
        Err(ClientError::Selection(SelectionError::TimedOut { .. })) => Ok(()),
        Err(error) => Err(format!("expected no server in time, got {error}")),
        Ok(_) => Err("expected no server, got one".to_owned()),
    }
}

impl Served {
    fn start(file: &File) -> Result<Self, String> {
        let servers = &file.topology_description.servers;
        let endpoints: Result<Vec<_>, _> = servers.iter().map(Server::start).collect();
        let served = Self { endpoints: endpoints?, pinged: Arc::default() };
        for (index, endpoint) in served.endpoints.iter().enumerate() {
            let pinged = Arc::clone(&served.pinged);
            let observe = move |command: &bson::RawDocument| {
                if command.iter().next().is_some_and(|it| it.is_ok_and(|(name, _)| name == "ping"))
                {
                    lock(&pinged).insert(index);
                }
            };
            if let Some(endpoint) = endpoint {
                endpoint.with(|server, _| server.observe_commands(observe));
            }
        }
        Endpoint::join(&served.endpoints.iter().flatten().collect::<Vec<_>>());
        Ok(served)
    }

    fn address(&self, index: usize) -> String {
        let endpoint = self.endpoints[index].as_ref();
        endpoint.map_or_else(|| NOWHERE.to_owned(), |endpoint| endpoint.address().to_string())
    }

    fn uri(&self, file: &File) -> String {
        let hosts: Vec<_> = (0..self.endpoints.len()).map(|index| self.address(index)).collect();
        let kind = match &*file.topology_description.r#type {
            "Single" => "directConnection=true",
            "LoadBalanced" => "loadBalanced=true",
            "ReplicaSetWithPrimary" | "ReplicaSetNoPrimary" => "replicaSet=rs",
            _ => "directConnection=false",
        };
        let is_found = file.suitable_servers.as_ref().is_some_and(|servers| !servers.is_empty());
        let patience = if is_found { PATIENCE } else { Duration::from_millis(50) }.as_millis();
        format!(
            "mongodb://{}/?{kind}&localThresholdMS=60000&serverSelectionTimeoutMS={patience}",
            hosts.join(",")
        )
    }
}

impl Server {
    fn start(&self) -> Result<Option<Endpoint>, String> {
        let member = |role| {
            let tags = self.tags.iter();
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let tags = tags.map(|(name, value)| (name.clone(), text(value))).collect();
            Topology::ReplicaSet(ReplicaSet { role, tags, ..ReplicaSet::primary("rs") })
        };
        let topology = match &*self.r#type {
            "Standalone" => Topology::Standalone,
            "Mongos" => Topology::Mongos,
            "RSPrimary" => member(Role::Primary),
            "RSSecondary" => member(Role::Secondary),
            "RSGhost" => member(Role::Ghost),
            "LoadBalancer" => Topology::LoadBalanced(LoadBalanced { services: 1 }),
            _ => return Ok(None),
        };
        let settings = Settings { topology, ..Settings::default() };
        let started = Endpoint::start(settings, ListenOptions::default());
        started.map(Some).map_err(|error| format!("no endpoint to play against: {error}"))
    }

    /// A possible primary is Unknown to all drivers but those of one thread.
    fn kind(&self) -> &str {
        if self.r#type == "PossiblePrimary" { "Unknown" } else { &self.r#type }
    }
}
