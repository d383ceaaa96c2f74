//! Traces that are cut, damaged, changed, or none at all.

use bson::{Document, doc};
use cenote_core::trace::topology::Replay;
use cenote_core::trace::{self, TraceProblem, format_of};
use proptest::prelude::*;

use super::{date, documents, in_bytes, read, recorded_incident};

proptest! {
    /// Whatever was damaged: a message in one line, with the place.
    #[test]
    fn random_damage_is_met_with_a_message(
        damages in prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut trace = recorded_incident();
        for (kind, place, byte) in damages {
            if trace.is_empty() {
                break;
            }
            let place = place.index(trace.len());
            match kind {
                0 => trace[place] ^= 1 << (byte % 8),
                1 => trace[place] = byte,
                2 => trace.truncate(place),
                _ => drop(trace.drain(place..(place + usize::from(byte)).min(trace.len()))),
            }
        }
        let length = trace.len() as u64;
        let (steps, outcome) = read(trace.as_slice());
        if let Err(error) = outcome {
            prop_assert!(error.byte <= length && error.step == steps, "{}", error);
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn bytes_that_are_no_trace_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(bytes.as_slice()).1.is_err());
    }
}

#[test]
fn a_trace_that_is_cut_at_any_byte_replays_up_to_there() {
    let trace = recorded_incident();
    let mut last = 0;
    for length in 0..trace.len() {
        let (steps, outcome) = read(&trace[..length]);
        let error = outcome.expect_err("cut");
        assert!(error.byte <= length as u64, "{error}");
        assert!(steps >= last && steps == error.step, "{error}: {steps} after {last}");
        last = steps;
        let expected = if length == 0 { "empty" } else { "cut" };
        assert!(error.to_string().contains(expected), "{length}: {error}");
        assert!(!error.is_difference());
    }
    assert!(read(trace.as_slice()).1.is_ok());
    assert_eq!(last, 7);
}

/// As if the machine had decided otherwise, or the file had been changed: told at the step itself.
#[test]
fn a_difference_is_told_at_its_step() {
    let difference = |change: &dyn Fn(&mut Vec<Document>)| {
        let mut documents = documents(&recorded_incident());
        change(&mut documents);
        let error = read(in_bytes(&documents).as_slice()).1.expect_err("another one");
        assert!(error.is_difference(), "{error}");
        let text = error.to_string();
        let (_, text) = text.split_once("step ").expect("the step");
        text.to_owned()
    };
    let input = |documents: &mut Vec<Document>, number: usize| {
        let places = documents
            .iter()
            .enumerate()
            .filter(|(_, it)| it.keys().next().is_some_and(|it| it == "t"));
        places.map(|(place, _)| place).nth(number - 1).expect("so many inputs")
    };
    // The primary of the first step is a secondary.
    let told = difference(&|documents| {
        let place = input(documents, 1);
        documents[place].insert("kind", "RSSecondary");
    });
    assert_eq!(
        told,
        "1: action 1 is ServerDescriptionChanged a:27017 Unknown -> RSSecondary, but ServerDescriptionChanged a:27017 \
         Unknown -> RSPrimary was recorded"
    );
    // An election without a winner.
    let told = difference(&|documents| {
        let place = input(documents, 5);
        let member = documents[place].get_document_mut("member").expect("a member");
        member.insert("electionId", bson::oid::ObjectId::from_bytes([0; 12]));
    });
    assert!(
        told.starts_with(
            "5: action 1 is ServerDescriptionChanged b:27017 RSSecondary -> Unknown, but "
        ),
        "{told}"
    );
    let told = difference(&|documents| {
        let place = input(documents, 2);
        documents.remove(place + 1);
    });
    assert_eq!(
        told,
        "2: action 1 is ServerDescriptionChanged b:27017 Unknown -> RSSecondary, but nothing was recorded"
    );
    let told = difference(&|documents| {
        let place = input(documents, 4);
        documents
            .insert(place + 1, doc! { "acts": [{ "a": "AddServer", "s": "d:27017", "id": 4 }] });
    });
    assert_eq!(told, "4: action 1 is nothing, but AddServer d:27017 as server 4 was recorded");
}

