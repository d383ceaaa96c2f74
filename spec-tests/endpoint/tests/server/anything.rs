//! Whatever comes: nothing panics, memory has bounds, and the same again gives the same.

use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{
    ConnectionId, Ending, Fault, Output, Peer, ReplicaSet, ScramSettings, Script, Server, Settings,
    Topology, User,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::server::client::{End, World};

/// Something that happens to a server.
#[derive(Clone, Debug)]
enum Step {
    Connect,
    /// On the connection of that index.
    Bytes(usize, Vec<u8>),
    Command(usize, usize, Flags),
    /// Part of a command, and the rest another time or never.
    Part(usize, usize, usize),
    Close(usize),
    Pass(u64),
    Fault(usize),
    Descend,
    Ascend,
    Restart,
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = 0..4_usize;
    let command = 0..commands().len();
    let flags = prop_oneof![
        4 => Just(Flags::NONE),
        1 => Just(Flags::MORE_TO_COME),
        1 => Just(Flags::EXHAUST_ALLOWED),
        1 => Just(Flags::CHECKSUM_PRESENT),
    ];
    let step = prop_oneof![
        3 => Just(Step::Connect),
        2 => (index.clone(), vec(any::<u8>(), 0..60)).prop_map(|(i, b)| Step::Bytes(i, b)),
        12 => (index.clone(), command.clone(), flags).prop_map(|(i, c, f)| Step::Command(i, c, f)),
        2 => (index.clone(), command, 0..80_usize).prop_map(|(i, c, n)| Step::Part(i, c, n)),
        1 => index.prop_map(Step::Close),
        5 => (0..3_000_u64).prop_map(Step::Pass),
        3 => (0..faults().len()).prop_map(Step::Fault),
        1 => Just(Step::Descend),
        1 => Just(Step::Ascend),
        1 => Just(Step::Restart),
        1 => Just(Step::Clear),
    ];
    vec(step, 0..60)
}

fn commands() -> Vec<RawDocumentBuf> {
    let fail = |mode: &str| {
        let data = rawdoc! {
            "failCommands": ["ping", "hello", "find"], "errorCode": 91,
            "blockConnection": true, "blockTimeMS": 700,
        };
        rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data }
    };
    let speculative = rawdoc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "db": "admin",
        "payload": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: b"n,,n=u,r=x".to_vec() },
    };
    vec![
        rawdoc! { "ping": 1 },
        rawdoc! { "hello": 1, "saslSupportedMechs": "admin.u", "speculativeAuthenticate": speculative },
        rawdoc! { "isMaster": 1, "compression": ["zlib"] },
        rawdoc! { "saslContinue": 1, "conversationId": 1, "payload": "x" },
        rawdoc! { "insert": "birds", "documents": [{ "a": 1 }, { "_id": 1 }] },
        rawdoc! { "find": "birds", "batchSize": 1, "filter": { "a": { "$gt": 0 } } },
        rawdoc! { "find": "birds", "filter": { "_id": 1 } },
        rawdoc! { "getMore": 1_i64, "collection": "birds" },
        rawdoc! { "update": "birds", "updates": [{ "q": {}, "u": { "$inc": { "a": 1 } } }] },
        rawdoc! { "delete": "birds", "deletes": [{ "q": { "a": 1 }, "limit": 1 }] },
        rawdoc! { "listCollections": 1, "cursor": { "batchSize": 0 } },
        rawdoc! { "nonsense": true },
        rawdoc! {},
        rawdoc! { "find": 1, "filter": [] },
        rawdoc! { "hello": 1, "topologyVersion": { "processId": 1 }, "maxAwaitTimeMS": -5 },
        fail("alwaysOn"),
        fail("off"),
    ]
}

fn faults() -> Vec<Fault> {
    let every = Duration::from_millis(50);
    vec![
        Fault::Refuse,
        Fault::Close,
        Fault::Reset,
        Fault::HalfClose,
        Fault::Stall,
        Fault::Cut { bytes: 20, then: Ending::Stall },
        Fault::Garbage { bytes: 30 },
        Fault::Drip { bytes: 9, every },
        Fault::Length { value: -1 },
        Fault::Checksum,
        Fault::CompressorId { value: 200 },
        Fault::Twice,
        Fault::DeepBson { levels: 300 },
    ]
}

fn message(command: &RawDocumentBuf, flags: Flags) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ids = Ids::request(7);
    let written = MessageWriter::command(&mut bytes, ids, flags, command, "admin")
        .and_then(|writer| writer.finish(MessageLimit::DEFAULT));
    // One without a name can only be written as it is.
    if written.is_err() {
        let writer = MessageWriter::new(&mut bytes, ids, flags, command);
        writer.finish(MessageLimit::DEFAULT).expect("it fits");
    }
    bytes
}

fn server(seed: u64) -> Server {
    let settings = Settings {
        topology: Topology::ReplicaSet(ReplicaSet::primary("rs")),
        users: vec![User::new("u", "p")],
        scram: ScramSettings {
            sha1_iterations: 2,
            sha256_iterations: 2,
            skip_empty_exchange: true,
        },
        ..Settings::seeded(seed)
    };
    Server::new(settings).expect("good settings")
}

