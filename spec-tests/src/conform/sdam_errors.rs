//! Plays the files of `server-discovery-and-monitoring/tests/errors`: what errors of
//! applications do to a server's description and to the generation of its pool.
//!
//! Each phase feeds replies of monitors and errors of applications to a stand-in for a topology
//! and then compares the whole of what the file says about it. Everything that is judged comes
//! from `cenote_core`: errors and their labels, verdicts, the age of topology versions.

mod format;
mod stand_in;

use std::path::Path;

use cenote_conform::{Document, Unreadable};

use self::format::{Phase, TestFile};
use self::stand_in::{Topology, Unsupported};
use super::outcome::Outcome;
use super::play::NO_TEST;
use super::target::Target;
use cenote_conform::document::nested::wrong_at;

/// Plays one file, which holds one test.
///
/// # Errors
///
/// When the file cannot be read, has a key that is not known here, or asks for a topology that
/// the stand-in is not (anything but one replica set whose members are all in the URI).
pub fn play(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    play_document(&Document::read(path)?)
}

/// Plays what was read from a file.
///
/// # Errors
///
/// As [`play`].
pub fn play_document(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let file: TestFile = document.parse()?;
    if file.phases.is_empty() {
        return Err(document.refuse("phases", NO_TEST));
    }
    let unreadable = |Unsupported(reason)| document.refuse_in("", &reason);
    let verdict = play_phases(&file).map_err(unreadable)?.into();
    let (path, target) = (document.path().to_owned(), Target::Core);
    Ok(vec![Outcome { file: path, target, description: file.description, verdict }])
}

impl Unsupported {
    /// In which part of the file.
    fn at(self, place: &str) -> Self {
        Self(wrong_at(place, self.0))
    }
}

/// The outer error means that the test cannot be played, the inner one that it failed.
fn play_phases(file: &TestFile) -> Result<Result<(), String>, Unsupported> {
    let topology = Topology::from_uri(&file.uri);
    let mut topology = topology.map_err(|unsupported| unsupported.at("uri"))?;
    for (index, phase) in file.phases.iter().enumerate() {
        feed(&mut topology, phase)
            .map_err(|unsupported| unsupported.at(&format!("phases/{index}")))?;
        let seen = topology.outcome();
        if seen != phase.outcome {
            let Phase { description, outcome: expected, .. } = phase;
            return Ok(Err(format!("{description:?}: expected {expected:?}, seen {seen:?}")));
        }
    }
    Ok(Ok(()))
}

fn feed(topology: &mut Topology, phase: &Phase) -> Result<(), Unsupported> {
    for (index, (address, hello)) in phase.responses.iter().enumerate() {
        let applied = topology.apply_hello(address, hello);
        applied.map_err(|unsupported| unsupported.at(&format!("responses/{index}")))?;
    }
    for (index, error) in phase.application_errors.iter().enumerate() {
        let applied = topology.apply_error(error);
        applied.map_err(|unsupported| unsupported.at(&format!("applicationErrors/{index}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{TestFile, Unsupported, play_phases};
    use serde_json::{Value, json};

    const ADDRESS: &str = "db.example:27017";

    fn discovery() -> Value {
        json!({
            "description": "found",
            "responses": [[ADDRESS, {
                "ok": 1, "helloOk": true, "isWritablePrimary": true, "setName": "blue",
                "hosts": [ADDRESS], "minWireVersion": 0, "maxWireVersion": 25,
                "topologyVersion": version(4),
            }]],
            "outcome": outcome("RSPrimary", 4, 0),
        })
    }

    fn version(counter: i64) -> Value {
        json!({
            "processId": { "$oid": "0123456789abcdef01234567" },
            "counter": { "$numberLong": counter.to_string() },
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
            "topologyType":
                if is_known { "ReplicaSetWithPrimary" } else { "ReplicaSetNoPrimary" },
            "setName": "blue",
            "logicalSessionTimeoutMinutes": null,
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

    fn play(phases: &[Value]) -> Result<Result<(), String>, String> {
        let file = json!({
            "description": "own words",
            "uri": "mongodb://db.example/?replicaSet=blue",
            "phases": phases,
        });
        let file: TestFile = serde_json::from_value(file).map_err(|error| error.to_string())?;
        play_phases(&file).map_err(|Unsupported(reason)| reason)
    }

    #[test]
    fn a_network_error_in_use_clears_and_one_in_hello_does_not() {
        let in_use = error("afterHandshakeCompletes", "network", &outcome("Unknown", 0, 1));
        assert_eq!(play(&[discovery(), in_use]), Ok(Ok(())));
        let in_hello = error("beforeHandshakeCompletes", "network", &outcome("RSPrimary", 4, 0));
        assert_eq!(play(&[discovery(), in_hello]), Ok(Ok(())));
    }

    #[test]
    fn an_error_of_an_old_generation_is_seen_as_such() {
        let clears = error("afterHandshakeCompletes", "network", &outcome("Unknown", 0, 1));
        let mut late = error("afterHandshakeCompletes", "network", &outcome("Unknown", 0, 1));
        late["applicationErrors"][0]["generation"] = json!(0);
        assert_eq!(play(&[discovery(), clears.clone(), late.clone()]), Ok(Ok(())));

        late["applicationErrors"][0]["generation"] = json!(1);
        let failed = play(&[discovery(), clears, late]);
        assert!(
            matches!(&failed, Ok(Err(reason)) if reason.contains("generation: 2")),
            "{failed:?}"
        );
    }

    #[test]
    fn a_shutdown_leaves_its_topology_version_behind() {
        let mut fails = error("afterHandshakeCompletes", "command", &outcome("Unknown", 9, 1));
        fails["applicationErrors"][0]["response"] =
            json!({ "ok": 0, "code": 91, "topologyVersion": version(9) });
        assert_eq!(play(&[discovery(), fails]), Ok(Ok(())));
    }

    /// An older description that arrives late does not undo what an error has told.
    #[test]
    fn a_late_reply_of_a_monitor_changes_nothing() {
        let mut fails = error("afterHandshakeCompletes", "command", &outcome("Unknown", 9, 0));
        fails["applicationErrors"][0]["response"] =
            json!({ "ok": 0, "code": 189, "topologyVersion": version(9) });
        let mut late = discovery();
        late["outcome"] = outcome("Unknown", 9, 0);
        assert_eq!(play(&[discovery(), fails, late]), Ok(Ok(())));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_not_skipped() {
        let mut unknown_key = discovery();
        unknown_key["events"] = json!([]);
        let refused = play(&[unknown_key]);
        assert!(matches!(&refused, Err(reason) if reason.contains("events")), "{refused:?}");

        let mut stranger = discovery();
        stranger["responses"][0][0] = json!("other.example:27017");
        let refused = play(&[stranger]);
        assert!(matches!(&refused, Err(reason) if reason.contains("other.example")), "{refused:?}");

        let no_reply = error("afterHandshakeCompletes", "command", &outcome("RSPrimary", 4, 0));
        let refused = play(&[discovery(), no_reply]);
        assert!(matches!(&refused, Err(reason) if reason.contains("response")), "{refused:?}");
    }
}