#[test]
fn each_kind_of_damage_has_its_message() {
    let header = || {
        doc! {
            "format": "cenote-topology", "version": 1, "origin": date(0), "t": 0_i64, "kind": "Unknown",
            "hosts": ["a:27017"], "lastId": 1, "servers": 1, "excluded": 0,
        }
    };
    let known = || doc! { "known": "a:27017", "id": 1, "updated": false };
    let with = |documents: &[Document]| {
        let error = read(in_bytes(documents).as_slice()).1.expect_err("damaged").to_string();
        error.split_once(": ").map(|(_, told)| told.to_owned()).expect("its place")
    };
    for (document, expected) in [
        (doc! { "t": 1_i64 }, "damaged: `server, same or the like` is missing"),
        (doc! { "t": 1_i64, "nap": true }, "damaged: `nap` is no input"),
        (doc! { "t": 1_i64, "server": "a" }, "damaged: `server` is not a whole number"),
        (doc! { "t": 1_i64, "same": -1 }, "damaged: `same` is below 0"),
        (doc! { "t": 1_i64, "hosts": ["a b"] }, "damaged: `hosts` is no address of a server"),
        (doc! { "t": 1_i64, "hosts": ["#\u{1b}"] }, "damaged: `hosts` is no address of a server"),
        (
            doc! { "t": 1_i64, "server": 1, "kind": "King" },
            "damaged: `kind` is none of the texts that it can be",
        ),
        (doc! { "t": 1_i64, "server": 1, "e": 3 }, "damaged: `e` names a cause that was not told"),
        (doc! { "t": 1_i64, "server": 1, "version": {} }, "damaged: `processId` is missing"),
        (doc! { "t": 1_i64, "server": 1, "rtt": -1 }, "damaged: `rtt` is below 0"),
        (
            doc! { "t": 1_i64, "server": 1, "kind": "Mongos", "maxWire": 1_i64 << 40 },
            "damaged: `maxWire` is too large",
        ),
        (
            doc! { "t": 1_i64, "server": 1, "kind": "Mongos", "limits": { "object": 1 } },
            "damaged: `message` is missing",
        ),
        (
            doc! { "t": 1_i64, "server": 1, "kind": "RSOther", "member": { "tags": { "dc": 1 } } },
            "damaged: `tags` holds something that is not a text",
        ),
        (
            doc! { "t": 1_i64, "server": 1, "kind": "RSOther", "member": { "hosts": [1] } },
            "damaged: `hosts` holds something that is not a text",
        ),
        (doc! { "t": 1_i64, "hosts": "a" }, "damaged: `hosts` is not an array"),
        (doc! { "acts": [1] }, "damaged: `acts` holds something that is not a document"),
        (doc! { "acts": [{ "a": "Nap" }] }, "damaged: `a` is none of the texts that it can be"),
        (doc! { "cause": 5000 }, "damaged: `cause` is above the highest number that it can be"),
        (doc! { "lost": 1, "t": 0_i64 }, "damaged: `kind` is missing"),
        (doc! { "known": "b" }, "damaged: a document that begins with `known` makes no sense here"),
        (
            doc! { "end": 5 },
            "there were 5 inputs up to here when this was recorded, but 0 are in it",
        ),
        (doc! { "x": 5 }, "damaged: no document of a trace begins with `x`"),
        (doc! {}, "damaged: `t, acts or the like` is missing"),
    ] {
        let told = with(&[header(), known(), document.clone()]);
        assert!(told.ends_with(expected), "{document}: {told}");
    }
    let early = [doc! { "t": 5_i64, "close": true }, doc! { "t": 4_i64, "close": true }];
    let told = with(&[vec![header(), known()], early.to_vec()].concat());
    assert!(
        told.ends_with("times out of order: 4 ns comes after 5 ns and is not marked `back`"),
        "{told}"
    );
    for second in [1, 2] {
        let mut two = header();
        two.insert("servers", 2);
        let told = with(&[two, known(), doc! { "known": "b", "id": second }]);
        assert!(told.ends_with("damaged: `id` is not that of one server up to `lastId`"), "{told}");
    }
    let told = with(&[header(), doc! { "excluded": "a", "e": 1 }]);
    assert!(told.ends_with("a document that begins with `excluded` makes no sense here"), "{told}");
    let mut newer = header();
    newer.insert("version", 3);
    assert!(with(&[newer]).ends_with("a trace of version 3, but this program reads none above 2"));
}

/// Which of the two a file is, is told by its beginning.
#[test]
fn the_trace_of_a_pool_is_another_one() {
    let topology = recorded_incident();
    let error = trace::Replay::new(topology.as_slice()).expect_err("no trace of a pool");
    assert!(matches!(error.problem, TraceProblem::OtherFormat { .. }), "{error}");
    assert!(error.to_string().ends_with(
        "a trace with format: \"cenote-topology\", where one with \"cenote-trace\" is expected"
    ));
    let pool = in_bytes(&[doc! { "format": "cenote-trace", "version": 1 }]);
    assert_eq!(format_of(&pool[..trace::FORMAT_BYTES.min(pool.len())]), Some("cenote-trace"));
    let error = Replay::new(pool.as_slice()).expect_err("no trace of a topology");
    assert!(matches!(error.problem, TraceProblem::OtherFormat { .. }), "{error}");
    for other in
        [&b""[..], b"This is not a trace, it is a text.", &in_bytes(&[doc! { "format": "cenote" }])]
    {
        assert_eq!(format_of(other), None);
    }
}
