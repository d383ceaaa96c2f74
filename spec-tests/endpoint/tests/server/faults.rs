//! Everything that can be ordered to go wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::wire::{Flags, Framer, Message, MessageLimit, WireError, decompress};
use cenote_endpoint::{ConnectionId, Ending, Fault, Script, Settings};

use crate::server::client::{End, World};

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

/// A world where that happens at every ping.
fn with(fault: Fault) -> (World, ConnectionId) {
    let mut world = World::seeded();
    let script = Script::new(fault).at_command("ping", 0);
    world.server.set_fault(world.now, script);
    let id = world.connect();
    (world, id)
}

/// What a client reads of the first message after a ping with that fault.
fn read(fault: Fault) -> Result<(), WireError> {
    let (mut world, id) = with(fault);
    world.send(id, "admin", &ping(), Flags::NONE);
    let limit = MessageLimit::DEFAULT;
    let mut framer = Framer::new(limit);
    framer.push(&world.socket(id).received);
    let mut scratch = Vec::new();
    match framer.next_frame()? {
        Some(frame) => Message::parse(decompress(frame, limit, &mut scratch)?).map(|_| ()),
        None => framer.finish(),
    }
}

/// The bytes of a good reply.
fn good_reply() -> Vec<u8> {
    let mut world = World::seeded();
    let id = world.connect();
    world.send(id, "admin", &ping(), Flags::NONE);
    std::mem::take(&mut world.socket(id).received)
}

#[test]
fn connections_end_in_every_way() {
    for (fault, end) in [(Fault::Close, End::Closed), (Fault::Reset, End::Reset)] {
        let (mut world, id) = with(fault);
        world.good(id, "admin", &rawdoc! { "hello": 1 });
        world.send(id, "admin", &ping(), Flags::NONE);
        assert!(world.socket(id).received.is_empty());
        assert_eq!(world.socket(id).end, Some(end));
        assert_eq!(world.server.statistics().open, 0);
    }
    for (fault, half_closed) in [(Fault::HalfClose, true), (Fault::Stall, false)] {
        let (mut world, id) = with(fault);
        world.send(id, "admin", &ping(), Flags::NONE);
        world.send(id, "admin", &rawdoc! { "hello": 1 }, Flags::NONE);
        world.push(id, b"not even a message is noticed");
        world.pass(Duration::from_secs(3600));
        let socket = world.socket(id);
        assert!(socket.received.is_empty());
        assert_eq!((socket.end, socket.half_closed), (None, half_closed));
    }
}

#[test]
fn a_reply_is_cut_anywhere() {
    let whole = good_reply();
    for (bytes, then, end) in [
        (0, Ending::Close, Some(End::Closed)),
        (7, Ending::Reset, Some(End::Reset)),
        (whole.len() - 1, Ending::Stall, None),
        (usize::MAX, Ending::Close, Some(End::Closed)),
    ] {
        let (mut world, id) = with(Fault::Cut { bytes, then });
        world.send(id, "admin", &ping(), Flags::NONE);
        let socket = world.socket(id);
        assert_eq!(socket.received, whole[..bytes.min(whole.len())]);
        assert_eq!(socket.end, end);
    }
}

#[test]
fn a_reply_drips_and_what_follows_waits() {
    let every = Duration::from_millis(10);
    let (mut world, id) = with(Fault::Drip { bytes: 5, every });
    world.send(id, "admin", &ping(), Flags::NONE);
    world.send(id, "admin", &rawdoc! { "hello": 1 }, Flags::NONE);
    let length = good_reply().len();
    let mut there = 5;
    while there < length {
        assert_eq!(world.socket(id).received.len(), there);
        assert_eq!(world.server.next_deadline(), Some(world.now + every));
        world.pass(every);
        there += 5;
    }
    let reply = world.answer(id).expect("all of it");
    assert_eq!(reply.body.get_f64("ok").unwrap(), 1.0);
    assert!(world.answer(id).expect("hello").body.contains_key("isWritablePrimary"));
    assert_eq!(world.server.next_deadline(), None);
}

