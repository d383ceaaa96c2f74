//! Each expectation of what is logged, spoiled; and each setting, changed.

use cenote::formats::{Document, Verdict};
use serde_json::{Value, json};

use crate::{folder, play_changed, verdict};

/// All scenarios about the log, which pass as they are.
fn scenarios() -> Vec<(String, Value)> {
    let entries = std::fs::read_dir(folder()).expect("it is there");
    let entries = entries.map(|entry| entry.expect("an entry").path());
    let read = |path: &std::path::Path| Document::read(path).expect("one of them").into_value();
    let all = entries.map(|path| (path.display().to_string(), read(&path)));
    let about_the_log: Vec<_> = all.filter(|(_, document)| document.get("log").is_some()).collect();
    assert_eq!(about_the_log.len(), 12);
    about_the_log
}

fn must_fail(what: &str, document: Value, complaint: &str) {
    let Verdict::Failed(said) = verdict(document) else { panic!("{what}: not noticed") };
    assert!(said.contains(complaint), "{what}: no {complaint:?} in {said}");
}

#[test]
fn every_message_bites() {
    let mut tried = 0;
    for (name, document) in scenarios() {
        let messages = document["log"]["messages"].as_array().unwrap();
        for (index, message) in messages.iter().enumerate() {
            let at = |key: &str| format!("/log/messages/{index}/{key}");
            let data = message["data"].as_object().into_iter().flat_map(|data| data.keys());
            let mut spoiled = vec![(at("level"), json!("alert")), (at("component"), json!("pool"))];
            spoiled.push((at("message"), json!("Connection pool closed")));
            spoiled.extend(data.map(|key| (at(&format!("data/{key}")), Value::Null)));
            for (place, value) in spoiled {
                let mut changed = document.clone();
                *changed.pointer_mut(&place).expect("it is there") = value;
                must_fail(&format!("{name}: {place}"), changed, &format!("message {index}: "));
                tried += 1;
            }
            let mut shorter = document.clone();
            shorter["log"]["messages"].as_array_mut().unwrap().remove(index);
            must_fail(&format!("{name}: without {index}"), shorter, "message ");
        }
        let mut longer = document.clone();
        let more = json!({
            "level": "debug", "component": "connection", "message": "Connection pool closed"
        });
        longer["log"]["messages"].as_array_mut().unwrap().push(more);
        must_fail(&format!("{name}: one more"), longer, "saw no more");
    }
    assert!(tried > 250, "only {tried} were tried");
}

/// What a scenario sets has to be the reason why it passes.
#[test]
fn every_setting_counts() {
    for (name, document) in scenarios() {
        let is_silent = document["log"]["messages"] == json!([]);
        let mut changed = document.clone();
        let (variables, complaint) = if is_silent {
            (json!({ "MONGODB_LOG_CONNECTION": "debug" }), "message 0: expected nothing more, saw")
        } else {
            (json!({}), "message 0: expected \"Connection pool created\", saw no more")
        };
        changed["log"]["variables"] = variables;
        must_fail(&name, changed, complaint);
        for (key, other) in [
            ("/log/maxDocumentLength", json!(3)),
            ("/log/levels", json!(["debug"])),
            ("/log/variables/MONGODB_LOG_MAX_DOCUMENT_LENGTH", json!("13")),
        ] {
            let mut changed = document.clone();
            let Some(value) = changed.pointer_mut(key) else { continue };
            *value = other;
            // What the program has set is what counts.
            if name.contains("program-before-environment") && key.contains("variables") {
                assert_eq!(verdict(changed), Verdict::Passed, "{name}");
            } else {
                must_fail(&format!("{name}: {key}"), changed, "message ");
            }
        }
    }
}

#[test]
fn what_cannot_be_logged_is_refused() {
    let (_, document) = scenarios().into_iter().find(|(name, _)| name.contains("cut")).unwrap();
    for (place, value, complaint) in [
        (
            "/log/variables",
            json!({ "MONGODB_LOG_POOL": "debug" }),
            "log.variables.MONGODB_LOG_POOL: unknown variable, known are",
        ),
        (
            "/log/variables",
            json!({ "MONGODB_LOG_ALL": 7 }),
            "log.variables.MONGODB_LOG_ALL: invalid type: integer `7`",
        ),
        ("/log/messages/3/level", json!("loud"), "log.messages.3.level: unknown level `loud`"),
        ("/log", json!({ "messages": [], "levels": [] }), "log.levels: a framework has some"),
        ("/log", json!({ "messages": [], "colour": 1 }), "log.colour: unknown field"),
        (
            "/operations/2/broken",
            json!("timeout"),
            "operations.2.says: only an error of the network",
        ),
    ] {
        let mut changed = document.clone();
        *changed.pointer_mut(place).expect("it is there") = value;
        let refused = play_changed(changed).unwrap_err().to_string();
        assert!(refused.contains(complaint), "{place}: no {complaint:?} in {refused}");
    }
}
