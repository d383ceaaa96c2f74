//! Traces of topologies: what is recorded, and how it is replayed.

mod damage;
mod format;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bson::{Document, doc, rawdoc};
use cenote_core::connect::ServerKind;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{RoundTrip, ServerDescription};
use cenote_core::pool::Instant;
use cenote_core::topology::{
    Action, Input, ServerId, Topology, TopologyDescription, TopologyOptions,
};
use cenote_core::trace::topology::{ActionRecord, Recorder, Replay, TraceWriter};
use cenote_core::trace::{Disclosure, JournalOptions, TraceError, TraceInfo};
use cenote_core::uri::ConnectionString;
use proptest::prelude::*;

use crate::topology::steps::{Ids, Step, input, steps, uri};
use crate::topology::world::{address, described_at, elected, member};

fn topology(uri: &str) -> Topology {
    with_ids(uri).0
}

fn with_ids(uri: &str) -> (Topology, Ids) {
    let uri = ConnectionString::parse(uri).expect("a connection string");
    let mut ids = Ids::default();
    (Topology::new(TopologyOptions::new(&uri), &mut |action| ids.note(&action)), ids)
}

/// A topology that is recorded, and what it has done.
struct Recorded {
    recorder: Recorder,
    writer: TraceWriter<Vec<u8>>,
    actions: Vec<ActionRecord>,
    ids: Ids,
}

impl Recorded {
    fn new(uri: &str, options: JournalOptions) -> Self {
        Self::with_info(uri, options, TraceInfo::default())
    }

    fn with_info(uri: &str, options: JournalOptions, info: TraceInfo) -> Self {
        let (topology, ids) = with_ids(uri);
        let recorder = Recorder::new(topology).with_journal(at(0), options);
        Self { recorder, writer: TraceWriter::new(Vec::new(), info), actions: Vec::new(), ids }
    }

    fn feed(&mut self, now: Instant, input: Input) {
        let mut note = |action: Action| {
            self.actions.push(ActionRecord::of(&action));
            self.ids.note(&action);
        };
        self.recorder.handle(now, input, &mut note);
    }

    /// What the monitor of the server that is there now has found.
    fn feed_check(&mut self, now: Instant, server: &str, description: ServerDescription) {
        let id = self.ids.at(server).next().expect("one that none has in the end");
        self.feed(now, described(id, description));
    }

