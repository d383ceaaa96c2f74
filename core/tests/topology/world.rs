use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::monitor::{RoundTrip, ServerDescription};
use cenote_core::pool::Instant;
use cenote_core::topology::{
    Action, Event, Input, ServerId, Topology, TopologyDescription, TopologyOptions,
};
use cenote_core::uri::ConnectionString;

use crate::topology::steps::Ids;

/// A topology, and the servers that its embedder has.
pub(crate) struct World {
    pub(crate) topology: Topology,
    pub(crate) servers: BTreeMap<Arc<ServerAddress>, ServerId>,
    pub(crate) ids: Ids,
    /// The events since they were last taken, by name and address.
    pub(crate) events: Vec<String>,
    last_told: Option<Arc<TopologyDescription>>,
}

impl World {
    pub(crate) fn new(uri: &str) -> Self {
        let uri = ConnectionString::parse(uri).expect("a connection string");
        let mut actions = Vec::new();
        let topology = Topology::new(TopologyOptions::new(&uri), &mut actions);
        let (servers, events) = (BTreeMap::new(), Vec::new());
        let mut world = Self { topology, servers, ids: Ids::default(), events, last_told: None };
        world.perform(actions);
        world
    }

    pub(crate) fn feed(&mut self, input: Input) {
        let mut actions = Vec::new();
        self.topology.handle(input, &mut actions);
        self.perform(actions);
    }

    pub(crate) fn reply(&mut self, server: &str, reply: &RawDocument) {
        self.describe(self.id_of(server), reply);
    }

    /// Also of one that was removed.
    pub(crate) fn describe(&mut self, id: ServerId, reply: &RawDocument) {
        self.feed(Input::Described { id, description: described(reply) });
    }

    /// The number of the server that is or was there last.
    pub(crate) fn id_of(&self, server: &str) -> ServerId {
        self.ids.at(server).next().expect("one that none has in the end")
    }

    /// As in `ReplicaSetWithPrimary rs: a:27017: RSPrimary of rs`.
    pub(crate) fn shown(&self) -> String {
        self.topology.description().to_string()
    }

    /// The books of an embedder: each server is added once and removed once, and all that is known is told.
    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            self.ids.note(&action);
            match action {
                Action::AddServer { id, address } => {
                    let there = self.servers.insert(Arc::clone(&address), id);
                    assert_eq!(there, None, "{address} is there already");
                }
                Action::RemoveServer { id, address } => {
                    assert_eq!(self.servers.remove(&address), Some(id), "{address} is not there");
                }
                Action::EmitEvent(event) => self.told(&event),
            }
        }
        let known: Vec<_> = self.topology.description().servers().map(|(it, _)| it).collect();
        assert_eq!(self.servers.keys().collect::<Vec<_>>(), known);
        let told = self.last_told.as_ref().map(ToString::to_string);
        assert_eq!(told, Some(self.shown()), "events tell of every change");
    }

    fn told(&mut self, event: &Event) {
        let about = match event {
            Event::TopologyDescriptionChanged { previous, new } => {
                if let Some(last) = self.last_told.replace(Arc::clone(new)) {
                    assert_eq!(last.to_string(), previous.to_string(), "no change is left out");
                }
                String::new()
            }
            Event::ServerDescriptionChanged { address, .. }
            | Event::ServerOpening { address }
            | Event::ServerClosed { address } => format!(" {address}"),
            Event::TopologyOpening | Event::TopologyClosed | _ => String::new(),
        };
        self.events.push(format!("{}{about}", event.name()));
    }
}

pub(crate) fn address(text: &str) -> ServerAddress {
    text.parse().expect("an address")
}

pub(crate) fn described(reply: &RawDocument) -> Arc<ServerDescription> {
    Arc::new(described_at(reply, None, Instant::ORIGIN))
}

pub(crate) fn described_at(
    reply: &RawDocument,
    round_trip: Option<RoundTrip>,
    now: Instant,
) -> ServerDescription {
    let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
    let options = EstablishOptions::for_client(&client).for_monitor();
    match ConnectionDescription::from_reply(reply, &options) {
        Ok(hello) => ServerDescription::known(Arc::new(hello), round_trip, now),
        Err(error) => ServerDescription::unknown(error, None, now),
    }
}

/// A member of a set that names these hosts.
pub(crate) fn member(set: &str, role: &str, hosts: &[&str]) -> RawDocumentBuf {
    let hosts: bson::RawArrayBuf = hosts.iter().copied().collect();
    let mut reply = rawdoc! { "ok": 1, "maxWireVersion": 25, "setName": set, "hosts": hosts };
    let role = match role {
        "primary" => bson::cstr!("isWritablePrimary"),
        "secondary" => bson::cstr!("secondary"),
        other => panic!("no role {other}"),
    };
    reply.append(role, true);
    reply
}

/// A primary of the set `rs` that was elected so.
pub(crate) fn elected(hosts: &[&str], election: u8, set_version: i64) -> RawDocumentBuf {
    let mut reply = member("rs", "primary", hosts);
    reply.append(bson::cstr!("electionId"), bson::oid::ObjectId::from_bytes([election; 12]));
    reply.append(bson::cstr!("setVersion"), set_version);
    reply
}

pub(crate) fn router() -> RawDocumentBuf {
    rawdoc! { "ok": 1, "maxWireVersion": 25, "msg": "isdbgrid" }
}

pub(crate) fn standalone() -> RawDocumentBuf {
    rawdoc! { "ok": 1, "maxWireVersion": 25, "isWritablePrimary": true }
}
