//! Plays the files of `server-selection/tests/server_selection` and `max-staleness/tests`.

mod served;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bson::{DateTime, rawdoc};
use cenote_conform::document::nested::wrong_at;
use cenote_conform::{Document, Unreadable};
use cenote_core::address::ServerAddress;
use cenote_core::client::{Described, ReadPreference, in_latency_window, suitable};
use cenote_core::connect::ConnectionDescription;
use cenote_core::monitor::{RoundTrip, ServerDescription};
use cenote_core::pool::Instant;
use cenote_core::topology::{Action, Input, Topology, TopologyOptions};
use cenote_core::uri::ConnectionString;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::format::document as raw;
use super::watched::hello_options;
use crate::formats::outcome::{Outcome, Verdict};
use crate::formats::read_preference::Preference;
use crate::formats::target::Target;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    topology_description: Deployment,
    #[serde(default)]
    operation: Operation,
    read_preference: Preference,
    #[serde(rename = "heartbeatFrequencyMS")]
    heartbeat_frequency_ms: Option<u64>,
    #[serde(default)]
    deprioritized_servers: Vec<Server>,
    suitable_servers: Option<Vec<Server>>,
    in_latency_window: Option<Vec<Server>>,
    #[serde(default)]
    error: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Operation {
    #[default]
    Read,
    Write,
}

