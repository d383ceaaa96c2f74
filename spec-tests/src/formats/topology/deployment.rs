//! The machines of one client, and what an embedder does for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::monitor::{MonitorOptions, ServerDescription};
use cenote_core::sdam::{Context, PoolVerdict, verdict};
use cenote_core::topology::{Action, Event, Input, ServerId, Topology, TopologyOptions};
use cenote_core::uri::ConnectionString;
use serde_json::{Map, Value};

use super::format::{ApplicationError, ErrorType, When, document};
use super::{Watched, seen};

/// A topology, a monitor for each of its servers, and the generation of its pool.
#[derive(Debug)]
pub(super) struct Deployment {
    topology: Topology,
    servers: BTreeMap<ServerAddress, (ServerId, Watched)>,
    /// Those that are gone, with what they were.
    removed: BTreeMap<ServerAddress, ServerId>,
    events: Vec<Event>,
    is_watched: bool,
}

impl Deployment {
    pub(super) fn of(uri: &str) -> Result<Self, String> {
        let uri = ConnectionString::parse(uri).map_err(|error| error.to_string())?;
        let mut actions = Vec::new();
        let options = TopologyOptions::new(&uri);
        let is_watched = !options.is_load_balanced;
        let topology = Topology::new(options, &mut actions);
        let (servers, removed) = (BTreeMap::new(), BTreeMap::new());
        let mut deployment = Self { topology, servers, removed, events: Vec::new(), is_watched };
        deployment.perform(actions);
        Ok(deployment)
    }

    /// What a server answers to its next check. A reply of a server that is not monitored arrives late.
    pub(super) fn reply(
        &mut self,
        address: &str,
        reply: &Map<String, Value>,
    ) -> Result<(), String> {
        let address: ServerAddress = parse(address)?;
        let reply = document(reply)?;
        let (id, description) = match self.servers.get_mut(&address) {
            Some((id, server)) => {
                server.check(&reply, Duration::ZERO)?;
                (*id, server.description())
            }
            None => {
                let id = self.removed.get(&address);
                let id =
                    id.ok_or_else(|| format!("{address} was never a server of the topology"))?;
                (*id, Watched::described(&reply))
            }
        };
        self.describe(id, description);
        Ok(())
    }

    /// A failure of a pooled connection.
    pub(super) fn fail(&mut self, error: &ApplicationError) -> Result<(), String> {
        let address: ServerAddress = parse(&error.address)?;
        let server = self.servers.get_mut(&address);
        let (id, server) =
            server.ok_or_else(|| format!("{address} is no server of the topology"))?;
        let id = *id;
        let Some(failure) = connection_error(error)? else {
            return Ok(()); // The reply holds no error.
        };
        let known = self.topology.description().server(&address);
        let context = Context {
            load_balanced: false,
            // SD-33
            current_generation: error.generation.is_none_or(|own| own == server.generation),
            topology_version: known.and_then(|server| server.topology_version),
        };
        let verdict = verdict(&context, &failure);
        let before = server.description();
        server.application_failed(failure, verdict)?;
        match verdict.pool {
            PoolVerdict::Keep | PoolVerdict::ClearService => {}
            PoolVerdict::Clear { interrupt: _ } => server.generation += 1,
        }
        let after = server.description();
        if !Arc::ptr_eq(&before, &after) {
            self.describe(id, after);
        }
        Ok(())
    }

    /// The events since it was asked last, as the files write them.
    pub(super) fn take_events(&mut self) -> Value {
        std::mem::take(&mut self.events).iter().map(seen::event).collect()
    }

    /// What is known, by the key of a file's outcome; `None` for a key that has no meaning.
    pub(super) fn seen(&self, key: &str) -> Option<Value> {
        let topology = self.topology.description();
        if key != "servers" {
            return seen::topology(topology, key);
        }
        let servers = topology.servers().map(|(address, description)| {
            let server = self.servers.get(&**address);
            let generation = server.map_or(0, |(_, server)| server.generation);
            (address.to_string(), seen::server(description, generation))
        });
        Some(Value::Object(servers.collect()))
    }

    fn describe(&mut self, id: ServerId, description: Arc<ServerDescription>) {
        let mut actions = Vec::new();
        self.topology.handle(Input::Described { id, description }, &mut actions);
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::AddServer { id, address } => {
                    if self.is_watched {
                        let watched = Watched::new(MonitorOptions::default());
                        let replaced = self.servers.insert((*address).clone(), (id, watched));
                        assert!(replaced.is_none(), "{address} is added twice");
                    }
                }
                Action::RemoveServer { id, address } => {
                    let removed = self.servers.remove(&*address);
                    assert!(removed.is_some(), "{address} is removed, and was not added");
                    self.removed.insert((*address).clone(), id);
                }
                Action::EmitEvent(event) => self.events.push(event),
            }
        }
    }
}

fn parse(address: &str) -> Result<ServerAddress, String> {
    address.parse().map_err(|error| format!("{address}: {error}"))
}

/// The error as a shell would report it; `None` when the reply is no error. Labels follow from the stage, as they do in
/// production.
fn connection_error(error: &ApplicationError) -> Result<Option<ConnectionError>, String> {
    if error.wire_version_max < WIRE_VERSION_4_2 {
        return Err("a server older than 4.2".to_owned());
    }
    let stage = match error.when {
        When::BeforeHandshakeCompletes => Stage::Hello,
        When::AfterHandshakeCompletes => Stage::Operation,
    };
    match (error.r#type, &error.response) {
        (ErrorType::Command, Some(reply)) => {
            let refusal = CommandError::from_reply(reply);
            Ok(refusal.map(|refusal| ConnectionError::command(stage, refusal)))
        }
        (ErrorType::Network, None) => {
            Ok(Some(ConnectionError::network(stage, "closed by the peer")))
        }
        (ErrorType::Timeout, None) => Ok(Some(ConnectionError::timeout(stage, ANY_TIMEOUT))),
        (ErrorType::Command, None) => Err("a command error without response".to_owned()),
        (ErrorType::Network | ErrorType::Timeout, Some(_)) => {
            Err("a network error with a response".to_owned())
        }
    }
}

/// Older servers close their connections when they step down, and clear pools more often.
const WIRE_VERSION_4_2: i32 = 8;

/// How long the wait took makes no difference to what follows.
const ANY_TIMEOUT: Duration = Duration::from_secs(1);
