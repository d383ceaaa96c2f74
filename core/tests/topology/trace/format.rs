//! What a trace tells, and what it does not.

use bson::{doc, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::topology::{ServerId, TopologyKind};
use cenote_core::trace::topology::{Recorder, Replay};
use cenote_core::trace::{Disclosure, JournalOptions, TraceInfo, format_of};

use super::{
    Recorded, at, date, described, documents, incident, recorded_incident, refused, small_chunks,
    topology,
};
use crate::topology::world::{address, described_at, elected};

#[test]
fn a_trace_tells_what_happened() {
    let trace = recorded_incident();
    assert_eq!(format_of(&trace), Some("cenote-topology"));
    let documents = documents(&trace);
    let header = doc! {
        "format": "cenote-topology", "version": 2, "origin": date(0), "t": 0_i64,
        "kind": "ReplicaSetNoPrimary", "set": "rs", "hosts": ["a:27017"], "lastId": 1, "servers": 1,
        "excluded": 0,
    };
    assert_eq!(documents[0], header);
    assert_eq!(documents[1], doc! { "known": "a:27017", "id": 1, "updated": false });
    let member = doc! {
        "hosts": ["a:27017", "b:27017", "c:27017"], "tags": { "dc": "ny" }, "setVersion": 1_i64,
        "electionId": bson::oid::ObjectId::from_bytes([1; 12]),
    };
    let primary = doc! {
        "t": 2_000_000_i64, "server": 1, "kind": "RSPrimary", "minWire": 0_i64,
        "maxWire": 25_i64, "set": "rs", "member": member, "wrote": date(1), "rtt": 2_000_000,
        "rttMin": 0,
    };
    assert_eq!(documents[2], primary);
    let change = doc! {
        "a": "ServerDescriptionChanged", "s": "a:27017", "was": "Unknown", "now": "RSPrimary",
    };
    let acts = documents[3].get_array("acts").expect("what followed");
    assert_eq!(acts[0].as_document(), Some(&change));
    let opened = doc! { "a": "ServerOpening", "s": "b:27017" };
    let added = doc! { "a": "AddServer", "s": "b:27017", "id": 2 };
    assert_eq!([&acts[1], &acts[2]].map(|it| it.as_document()), [Some(&opened), Some(&added)]);
    assert_eq!(acts.len(), 6, "two servers are added, with an event each, and the change is told");
    // A check that tells nothing new is short, and has the new times.
    let same = documents.iter().find(|it| it.contains_key("same")).expect("one of a");
    let expected = doc! {
        "t": 10_002_000_000_i64, "same": 1, "wrote": date(1), "rtt": 10_002_000_000_i64,
        "rttMin": 0,
    };
    assert_eq!(*same, expected);

    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    let mut told = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("as it was") {
        let topology = replay.topology().description();
        told.push((step.at, topology.kind, topology.primary().map(|(it, _)| it.to_string())));
    }
    let with = TopologyKind::ReplicaSetWithPrimary;
    let [a, b] = ["a:27017", "b:27017"].map(|it| Some(it.to_owned()));
    assert_eq!(told[3], (at(10_002), with, a));
    assert_eq!(told[4], (at(12_500), with, b.clone()));
    // The clock of its monitor was read before.
    assert_eq!(told[5], (at(12_400), with, b));
    assert_eq!(told[6], (at(14_000), TopologyKind::Unknown, None));
}

/// The reply of a server is its own affair, and so is what the connection string says besides.
#[test]
fn nothing_else_is_recorded() {
    let uri = "mongodb://app:pencil@a/?replicaSet=rs&appName=shop";
    let mut recorded = Recorded::new(uri, JournalOptions::default());
    let mut reply = elected(&["a:27017"], 1, 1);
    reply.append(bson::cstr!("saslSupportedMechs"), rawdoc! { "secret": "chalk" });
    recorded.feed_check(at(1), "a:27017", described_at(&reply, None, at(1)));
    let description = recorded.recorder.description().server(&address("a:27017")).cloned();
    assert!(description.is_some_and(|it| it.hello.as_ref().is_some_and(|it| it.reply().is_some())));
    let trace = String::from_utf8_lossy(&recorded.finish()).into_owned();
    for hidden in ["pencil", "app", "shop", "secret", "chalk"] {
        assert!(!trace.contains(hidden), "{hidden}");
    }
}

#[test]
fn texts_and_addresses_are_told_as_it_was_asked_for() {
    let (plain, hashed, omitted) = (Disclosure::Plain, Disclosure::Hashed, Disclosure::Omitted);
    for (texts, addresses) in
        [(hashed, plain), (omitted, hashed), (plain, omitted), (omitted, omitted)]
    {
        let info = TraceInfo::default().with_texts(texts).with_addresses(addresses);
        let mut recorded =
            Recorded::with_info("mongodb://a,x/?replicaSet=rs", small_chunks(), info.clone());
        incident(&mut recorded);
        let recorder = Recorder::new(topology("mongodb://a")).with_flight_recorder(at(0), 9_000);
        let mut recorder = recorder;
        for now in 1..9 {
            recorder.handle(at(now), described(ServerId(1), refused(at(now))), &mut |_| {});
        }
        let flight = recorder.flight_recording().expect("there is one");
        let flight = flight.write_to(&info, Vec::new()).expect("memory");
        for trace in [recorded.finish(), flight] {
            let mut replay = Replay::new(trace.as_slice()).expect("a trace");
            assert!(replay.header().is_redacted);
            replay.verify().expect("it goes the way it went");
            let bytes = String::from_utf8_lossy(&trace);
            if texts != plain {
                assert!(!bytes.contains("refused"), "{texts:?}");
            }
            let has_address = bytes.contains("a:27017\0") || bytes.contains("x:27017");
            assert_eq!(has_address, addresses == plain, "{addresses:?}");
        }
    }
    let recorded = Recorded::with_info(
        "mongodb://a,b",
        small_chunks(),
        TraceInfo::default().with_addresses(omitted),
    );
    let header = documents(&recorded.finish()).remove(0);
    let hosts = header.get_array("hosts").expect("two").iter().filter_map(|it| it.as_str());
    assert_eq!(hosts.collect::<Vec<_>>(), ["#1", "#2"]);
}

/// The order of addresses is that of their texts, which stand-ins do not keep.
#[test]
fn a_stand_in_is_shown_as_it_is() {
    let info = TraceInfo::default().with_addresses(Disclosure::Hashed);
    let recorded = Recorded::with_info("mongodb://a", small_chunks(), info);
    let trace = recorded.finish();
    let replay = Replay::new(trace.as_slice()).expect("a trace");
    let server =
        replay.topology().description().servers().next().map(|(it, _)| ServerAddress::clone(it));
    let shown = server.map(|it| it.to_string()).unwrap_or_default();
    assert!(shown.starts_with('#') && shown.len() == 17, "{shown}");
}
