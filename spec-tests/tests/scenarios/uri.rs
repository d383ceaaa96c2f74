//! The runner of the files about connection strings, judged with files of our own.

use std::path::{Path, PathBuf};

use cenote::formats::{self, Place, Played, Target, Unreadable, Verdict, uri::play};
use serde_json::{Value, json};

/// Our own tests, of what the official ones leave out.
#[test]
fn every_scenario_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/uri");
    let played = formats::play(&[folder], &[Target::Core], &Place::Endpoint).expect("test files");
    let Played { outcomes, unplayed } = played;
    assert_eq!(unplayed, []);
    assert_eq!(outcomes.len(), 10);
    for outcome in outcomes {
        assert_eq!(outcome.verdict, Verdict::Passed, "{}", outcome.description);
    }
}

/// Writes one file under the name that the runner tells it by.
fn write(name: &str, content: &Value) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    std::fs::write(&path, content.to_string()).expect("writable");
    path
}

/// What the runner says to one test, given the fields in which it differs from an easy one.
fn verdict_on(name: &str, fields: &Value) -> Verdict {
    let mut test = json!({
        "description": name, "uri": "mongodb://u:p@db:5/shop?maxPoolSize=3", "valid": true,
    });
    for (field, value) in fields.as_object().expect("fields") {
        test[field] = value.clone();
    }
    let path = write(&format!("{name}.json"), &json!({ "tests": [test] }));
    play(&path).expect("a test file").remove(0).verdict
}

#[test]
fn a_test_passes_when_all_it_asks_for_is_so() {
    let verdict = verdict_on(
        "all-is-so",
        &json!({
            "warning": false,
            "hosts": [{ "type": "hostname", "host": "db", "port": 5 }],
            "auth": { "username": "u", "password": "p", "db": "shop" },
            "options": { "MaxPoolSize": 3 },
            "credential": {
                "username": "u", "password": "p", "source": "shop", "mechanism": null,
                "mechanism_properties": null,
            },
        }),
    );
    assert_eq!(verdict, Verdict::Passed);
    assert_eq!(
        verdict_on("srv", &json!({ "uri": "mongodb+srv://x:5", "valid": false })),
        Verdict::Passed
    );
}

#[test]
fn a_test_fails_with_what_was_expected_and_seen() {
    let cases = [
        ("valid", json!({ "valid": false }), "expected an error, got none"),
        ("warning", json!({ "warning": true }), "expected a warning, got none"),
        (
            "no-warning",
            json!({ "uri": "mongodb://db/?x=1", "warning": false }),
            "expected no warning, got [\"x: no such option; it is ignored\"]",
        ),
        (
            "host",
            json!({ "hosts": [{ "type": "hostname", "host": "db", "port": null }] }),
            "hosts: expected [{\"host\":\"db\",\"port\":null,\"type\":\"hostname\"}], \
             got [{\"host\":\"db\",\"port\":5,\"type\":\"hostname\"}]",
        ),
        ("option", json!({ "options": { "maxPoolSize": 4 } }), "maxpoolsize: expected 4, got 3"),
        ("unknown-option", json!({ "options": { "x": 4 } }), "no such option here: x"),
        (
            "no-credential",
            json!({ "uri": "mongodb://db/?authMechanism=MONGODB-X509", "credential": null }),
            "credential: expected null, got {\"mechanism\":\"MONGODB-X509\",\
             \"mechanism_properties\":null,\"password\":null,\"source\":\"$external\",\
             \"username\":null}",
        ),
    ];
    for (name, fields, difference) in cases {
        assert_eq!(verdict_on(name, &fields), Verdict::Failed(difference.to_owned()), "{name}");
    }
}

/// Only tests that cannot pass are excused, and only as long as they do not.
#[test]
fn an_exception_has_to_fail() {
    let tests = |uri: &str, valid: bool| {
        let test = json!({ "description": "", "uri": uri, "valid": valid });
        let path = write("auth/tests/legacy/connection-string.json", &json!({ "tests": [test] }));
        play(&path).expect("a test file").remove(0).verdict
    };
    let uri = "mongodb://u:pass@localhost.com/?authMechanism=MONGODB-AWS";
    let contradicted = tests(uri, false);
    assert!(matches!(contradicted, Verdict::NotApplicable(_)), "{contradicted:?}");
    let accepted = tests(uri, true);
    assert_eq!(accepted, Verdict::Failed("listed as an exception, but it passes".to_owned()));
    let another = tests("mongodb://", true);
    assert!(matches!(another, Verdict::Failed(_)), "{another:?}");
}

#[test]
fn a_file_of_another_format_is_no_empty_success() {
    let test = json!({ "description": "", "uri": "", "valid": true, "hint": 1 });
    for (name, content) in [
        ("field.json", json!({ "tests": [test] })),
        ("section.json", json!({ "tests": [], "runOn": [] })),
        ("empty.json", json!({})),
    ] {
        let played = play(&write(name, &content));
        assert!(matches!(played, Err(Unreadable::Format { .. })), "{name}: {played:?}");
    }
}

/// The records come from the page beside the files, as in the official folder.
#[test]
fn files_about_srv_records() {
    let folder = "srv/initial-dns-seedlist-discovery/tests";
    let page = "| records |\n_mongodb._tcp.a.x.test.  5  IN SRV  1  b.x.test.\n\
                _mongodb._tcp.a.x.test.  5  IN SRV  2  b.x.test.\na.x.test.  5  IN TXT  \"authSo\" \"urce=shop\"\n";
    let good = json!({ "seeds": ["b.x.test:2", "b.x.test:1"], "numSeeds": 2, "options": { "ssl": true, "authSource": "shop" } });
    let cases = [
        ("good", good, Verdict::Passed),
        ("error", json!({ "error": true }), failed("expected an error, got none")),
        ("option", json!({ "options": { "ssl": false } }), failed("ssl: expected false, got true")),
        (
            "count",
            json!({ "numSeeds": 1 }),
            failed("seeds: expected None (Some(1)), got [\"b.x.test:1\", \"b.x.test:2\"]"),
        ),
    ];
    for (name, mut fields, expected) in cases {
        fields["uri"] = "mongodb+srv://a.x.test/".into();
        let path = write(&format!("{folder}/sharded/{name}.json"), &fields);
        let readme = path.parent().expect("a folder").with_file_name("README.md");
        std::fs::write(readme, page).expect("writable");
        let targets = [Target::Core, Target::Tokio, Target::Mio, Target::Smol];
        let played = formats::play(&[path], &targets, &Place::Endpoint).expect("a test file");
        assert_eq!((played.unplayed, played.outcomes.len()), (Vec::new(), 4), "{name}");
        for outcome in played.outcomes {
            assert_eq!(outcome.verdict, expected, "{name} on {}", outcome.target.name());
        }
    }
}

fn failed(difference: &str) -> Verdict {
    Verdict::Failed(difference.to_owned())
}
