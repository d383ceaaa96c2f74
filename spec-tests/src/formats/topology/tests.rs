use std::path::Path;

use cenote_conform::Document;
use serde_json::{Value, json};

use super::play_discovery;
use crate::formats::Verdict;

const ADDRESS: &str = "db.example:27017";

fn version(counter: i64) -> Value {
    json!({
        "processId": { "$oid": "0123456789abcdef01234567" },
        "counter": { "$numberLong": counter.to_string() },
    })
}

fn discovery() -> Value {
    json!({
        "description": "found",
        "responses": [[ADDRESS, {
            "ok": 1, "helloOk": true, "isWritablePrimary": true, "setName": "blue",
            "hosts": [ADDRESS], "minWireVersion": 0, "maxWireVersion": 25,
            "logicalSessionTimeoutMinutes": 7, "topologyVersion": version(4),
        }]],
        "outcome": outcome("RSPrimary", 4, 0),
    })
}

fn outcome(kind: &str, counter: i64, generation: u64) -> Value {
    let is_known = kind != "Unknown";
    json!({
        "servers": { ADDRESS: {
            "type": kind,
            "setName": if is_known { json!("blue") } else { Value::Null },
            "topologyVersion": if counter > 0 { version(counter) } else { Value::Null },
            "pool": { "generation": generation },
        } },
        "topologyType": if is_known { "ReplicaSetWithPrimary" } else { "ReplicaSetNoPrimary" },
        "setName": "blue",
        "logicalSessionTimeoutMinutes": if is_known { json!(7) } else { Value::Null },
    })
}

fn error(when: &str, kind: &str, outcome: &Value) -> Value {
    json!({
        "description": "fails",
        "applicationErrors":
            [{ "address": ADDRESS, "when": when, "maxWireVersion": 25, "type": kind }],
        "outcome": outcome,
    })
}

fn play(phases: &[Value]) -> Result<Verdict, String> {
    let file = json!({
        "description": "own words", "uri": "mongodb://db.example/?replicaSet=blue", "phases": phases,
    });
    let document = Document::of(Path::new("some.json"), file);
    let played = play_discovery(&document).map_err(|error| error.to_string())?;
    Ok(played[0].verdict.clone())
}

#[test]
fn a_network_error_in_use_clears_and_one_in_hello_does_not() {
    let in_use = error("afterHandshakeCompletes", "network", &outcome("Unknown", 0, 1));
    assert_eq!(play(&[discovery(), in_use]), Ok(Verdict::Passed));
    let in_hello = error("beforeHandshakeCompletes", "network", &outcome("RSPrimary", 4, 0));
    assert_eq!(play(&[discovery(), in_hello]), Ok(Verdict::Passed));
}

#[test]
fn an_error_of_an_old_generation_is_seen_as_such() {
    let clears = error("afterHandshakeCompletes", "network", &outcome("Unknown", 0, 1));
    let mut late = error("afterHandshakeCompletes", "network", &outcome("Unknown", 0, 1));
    late["applicationErrors"][0]["generation"] = json!(0);
    assert_eq!(play(&[discovery(), clears.clone(), late.clone()]), Ok(Verdict::Passed));

    late["applicationErrors"][0]["generation"] = json!(1);
    let failed = play(&[discovery(), clears, late]);
    assert!(
        matches!(&failed, Ok(Verdict::Failed(reason)) if reason.contains("generation: expected 1, seen 2")),
        "{failed:?}"
    );
}

#[test]
fn a_shutdown_leaves_its_topology_version_behind() {
    let mut fails = error("afterHandshakeCompletes", "command", &outcome("Unknown", 9, 1));
    fails["applicationErrors"][0]["response"] =
        json!({ "ok": 0, "code": 91, "topologyVersion": version(9) });
    assert_eq!(play(&[discovery(), fails]), Ok(Verdict::Passed));
}

/// An older description that arrives late does not undo what an error has told.
#[test]
fn a_late_reply_of_a_monitor_changes_nothing() {
    let mut fails = error("afterHandshakeCompletes", "command", &outcome("Unknown", 9, 0));
    fails["applicationErrors"][0]["response"] =
        json!({ "ok": 0, "code": 189, "topologyVersion": version(9) });
    let mut late = discovery();
    late["outcome"] = outcome("Unknown", 9, 0);
    assert_eq!(play(&[discovery(), fails, late]), Ok(Verdict::Passed));
}

#[test]
fn what_is_not_understood_is_refused_and_not_skipped() {
    let mut unknown_key = discovery();
    unknown_key["error"] = json!([]);
    let refused = play(&[unknown_key]);
    assert!(matches!(&refused, Err(reason) if reason.contains("error")), "{refused:?}");

    for place in ["/outcome/spirit", "/outcome/servers/db.example:27017/spirit"] {
        let mut unknown_key = discovery();
        let (parent, key) = place.rsplit_once('/').expect("a path");
        unknown_key.pointer_mut(parent).expect("it is there")[key] = json!(null);
        let refused = play(&[unknown_key]);
        assert!(matches!(&refused, Err(reason) if reason.contains("spirit")), "{refused:?}");
    }

    let no_reply = error("afterHandshakeCompletes", "command", &outcome("RSPrimary", 4, 0));
    let refused = play(&[discovery(), no_reply]);
    assert!(matches!(&refused, Err(reason) if reason.contains("response")), "{refused:?}");

    let mut stranger = error("afterHandshakeCompletes", "network", &outcome("RSPrimary", 4, 0));
    stranger["applicationErrors"][0]["address"] = json!("other.example:27017");
    let refused = play(&[discovery(), stranger]);
    assert!(matches!(&refused, Err(reason) if reason.contains("other.example")), "{refused:?}");
}

#[test]
fn what_is_known_otherwise_fails() {
    assert_eq!(play(&[discovery()]), Ok(Verdict::Passed));
    let server = "/outcome/servers/db.example:27017";
    for (place, other) in [
        (format!("{server}/type"), json!("RSSecondary")),
        (format!("{server}/setName"), json!("green")),
        (format!("{server}/topologyVersion"), json!(null)),
        ("/outcome/logicalSessionTimeoutMinutes".to_owned(), json!(8)),
        ("/outcome/topologyType".to_owned(), json!("ReplicaSetNoPrimary")),
        ("/outcome/setName".to_owned(), json!("green")),
        ("/outcome/servers".to_owned(), json!({})),
        ("/responses/0/1".to_owned(), json!({})),
    ] {
        let mut phase = discovery();
        *phase.pointer_mut(&place).expect("it is there") = other;
        assert!(matches!(play(&[phase]), Ok(Verdict::Failed(_))), "{place}");
    }
    for (key, other) in [
        ("compatible", json!(false)),
        ("maxSetVersion", json!(3)),
        ("maxElectionId", json!({ "$oid": "000000000000000000000001" })),
        ("events", json!([])),
    ] {
        let mut phase = discovery();
        phase["outcome"][key] = other;
        assert!(matches!(play(&[phase]), Ok(Verdict::Failed(_))), "{key}");
    }
}
