//! Replies come from outside: whatever the bytes, reading them for errors never panics.
//!
//! How: documents with the field names that matter and values of every type, then the same
//! documents with bytes flipped and tails cut off, then plain bytes.

#![cfg(feature = "protocol")]

use bson::oid::ObjectId;
use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::sdam::{Context, TopologyVersion, monitor_verdict, verdict};
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_document_is_read_without_panic(reply in reply()) {
        judge(&to_raw(&reply));
    }

    #[test]
    fn a_damaged_document_is_read_without_panic(
        reply in reply(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = to_raw(&reply).into_bytes();
        for (index, value) in flips {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        judge_bytes(&with_honest_frame(&bytes));
        bytes.truncate(cut.index(bytes.len()).max(5));
        judge_bytes(&with_honest_frame(&bytes));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 5..200)) {
        judge_bytes(&with_honest_frame(&bytes));
    }

    /// What was put in comes out, whichever numeric type carried it.
    #[test]
    fn a_well_formed_refusal_is_read_whole(
        code in any::<i32>(), message in ".{0,40}", labels in prop::collection::vec("[A-Z]{1,3}", 0..4),
        counter in any::<i64>(), as_type in 0..3,
    ) {
        let number = match as_type {
            0 => Bson::Int32(code),
            1 => Bson::Int64(i64::from(code)),
            _ => Bson::Double(f64::from(code)),
        };
        let process_id = [7; 12];
        let reply = doc! {
            "ok": 0, "code": number, "errmsg": &message, "errorLabels": &labels,
            "topologyVersion": { "processId": ObjectId::from_bytes(process_id), "counter": counter },
        };
        let error = CommandError::from_reply(&to_raw(&reply)).expect("ok is 0");
        prop_assert_eq!(error.code, Some(code));
        prop_assert_eq!(&error.message, &message);
        prop_assert!(labels.iter().all(|label| error.has_label(label)));
        prop_assert_eq!(error.topology_version, Some(TopologyVersion { process_id, counter }));
        prop_assert_eq!(error.to_string().lines().count(), 1);
    }
}

/// Reads the reply and asks every question that depends on what it says.
fn judge(reply: &RawDocument) {
    let Some(command_error) = CommandError::from_reply(reply) else { return };
    for stage in Stage::ALL {
        let error = ConnectionError::command(stage, command_error.clone());
        assert!(!error.is_network_error());
        assert_eq!(error.to_string().lines().count(), 1);
        for load_balanced in [false, true] {
            let context =
                Context { load_balanced, current_generation: true, topology_version: None };
            let _ = verdict(&context, &error);
        }
        let _ = monitor_verdict(&error);
    }
}

fn judge_bytes(bytes: &[u8]) {
    if let Ok(reply) = RawDocument::from_bytes(bytes) {
        judge(reply);
    }
}

/// Corrects length and terminator, so that the damage gets past the first look.
fn with_honest_frame(bytes: &[u8]) -> Vec<u8> {
    let mut framed = bytes.to_vec();
    let length = i32::try_from(framed.len()).expect("test documents are small");
    framed[..4].copy_from_slice(&length.to_le_bytes());
    if let Some(last) = framed.last_mut() {
        *last = 0;
    }
    framed
}

fn to_raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("keys without NUL")
}

fn reply() -> impl Strategy<Value = Document> {
    prop::collection::vec((key(), value()), 0..8).prop_map(|fields| fields.into_iter().collect())
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "ok",
        "code",
        "codeName",
        "errmsg",
        "errorLabels",
        "writeConcernError",
        "writeErrors",
        "topologyVersion",
        "processId",
        "counter",
        "x",
    ])
    .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        any::<bool>().prop_map(Bson::Boolean),
        prop_oneof![Just(0), Just(1), Just(91), any::<i32>()].prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_map(Bson::Double),
        prop_oneof![Just("not master".to_owned()), any::<String>()].prop_map(Bson::String),
        any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}