#[test]
fn bytes_are_wrong_in_every_way() {
    let max = MessageLimit::DEFAULT.bytes();
    for got in [-1, 15, i32::MAX] {
        assert_eq!(read(Fault::Length { value: got }), Err(WireError::MessageLength { got, max }));
    }
    assert!(matches!(read(Fault::Length { value: 1000 }), Err(WireError::EndOfStream { .. })));
    assert_eq!(read(Fault::OpCode { value: 2010 }), Err(WireError::UnknownOpCode { got: 2010 }));
    assert!(matches!(read(Fault::Checksum), Err(WireError::Checksum { .. })));
    assert_eq!(read(Fault::CompressorId { value: 9 }), Err(WireError::UnknownCompressor { id: 9 }));
    assert_eq!(read(Fault::CompressorId { value: 0 }), Ok(()), "that is `noop`");
    assert!(matches!(read(Fault::CompressorId { value: 2 }), Err(WireError::Corrupt { .. })));
    assert!(matches!(read(Fault::DeepBson { levels: 1000 }), Err(WireError::Bson { .. })));
    let bomb = Fault::Bomb { bytes: 60_000_000, claimed: None };
    assert!(matches!(read(bomb), Err(WireError::UncompressedSize { .. })));
    let liar = Fault::Bomb { bytes: 1_000_000, claimed: Some(1_000) };
    assert!(matches!(read(liar), Err(WireError::UncompressedMismatch { .. })));
    for bytes in [16, 100, 5000] {
        assert!(read(Fault::Garbage { bytes }).is_err(), "{bytes} bytes of garbage");
    }
}

#[test]
fn replies_answer_to_what_was_not_asked() {
    let (mut world, id) = with(Fault::ResponseTo { off_by: 3 });
    let request = world.send(id, "admin", &ping(), Flags::NONE);
    assert_eq!(world.answer(id).unwrap().header.ids.response_to, request + 3);
    let (mut world, id) = with(Fault::Twice);
    world.send(id, "admin", &ping(), Flags::NONE);
    assert!(world.answer(id).is_some() && world.answer(id).is_some());
    assert!(world.answer(id).is_none());
}

#[test]
fn two_connections_get_each_others_replies() {
    let (mut world, first) = with(Fault::Crossed);
    let second = world.connect();
    let ping = |world: &mut World, id| world.send(id, "admin", &ping(), Flags::NONE);
    let request = ping(&mut world, first);
    assert!(world.answer(first).is_none(), "it waits for another one");
    let other = ping(&mut world, second);
    let replies = [first, second].map(|id| world.answer(id).expect("a reply"));
    assert_eq!(replies.map(|reply| reply.header.ids.response_to), [other, request]);

    // One that is left alone gets its own reply when the fault ends, unless it has ended before.
    let request = ping(&mut world, first);
    world.server.clear_faults(world.now);
    world.collect();
    let reply = world.answer(first).expect("a reply");
    assert_eq!(reply.header.ids.response_to, request);
    world.server.set_fault(world.now, Script::new(Fault::Crossed));
    ping(&mut world, first);
    world.server.closed(world.now, first);
    ping(&mut world, second);
    assert!(world.answer(second).is_none());
    assert_eq!(world.server.statistics().faults, 5);
}

#[test]
fn only_idle_connections_are_broken_or_spoken_to() {
    let mut world = World::seeded();
    let stalls = Script::new(Fault::Cut { bytes: 9, then: Ending::Stall }).at_command("ping", 0);
    world.server.set_fault(world.now, stalls);
    let [idle, part, silent] = [(); 3].map(|()| world.connect());
    world.push(part, &[0; 4]);
    world.send(silent, "admin", &ping(), Flags::NONE);
    assert_eq!(world.server.send_unasked(world.now, b"what?"), 1);
    assert_eq!(world.server.break_idle(world.now, Ending::Fin), 1);
    world.collect();
    for (id, received, end) in [
        (idle, &b"what?"[..], Some(End::Closed)),
        (part, &[], None),
        (silent, &good_reply()[..9], None),
    ] {
        let socket = world.socket(id);
        assert_eq!((&*socket.received, socket.end), (received, end));
    }
}

#[test]
fn every_text_is_hostile() {
    let (mut world, id) = with(Fault::HostileTexts { fails: true });
    world.server.set_fault(
        world.now,
        Script::new(Fault::HostileTexts { fails: false }).at_command("hello", 0),
    );
    let (mut seen, mut longest) = (BTreeSet::new(), 0);
    for _ in 0..50 {
        let reply = world.run(id, "admin", &ping());
        assert_eq!((reply.get_f64("ok").ok(), reply.get_i32("code").ok()), (Some(0.0), Some(8)));
        let hello = world.good(id, "admin", &rawdoc! { "hello": 1 });
        for reply in [reply, hello] {
            for field in ["setName", "me", "primary", "errmsg", "codeName"] {
                let text = reply.get_str(field).expect("a text");
                longest = longest.max(text.len());
                seen.extend(text.chars().filter(|letter| letter.is_control()));
            }
            assert_eq!(reply.get_array("hosts").expect("hosts").len(), 2);
        }
    }
    assert_eq!(longest, 64 * 1024);
    assert!(seen.contains(&'\u{1b}') && seen.contains(&'\n') && seen.contains(&'\0'), "{seen:?}");
}