    /// As the thread that writes does.
    fn write(&mut self) {
        while let Some(chunk) = self.recorder.take_chunk() {
            self.writer.write(&chunk).expect("memory");
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.recorder.flush();
        self.write();
        self.writer.finish().expect("memory")
    }
}

fn at(milliseconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_millis(milliseconds)
}

/// In chunks of a few inputs.
fn small_chunks() -> JournalOptions {
    JournalOptions::default().with_chunk_bytes(1_000)
}

/// All that is known, times included.
fn shown(description: &TopologyDescription) -> String {
    let mut shown = format!("{:?} {:?}", description.kind, description.set_name);
    shown += &format!(" {:?} {:?}", description.max_set_version, description.max_election_id);
    for (address, server) in description.servers() {
        let hello = server.hello.as_deref().map(|hello| {
            let mut hello = hello.clone();
            hello.connection_id = None;
            let members: Vec<_> =
                hello.membership.iter().flat_map(|it| it.members()).cloned().collect();
            format!("{hello:?} {members:?}")
        });
        let error = server.error.as_ref().map(ToString::to_string);
        let ServerDescription { topology_version, round_trip, updated, .. } = &**server;
        shown += &format!(
            "\n{address} {hello:?} {error:?} {topology_version:?} {round_trip:?} {updated:?}"
        );
    }
    for (address, reason) in description.excluded() {
        shown += &format!("\n{address} is not used: {reason}");
    }
    shown
}

/// The actions of a whole trace, and the description in the end.
fn replayed(trace: &[u8]) -> (Vec<ActionRecord>, Arc<TopologyDescription>, u64) {
    let mut replay = Replay::new(trace).expect("a trace");
    let (mut actions, mut lost) = (Vec::new(), 0);
    while let Some(step) = replay
        .step(&mut |action: Action| actions.push(ActionRecord::of(&action)))
        .expect("it goes the way it went")
    {
        lost += step.lost_before.unwrap_or(0);
    }
    (actions, Arc::clone(replay.topology().description()), replay.steps() + lost)
}

/// Steps that could be taken, and why no more.
fn read(trace: impl Read) -> (u64, Result<(), TraceError>) {
    let mut replay = match Replay::new(trace) {
        Ok(replay) => replay,
        Err(error) => return (0, Err(error)),
    };
    let outcome = replay.verify().map(drop);
    (replay.steps(), outcome)
}

/// A set of three whose primary is lost, with an election.
fn incident(recorded: &mut Recorded) {
    let hosts = ["a:27017", "b:27017", "c:27017"];
    let mut tagged = elected(&hosts, 1, 1);
    tagged.append(bson::cstr!("tags"), rawdoc! { "dc": "ny" });
    tagged.append(bson::cstr!("lastWrite"), rawdoc! { "lastWriteDate": date(1) });
    let secondary = member("rs", "secondary", &hosts);
    for (now, server, reply) in [
        (2, "a:27017", &tagged),
        (3, "b:27017", &secondary),
        (4, "c:27017", &secondary),
        (10_002, "a:27017", &tagged),
        (12_500, "b:27017", &elected(&hosts, 2, 1)),
    ] {
        let round_trip = RoundTrip { average: Duration::from_millis(now), minimum: Duration::ZERO };
        recorded.feed_check(at(now), server, described_at(reply, Some(round_trip), at(now)));
    }
    recorded.feed_check(at(12_400), "a:27017", refused(at(12_400)));
    recorded.feed(at(14_000), Input::Close);
}

fn date(milliseconds: i64) -> bson::DateTime {
    bson::DateTime::from_millis(milliseconds)
}

fn described(id: ServerId, description: ServerDescription) -> Input {
    Input::Described { id, description: Arc::new(description) }
}

fn refused(now: Instant) -> ServerDescription {
    let error = ConnectionError::network(Stage::Tcp, "connection refused");
    ServerDescription::unknown(error, None, now)
}

fn recorded_incident() -> Vec<u8> {
    let mut recorded = Recorded::new("mongodb://a/?replicaSet=rs", small_chunks());
    incident(&mut recorded);
    recorded.finish()
}

fn documents(trace: &[u8]) -> Vec<Document> {
    let mut rest = trace;
    std::iter::from_fn(|| {
        (!rest.is_empty()).then(|| Document::from_reader(&mut rest).expect("BSON"))
    })
    .collect()
}

fn in_bytes(documents: &[Document]) -> Vec<u8> {
    let raw = |it| bson::RawDocumentBuf::try_from(it).expect("BSON").into_bytes();
    documents.iter().flat_map(raw).collect()
}

proptest! {
    /// A recorder changes nothing, and a replay goes the same way to the same end.
    #[test]
    fn any_inputs_are_replayed(uri in uri(), steps in steps(), pace in 0..3_u64) {
        let mut recorded = Recorded::new(uri, small_chunks());
        let (mut plain, mut actions) = (topology(uri), Vec::new());
        for (number, step) in (1..).zip(&steps) {
            let now = at(number * pace);
            let input = input(step, now, &recorded.ids);
            plain.handle(input.clone(), &mut |action| actions.push(ActionRecord::of(&action)));
            recorded.feed(now, input);
            recorded.write();
        }
        prop_assert_eq!(&recorded.actions, &actions);
        let trace = recorded.finish();
        let (again, description, inputs) = replayed(&trace);
        prop_assert_eq!(inputs, steps.len() as u64);
        prop_assert_eq!(again, actions);
        prop_assert_eq!(shown(&description), shown(plain.description()));
    }

    /// Whose place in the order of addresses is another one then.
    #[test]
    fn any_inputs_are_replayed_without_addresses(uri in uri(), steps in steps()) {
        let info = TraceInfo::default().with_addresses(Disclosure::Hashed);
        let mut recorded = Recorded::with_info(uri, small_chunks(), info);
        for (number, step) in (0..).zip(&steps) {
            recorded.feed(at(number), input(step, at(number), &recorded.ids));
            recorded.write();
        }
        prop_assert_eq!(replayed(&recorded.finish()).2, steps.len() as u64);
    }

    /// Where the disk does not keep up, the trace tells how many inputs are missing, and goes on after them.
    #[test]
    fn what_is_not_written_in_time_is_a_gap(uri in uri(), steps in steps(), every in 1..40_usize) {
        let options = small_chunks().with_backlog(1);
        let mut recorded = Recorded::new(uri, options);
        for (number, step) in steps.iter().enumerate() {
            let now = at(number as u64);
            recorded.feed(now, input(step, now, &recorded.ids));
            if number % every == 0 {
                recorded.write();
            }
        }
        recorded.write();
        // The first one goes on after the last gap.
        let last = Step::Fail { server: 4 };
        let last = input(&last, at(99), &recorded.ids);
        recorded.feed(at(99), last.clone());
        recorded.feed(at(99), last);
        let end = shown(recorded.recorder.description());
        let (_, description, inputs) = replayed(&recorded.finish());
        prop_assert_eq!(inputs, steps.len() as u64 + 2);
        prop_assert_eq!(shown(&description), end);
    }

    /// At any time the flight recorder can be written, and its trace ends in the present state.
    #[test]
    fn a_flight_recorder_ends_in_the_present(
        uri in uri(), steps in steps(), bytes in 0..20_000_usize, every in 1..20_usize,
    ) {
        let (topology, mut ids) = with_ids(uri);
        let mut recorder = Recorder::new(topology).with_flight_recorder(at(0), bytes);
        for (number, step) in steps.iter().enumerate() {
            let now = at(number as u64);
            let input = input(step, now, &ids);
            recorder.handle(now, input, &mut |action| ids.note(&action));
            if number % every > 0 {
                continue;
            }
            let recording = recorder.flight_recording().expect("there is one");
            let trace = recording.write_to(&TraceInfo::default(), Vec::new()).expect("memory");
            let (_, description, inputs) = replayed(&trace);
            prop_assert_eq!(inputs, recording.inputs());
            prop_assert_eq!(shown(&description), shown(recorder.description()));
        }
    }

}

/// A server can make up what no replica set is. Then the trace has a gap, and goes on when it can.
#[test]
fn what_is_too_large_is_a_gap() {
    for (uri, is_refused) in [("mongodb://a", true), ("mongodb://a/?directConnection=true", false)]
    {
        let crowd: Vec<_> = (0..9_000).map(|port| format!("host{port}:27017")).collect();
        let crowd: Vec<_> = crowd.iter().map(String::as_str).collect();
        let mut recorded = Recorded::new(uri, small_chunks());
        let mut flight = Recorder::new(topology(uri)).with_flight_recorder(at(0), 9_000);
        let inputs = [
            (1, member("rs", "primary", &["a:27017"])),
            (2, member("rs", "primary", &crowd)),
            (3, member("rs", "primary", &crowd)),
            (4, member("rs", "primary", &["a:27017"])),
            (5, member("rs", "secondary", &["a:27017"])),
        ];
        for (now, reply) in inputs {
            let input = described(ServerId(1), described_at(&reply, None, at(now)));
            recorded.feed(at(now), input.clone());
            flight.handle(at(now), input, &mut |_| {});
        }
        let recording = flight.flight_recording().expect("there is one");
        let flight = recording.write_to(&TraceInfo::default(), Vec::new()).expect("memory");
        let trace = recorded.finish();
        assert!(trace.len() < 10_000);
        let lost = documents(&trace).iter().filter_map(|it| it.get_i32("lost").ok()).sum::<i32>();
        // What is refused is not in the state, so that each is a gap of its own.
        assert_eq!(lost, if is_refused { 2 } else { 3 });
        for trace in [trace, flight] {
            let (_, description, _) = replayed(&trace);
            let server = description.server(&address("a:27017")).expect("the seed");
            assert_eq!(server.kind(), Some(ServerKind::RsSecondary));
        }
    }
}

#[test]
fn a_recorder_says_what_it_does() {
    let plain = Recorder::new(topology("mongodb://a"));
    assert!(!plain.is_journaled() && plain.flight_recording().is_none());
    let both = plain.with_flight_recorder(at(0), 1_000);
    let mut both = both.with_journal(at(0), JournalOptions::default());
    assert!(both.is_journaled() && !both.has_full_chunk() && both.take_chunk().is_none());
    both.flush();
    assert!(both.has_full_chunk());
    assert_eq!(
        both.take_chunk().map(|chunk| (chunk.inputs(), format!("{chunk:?}"))),
        Some((0, "Chunk(0 inputs, from a state)".to_owned()))
    );
    both.flush();
    assert!(both.take_chunk().is_none(), "what is told is not told again");
    both.end_journal();
    assert!(!both.is_journaled() && both.flight_recording().is_some());
}

#[test]
fn a_trace_begins_with_the_first_chunk() {
    let mut recorder = Recorder::new(topology("mongodb://a")).with_journal(at(0), small_chunks());
    recorder.flush();
    let first = recorder.take_chunk().expect("where it begins");
    recorder.handle(at(1), Input::Close, &mut |_| {});
    recorder.flush();
    let second = recorder.take_chunk().expect("what came then");
    let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
    let error = writer.write(&second).expect_err("one before it is missing");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    writer.write(&first).expect("memory");
    writer.write(&second).expect("memory");
    assert_eq!(read(writer.finish().expect("memory").as_slice()).0, 1);
}

/// What the monitor of a server says that was removed is not about the one that was added later at its address: not in
/// a replay either, wherever that begins.
#[test]
fn a_server_that_comes_back_is_another_one() {
    let (both, one) = (["a:27017", "b:27017"], ["a:27017"]);
    let secondary = || described_at(&member("rs", "secondary", &both), None, at(0));
    for chunk_bytes in [1, 1 << 16] {
        let options = JournalOptions::default().with_chunk_bytes(chunk_bytes);
        let mut recorded = Recorded::new("mongodb://a/?replicaSet=rs", options);
        let elect = |recorded: &mut Recorded, now, hosts: &[&str], version| {
            let primary = described_at(&elected(hosts, 1, version), None, at(now));
            recorded.feed_check(at(now), "a:27017", primary);
        };
        elect(&mut recorded, 1, &both, 1);
        recorded.feed_check(at(2), "b:27017", secondary());
        elect(&mut recorded, 3, &one, 2);
        elect(&mut recorded, 4, &both, 3);
        let topology = Topology::clone(&recorded.recorder);
        let mut flight = Recorder::new(topology).with_flight_recorder(at(4), 9_000);
        for id in [ServerId(2), ServerId(9)] {
            recorded.feed(at(5), described(id, secondary()));
            flight.handle(at(5), described(id, secondary()), &mut |_| {});
        }
        let recording = flight.flight_recording().expect("there is one");
        let flight = recording.write_to(&TraceInfo::default(), Vec::new()).expect("memory");
        let added: Vec<_> =
            recorded.actions.iter().filter(|it| it.name == "AddServer").map(|it| it.id).collect();
        assert_eq!(added, [2, 3].map(|id| Some(ServerId(id))));
        for trace in [recorded.finish(), flight] {
            let mut replay = Replay::new(trace.as_slice()).expect("a trace");
            while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
                assert_eq!(step.server.is_none(), step.at == at(5), "those of the end are gone");
            }
            let description = replay.topology().description();
            let b = description.server(&address("b:27017")).expect("it came back");
            assert_eq!(b.kind(), None, "not checked yet");
        }
    }
}