/// A topology as the machine is to find it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deployment {
    r#type: String,
    servers: Vec<Server>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Server {
    address: String,
    r#type: String,
    #[serde(rename = "avg_rtt_ms")]
    average_ms: Option<u64>,
    #[serde(default)]
    tags: Map<String, Value>,
    last_update_time: Option<u64>,
    max_wire_version: Option<i32>,
    last_write: Option<LastWrite>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LastWrite {
    last_write_date: NumberLong,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberLong {
    #[serde(rename = "$numberLong")]
    number: String,
}

/// Plays what was read from a file about suitable servers, on the machine or with real servers.
///
/// # Errors
///
/// When it is not of this format.
pub(in crate::formats) fn play_selection(
    document: &Document,
    target: Target,
) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    let verdict = match target.shell() {
        Err(_) => file.play(document)?,
        Ok(_) if file.topology_description.servers.is_empty() => {
            Verdict::NotApplicable("a client has one host at least".to_owned())
        }
        Ok(shell) => file.play_on(shell).into(),
    };
    let name = document.path().file_stem().unwrap_or_default().to_string_lossy();
    let description = format!("{:?} {name}", file.operation);
    Ok(vec![Outcome { file: document.path().to_owned(), target, description, verdict }])
}

/// The same on the machine alone, for files about times of the past.
///
/// # Errors
///
/// When it is not of this format.
pub(in crate::formats) fn play_staleness(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    play_selection(document, Target::Core)
}

impl File {
    fn play(&self, document: &Document) -> Result<Verdict, Unreadable> {
        let refuse = |what: String| document.refuse_in("", &what);
        let topology = self.topology_description.discover().map_err(refuse)?;
        let preference = self.preference().map_err(refuse)?;
        let deprioritized: Result<Vec<_>, _> =
            self.deprioritized_servers.iter().map(|server| server.address.parse()).collect();
        let deprioritized: Vec<ServerAddress> = deprioritized
            .map_err(|error: cenote_core::address::AddressError| refuse(error.to_string()))?;
        Ok(match topology {
            Err(other) => Verdict::Failed(other),
            Ok(topology) => {
                let heartbeat =
                    self.heartbeat_frequency_ms.map_or(HEARTBEAT, Duration::from_millis);
                let found =
                    suitable(topology.description(), &preference, heartbeat, &deprioritized);
                match found {
                    Ok(found) => self.judge(&found),
                    Err(_) if self.error => Ok(()),
                    Err(error) => Err(error.to_string()),
                }
                .into()
            }
        })
    }

    fn preference(&self) -> Result<ReadPreference, String> {
        if self.operation == Operation::Write {
            return Ok(ReadPreference::PRIMARY);
        }
        self.read_preference.read().map_err(|what| wrong_at("read_preference", what))
    }

    fn judge(&self, found: &[Described<'_>]) -> Result<(), String> {
        if self.error {
            return Err("an error was expected".to_owned());
        }
        same("suitable", self.suitable_servers.as_deref(), found)?;
        let window = in_latency_window(found, LOCAL_THRESHOLD);
        same("in the latency window", self.in_latency_window.as_deref(), &window)
    }
}

fn same(what: &str, expected: Option<&[Server]>, seen: &[Described<'_>]) -> Result<(), String> {
    let Some(expected) = expected else {
        return Err(format!("the file does not say what is {what}"));
    };
    let expected: BTreeSet<_> = expected.iter().map(|server| server.address.clone()).collect();
    let seen: BTreeSet<_> = seen.iter().map(|(address, _)| address.to_string()).collect();
    if expected == seen {
        Ok(())
    } else {
        Err(format!("{what}: expected {expected:?}, seen {seen:?}"))
    }
}

impl Deployment {
    /// Feeds replies until the machine has found it. The inner error is that it found something else.
    pub(super) fn discover(&self) -> Result<Result<Topology, String>, String> {
        let mut options =
            TopologyOptions::new(&ConnectionString::parse("mongodb://any").expect("valid"));
        let hosts: Result<_, _> =
            self.servers.iter().map(|server| server.address.parse()).collect();
        options.hosts =
            hosts.map_err(|error: cenote_core::address::AddressError| error.to_string())?;
        options.is_direct = self.r#type == "Single";
        options.is_load_balanced = self.r#type == "LoadBalanced";
        options.set_name = self.r#type.starts_with("ReplicaSet").then(|| "rs".to_owned());
        let mut added = Vec::new();
        let mut topology = Topology::new(options, &mut |action| {
            if let Action::AddServer { id, address } = action {
                added.push((address.to_string(), id));
            }
        });
        for server in &self.servers {
            let added = added.iter().find(|(address, _)| *address == server.address);
            if let (Some((_, id)), Some(description)) = (added, server.described(&self.servers)?) {
                topology.handle(Input::Described { id: *id, description }, &mut |_| {});
            }
        }
        let seen = topology.description().kind.name();
        let expected = &self.r#type;
        let is_found =
            seen == expected && topology.description().servers().len() == self.servers.len();
        let other =
            || format!("expected a topology of type {expected}, found {}", topology.description());
        Ok(if is_found { Ok(topology) } else { Err(other()) })
    }
}

impl Server {
    /// `None` as long as it says nothing.
    fn described(&self, all: &[Self]) -> Result<Option<Arc<ServerDescription>>, String> {
        let hosts: bson::RawArrayBuf = all.iter().map(|server| &*server.address).collect();
        let mut reply = rawdoc! { "ok": 1, "minWireVersion": 0 };
        reply.append(bson::cstr!("maxWireVersion"), self.max_wire_version.unwrap_or(25));
        match &*self.r#type {
            "Standalone" => {}
            "Mongos" => reply.append(bson::cstr!("msg"), "isdbgrid"),
            "RSGhost" => reply.append(bson::cstr!("isreplicaset"), true),
            "RSPrimary" => reply.append(bson::cstr!("isWritablePrimary"), true),
            "RSSecondary" => reply.append(bson::cstr!("secondary"), true),
            // A possible primary is Unknown to all drivers but those of one thread.
            "Unknown" | "PossiblePrimary" | "LoadBalancer" => return Ok(None),
            other => {
                return Err(wrong_at("topology_description/servers", format!("no type {other}")));
            }
        }
        if self.r#type.starts_with("RS") && self.r#type != "RSGhost" {
            reply.append(bson::cstr!("setName"), "rs");
            reply.append(bson::cstr!("hosts"), hosts);
        }
        reply.append(bson::cstr!("tags"), raw(&self.tags)?);
        if let Some(LastWrite { last_write_date: NumberLong { number } }) = &self.last_write {
            let millis =
                number.parse().map_err(|_| format!("{number} is no number of milliseconds"))?;
            let date = DateTime::from_millis(millis);
            reply.append(bson::cstr!("lastWrite"), rawdoc! { "lastWriteDate": date });
        }
        let hello = ConnectionDescription::from_reply(&reply, &hello_options());
        let hello = Arc::new(hello.map_err(|error| error.to_string())?);
        let round_trip = self.average_ms.map(Duration::from_millis);
        let round_trip = round_trip.map(|average| RoundTrip { average, minimum: average });
        let updated = Duration::from_millis(self.last_update_time.unwrap_or_default());
        let now = Instant::ORIGIN + updated;
        Ok(Some(Arc::new(ServerDescription::known(hello, round_trip, now))))
    }
}

/// `heartbeatFrequencyMS` by default.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);

/// `localThresholdMS` by default.
pub(super) const LOCAL_THRESHOLD: Duration = Duration::from_millis(15);