/// Plays the steps, checks what always holds, and gives all outputs.
fn play(seed: u64, steps: &[Step]) -> Vec<Output> {
    let (mut server, mut now, mut outputs) = (server(seed), Duration::ZERO, Vec::new());
    let (mut ids, commands, faults): (Vec<ConnectionId>, _, _) = (Vec::new(), commands(), faults());
    for step in steps {
        let id = |index: &usize| ids.get(*index % ids.len().max(1)).copied();
        match step {
            Step::Connect => ids.push(server.accepted(now, Peer::default())),
            Step::Bytes(index, bytes) => {
                id(index).into_iter().for_each(|id| server.received(now, id, bytes));
            }
            Step::Command(index, command, flags) => {
                let bytes = message(&commands[*command], *flags);
                id(index).into_iter().for_each(|id| server.received(now, id, &bytes));
            }
            Step::Part(index, command, length) => {
                let bytes = message(&commands[*command], Flags::NONE);
                let part = &bytes[..bytes.len().min(*length)];
                id(index).into_iter().for_each(|id| server.received(now, id, part));
            }
            Step::Close(index) => id(index).into_iter().for_each(|id| server.closed(now, id)),
            Step::Pass(millis) => {
                now += Duration::from_millis(*millis);
                server.timer(now);
            }
            Step::Fault(fault) => {
                server.set_fault(now, Script::new(faults[*fault].clone()).times(2));
            }
            Step::Descend => server.step_down(now),
            Step::Ascend => server.step_up(now),
            Step::Restart => server.restart(now),
            Step::Clear => server.clear_faults(now),
        }
        outputs.extend(std::iter::from_fn(|| server.poll_output()));
    }
    for id in ids {
        server.closed(now, id);
    }
    assert_eq!(server.statistics().open, 0);
    assert_eq!(server.next_deadline(), None, "nothing waits without a connection");
    outputs
}

proptest! {
    #[test]
    fn the_same_seed_and_inputs_give_the_same_outputs(seed: u64, steps in steps()) {
        prop_assert_eq!(play(seed, &steps), play(seed, &steps));
    }

    /// Nothing is said to a connection that has ended.
    #[test]
    fn an_end_is_the_end(seed: u64, steps in steps()) {
        let mut ended = std::collections::BTreeSet::new();
        for output in play(seed, &steps) {
            let (id, ends) = match output {
                Output::Send { id, .. } | Output::HalfClose { id } => (id, false),
                Output::StopReading { id } | Output::ResumeReading { id } => (id, false),
                Output::Close { id } | Output::Fin { id } | Output::Reset { id } => (id, true),
                Output::Listen(_) => continue,
            };
            prop_assert!(!ended.contains(&id), "{} goes on after its end", id);
            if ends {
                ended.insert(id);
            }
        }
    }

    /// However bytes are cut, the answer is the same.
    #[test]
    fn cuts_do_not_matter(cuts in vec(1..40_usize, 0..30)) {
        let bytes: Vec<u8> = [0, 1, 2, 4, 5]
            .iter()
            .flat_map(|command| message(&commands()[*command], Flags::NONE))
            .collect();
        let answers = |pieces: &[&[u8]]| {
            let mut server = server(1);
            let id = server.accepted(Duration::ZERO, Peer::default());
            pieces.iter().for_each(|piece| server.received(Duration::ZERO, id, piece));
            std::iter::from_fn(|| server.poll_output()).collect::<Vec<_>>()
        };
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, left) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = left;
        }
        pieces.push(rest);
        prop_assert_eq!(answers(&pieces), answers(&[&bytes]));
    }
}

#[test]
fn another_seed_is_another_server() {
    let steps = [Step::Connect, Step::Command(0, 1, Flags::NONE)];
    assert_ne!(play(1, &steps), play(2, &steps));
    assert!(Server::new(Settings::default()).is_err(), "there is no entropy but the seed");
}

#[test]
fn whoever_sends_faster_than_is_answered_is_held_back() {
    let mut world = World::seeded();
    let id = world.connect();
    let block = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 1000 },
    };
    world.good(id, "admin", &block);
    let (_, ping) = world.message("admin", &rawdoc! { "ping": 1 }, Flags::NONE, &[]);
    let many = ping.repeat(1024 * 1024 / ping.len() + 2);
    world.push(id, &many);
    assert!(world.socket(id).reading_stopped);
    world.pass_ms(1000);
    assert!(!world.socket(id).reading_stopped);
    assert!(world.answer(id).is_some());
}

#[test]
fn whoever_goes_on_to_send_is_closed() {
    let limits = cenote_endpoint::Limits { message_size: 1 << 20, ..Default::default() };
    let mut world = World::new(Settings { limits, ..Settings::seeded(1) });
    let id = world.connect();
    let stall = rawdoc! { "hello": 1 };
    let known = world.good(id, "admin", &stall);
    let version = known.get_document("topologyVersion").unwrap();
    let version = RawDocumentBuf::try_from(version).unwrap();
    let wait = rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 1_000_000 };
    world.send(id, "admin", &wait, Flags::NONE);
    let piece = vec![0; 1 << 19];
    let pieces = (1..100).find(|_| {
        world.push(id, &piece);
        world.socket(id).end.is_some()
    });
    assert_eq!(pieces, Some(5), "two and a half mebibytes are more than two messages");
    assert_eq!(world.socket(id).end, Some(End::Closed));
}

#[test]
fn time_does_not_run_backwards() {
    let mut world = World::seeded();
    let id = world.connect();
    world.pass_ms(5_000);
    let later = world.good(id, "admin", &rawdoc! { "hello": 1 });
    world.now = Duration::ZERO;
    let earlier = world.good(id, "admin", &rawdoc! { "hello": 1 });
    assert_eq!(later["localTime"], earlier["localTime"]);
}
