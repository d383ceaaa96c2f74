//! Records an example of a client: a replica set that fails over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::{DateTime, RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use cenote_core::client::Selector;
use cenote_core::client::machine::SelectionId;
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{RoundTrip, ServerDescription};
use cenote_core::pool::Instant;
use cenote_core::topology::{Input, ServerId, Topology, TopologyOptions};
use cenote_core::trace::topology::{Recorder, SelectionOutcome, SelectionRecord, TraceWriter};
use cenote_core::trace::{JournalOptions, TraceInfo};
use cenote_core::uri::ConnectionString;

use crate::record;
use crate::traffic::Scene;

/// A file name, and what is in it.
pub type File = (&'static str, Vec<u8>);

/// What a client of a set of three records in twenty seconds: the primary is lost at 03:07:12, another member is elected
/// 600 ms later, the lost one comes back at 03:07:15, and the third is removed at 03:07:17.
///
/// # Errors
///
/// None: it writes to memory.
pub fn fail_over(seed: u64, journal: JournalOptions) -> io::Result<Vec<File>> {
    let pools = [
        ("a.example.com-27017.bson", HOSTS[0], Scene::lost_primary(seed)),
        ("b.example.com-27017.bson", HOSTS[1], Scene::new_primary(seed + 1)),
        ("c.example.com-27017.bson", HOSTS[2], Scene::removed(seed + 2)),
    ];
    let mut files = vec![("topology.bson", topology()?)];
    for (name, address, scene) in pools {
        let trace = record::traffic(Scene { address, ..scene }, u64::MAX, journal, Vec::new())?;
        files.push((name, trace));
    }
    Ok(files)
}

/// The trace of the topology.
///
/// # Errors
///
/// None: it writes to memory.
///
/// # Panics
///
/// Never: the connection string and the replies are valid.
pub fn topology() -> io::Result<Vec<u8>> {
    let uri = format!("mongodb://{}/?replicaSet=rs0", HOSTS.join(","));
    let uri = ConnectionString::parse(&uri).expect("a connection string");
    let topology = Topology::new(TopologyOptions::new(&uri), &mut |_| {});
    let options = JournalOptions::default();
    let mut recorder = Recorder::new(topology).with_journal(Instant::ORIGIN, options);
    let waiting = waiting();
    for (milliseconds, server, said) in story() {
        let now = Instant::ORIGIN + Duration::from_millis(milliseconds);
        let description = Arc::new(described(said, server, now));
        // They are added in the order of their addresses.
        let id = ServerId(server as u64 + 1);
        recorder.handle(now, Input::Described { id, description }, &mut |_| {});
        if (milliseconds, said) == (12_600, Said::Primary(2, 3)) {
            waiting.iter().for_each(|selection| recorder.selected(now, selection.clone()));
        }
    }
    written(recorder, Scene::NIGHT)
}

/// The journal of a recorder as a trace that began then, in milliseconds since 1970.
pub(super) fn written(mut recorder: Recorder, origin: i64) -> io::Result<Vec<u8>> {
    recorder.flush();
    let info = TraceInfo::default().with_origin(origin);
    let info = info.with_program(concat!("cenote ", env!("CARGO_PKG_VERSION")));
    let mut writer = TraceWriter::new(Vec::new(), info);
    while let Some(chunk) = recorder.take_chunk() {
        writer.write(&chunk)?;
    }
    writer.finish()
}

const HOSTS: [&str; 3] = ["a.example.com:27017", "b.example.com:27017", "c.example.com:27017"];

const DATA_CENTERS: [&str; 3] = ["ny", "sf", "ny"];

/// What a check of a server tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Elected so, with so many of the hosts as members.
    Primary(u8, usize),
    Secondary,
    Nothing,
}

/// The checks in the order of time: when, of which host, and what it says. Each is checked every two seconds.
fn story() -> Vec<(u64, usize, Said)> {
    let mut story = Vec::new();
    for tick in 0..10 {
        for server in 0..3 {
            let at = 2_000 * tick + 1 + server as u64;
            let said = match (server, at) {
                (0, ..12_000) => Said::Primary(1, 3),
                (0, 12_000..15_000) | (2, 17_000..) => continue,
                (1, 12_600..17_000) => Said::Primary(2, 3),
                (1, 17_000..) => Said::Primary(2, 2),
                _ => Said::Secondary,
            };
            story.push((at, server, said));
        }
    }
    story.extend([
        (12_000, 0, Said::Nothing),
        (12_600, 1, Said::Primary(2, 3)),
        (15_000, 0, Said::Secondary),
        (17_000, 1, Said::Primary(2, 2)),
    ]);
    story.sort_by_key(|&(at, ..)| at);
    story
}

/// The requests that waited for the election.
fn waiting() -> Vec<SelectionRecord> {
    let elected = Arc::new(HOSTS[1].parse().expect("an address"));
    let outcome = SelectionOutcome::Chosen(vec![elected]);
    let of_request = |(id, milliseconds)| {
        let waited = Duration::from_millis(milliseconds);
        SelectionRecord::new(SelectionId(id), &Selector::Primary, waited, outcome.clone())
    };
    [(7_204, 588), (7_205, 31)].map(of_request).into()
}

fn described(said: Said, server: usize, now: Instant) -> ServerDescription {
    if said == Said::Nothing {
        let error = ConnectionError::timeout(Stage::Hello, Duration::from_secs(10));
        return ServerDescription::unknown(error, None, now);
    }
    let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
    let options = EstablishOptions::for_client(&client).for_monitor();
    let reply = reply(said, server, now);
    let hello = ConnectionDescription::from_reply(&reply, &options).expect("a valid reply");
    let average =
        Duration::from_micros(900 + 400 * server as u64 + now.as_nanos() / 1_000_000 % 97);
    let round_trip = RoundTrip { average, minimum: average / 2 };
    ServerDescription::known(Arc::new(hello), Some(round_trip), now)
}

fn reply(said: Said, server: usize, now: Instant) -> RawDocumentBuf {
    let members = if let Said::Primary(_, members) = said { members } else { 3 };
    let hosts: RawArrayBuf = HOSTS[..members].iter().copied().collect();
    let wrote = DateTime::from_millis(Scene::NIGHT + (now.as_nanos() / 1_000_000) as i64);
    let mut reply = rawdoc! {
        "ok": 1, "maxWireVersion": 25, "setName": "rs0", "setVersion": 4 - members as i32,
        "hosts": hosts, "me": HOSTS[server], "tags": { "dc": DATA_CENTERS[server] },
        "lastWrite": { "lastWriteDate": wrote },
    };
    match said {
        Said::Primary(election, _) => {
            reply.append(cstr!("isWritablePrimary"), true);
            reply.append(cstr!("electionId"), ObjectId::from_bytes([election; 12]));
        }
        Said::Secondary | Said::Nothing => reply.append(cstr!("secondary"), true),
    }
    reply
}