#[test]
fn nobody_listens_until_it_is_cleared() {
    let mut world =
        World::new(Settings { scripts: vec![Script::new(Fault::Refuse)], ..Settings::seeded(1) });
    assert!(!world.listening);
    world.server.clear_faults(world.now);
    world.collect();
    assert!(world.listening);
    let id = world.server.set_fault(world.now, Script::new(Fault::Refuse));
    let twice = world.server.set_fault(world.now, Script::new(Fault::Refuse));
    world.collect();
    assert!(!world.listening);
    world.server.clear_fault(world.now, id);
    world.collect();
    assert!(!world.listening, "the other one still refuses");
    world.server.clear_fault(world.now, twice);
    world.collect();
    assert!(world.listening);
}

#[test]
fn some_faults_come_before_the_first_byte() {
    let mut world = World::seeded();
    for fault in [Fault::Reset, Fault::Stall, Fault::Close, Fault::Garbage { bytes: 20 }] {
        world.server.set_fault(world.now, Script::new(fault).at_accept().times(1));
    }
    let ids: Vec<_> = (0..5).map(|_| world.connect()).collect();
    let ends: Vec<_> = ids.iter().map(|id| world.socket(*id).end).collect();
    assert_eq!(ends, [Some(End::Reset), None, Some(End::Closed), None, None]);
    assert_eq!(world.socket(ids[3]).received.len(), 20);
    world.send(ids[1], "admin", &ping(), Flags::NONE);
    assert!(world.answer(ids[1]).is_none());
    world.good(ids[4], "admin", &ping());
    // One that needs a reply waits for the first.
    let cut = Fault::Cut { bytes: 3, then: Ending::Close };
    world.server.set_fault(world.now, Script::new(cut).at_accept());
    let id = world.connect();
    assert_eq!(world.socket(id).end, None);
    world.send(id, "admin", &rawdoc! { "hello": 1 }, Flags::NONE);
    assert_eq!(world.socket(id).received.len(), 3);
}

#[test]
fn a_script_says_where_and_how_often() {
    // The second ping of each connection from the second on, three times in all.
    let mut world = World::seeded();
    let script = Script::new(Fault::Reset).at_command("ping", 1).on_connections(2..=9).times(3);
    world.server.set_fault(world.now, script);
    let pings = |world: &mut World| {
        let id = world.connect();
        let answered = (0..3).take_while(|_| {
            world.send(id, "admin", &ping(), Flags::NONE);
            world.answer(id).is_some()
        });
        answered.count()
    };
    let counts: Vec<_> = (0..6).map(|_| pings(&mut world)).collect();
    assert_eq!(counts, [3, 1, 1, 1, 3, 3]);
}

#[test]
fn a_script_is_for_one_application_and_either_name_of_a_command() {
    let mut world = World::seeded();
    let script = Script::new(Fault::Reset).at_command("ismaster", 0).for_app("a");
    world.server.set_fault(world.now, script);
    let (a, b) = (world.connect_app("a"), world.connect_app("b"));
    world.good(b, "admin", &rawdoc! { "isMaster": 1 });
    world.send(a, "admin", &rawdoc! { "isMaster": 1 }, Flags::NONE);
    assert_eq!(world.socket(a).end, Some(End::Reset));
}

#[test]
fn the_first_script_that_fits_happens() {
    let mut world = World::seeded();
    world.server.set_fault(world.now, Script::new(Fault::Close).times(1));
    world.server.set_fault(world.now, Script::new(Fault::Reset));
    let ends: Vec<_> = (0..2)
        .map(|_| {
            let id = world.connect();
            world.send(id, "admin", &ping(), Flags::NONE);
            world.socket(id).end
        })
        .collect();
    assert_eq!(ends, [Some(End::Closed), Some(End::Reset)]);
}

#[test]
fn the_command_was_run_when_its_reply_is_spoilt() {
    let mut world = World::seeded();
    let script = Script::new(Fault::Reset).at_command("insert", 0);
    world.server.set_fault(world.now, script);
    let (id, other) = (world.connect(), world.connect());
    let insert = rawdoc! { "insert": "birds", "documents": [{ "_id": 1 }] };
    world.send(id, "test", &insert, Flags::NONE);
    let count = world.good(other, "test", &rawdoc! { "count": "birds" });
    assert_eq!(count.get_i32("n").unwrap(), 1);
}

#[test]
fn open_connections_break_to_order() {
    let mut world = World::seeded();
    let (a, b) = (world.connect_app("a"), world.connect_app("b"));
    world.server.break_connections(world.now, Ending::Reset, Some("a"));
    world.collect();
    assert_eq!((world.socket(a).end, world.socket(b).end), (Some(End::Reset), None));
    world.server.shut_down(world.now);
    world.collect();
    assert!(world.socket(b).end == Some(End::Closed) && !world.listening);
    let late = world.connect();
    assert_eq!(world.socket(late).end, Some(End::Reset));
    world.server.restart(world.now);
    world.collect();
    assert!(world.listening);
    let id = world.connect();
    world.good(id, "admin", &ping());
}
