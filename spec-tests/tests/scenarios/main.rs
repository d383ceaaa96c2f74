//! Our own tests in the formats of the official ones, for what those leave open; and proof that the runners notice when
//! a file and the machine or a shell disagree.

mod bites;
mod log;
mod on_sockets;
mod refusals;
mod unified;
mod uri;

use std::path::{Path, PathBuf};

use cenote::formats::{Document, Outcome, Place, Target, Unreadable, Verdict, cmap};
use serde_json::{Value, json};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/cmap")
}

pub(crate) fn scenario(name: &str) -> Value {
    let path = folder().join(name);
    let ends = ["json", "yml"].map(|end| path.with_extension(end));
    let path = ends.iter().find(|path| path.is_file()).expect("one of the scenarios");
    Document::read(path).expect("it can be read").into_value()
}

fn play(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    cmap::play(path, Target::Core)
}

pub(crate) fn play_changed(document: Value) -> Result<Vec<Outcome>, Unreadable> {
    cmap::play_document(
        &Document::of(Path::new("changed.json"), document),
        Target::Core,
        &Place::Endpoint,
    )
}

/// The only verdict of a document.
pub(crate) fn verdict(document: Value) -> Verdict {
    let mut outcomes = play_changed(document).expect("still a test");
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0).verdict
}

pub(crate) fn array<'a>(document: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    document[key].as_array_mut().expect("a list")
}

#[test]
fn every_scenario_passes_and_passes_again() {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 56);
    let both = |path: &PathBuf| [Target::Core, Target::C].map(|target| (path.clone(), target));
    for (path, target) in paths.iter().flat_map(both) {
        let outcomes = cmap::play(&path, target).unwrap();
        for outcome in &outcomes {
            assert_eq!(
                outcome.verdict,
                Verdict::Passed,
                "{} on {target}: {}",
                path.display(),
                outcome.description
            );
        }
        assert_eq!(cmap::play(&path, target).unwrap(), outcomes);
    }
}

#[test]
fn a_file_that_cannot_be_read_says_which() {
    let missing = play(&folder().join("missing.json")).unwrap_err();
    assert!(matches!(missing, Unreadable::Io { .. }));
    assert!(missing.to_string().contains("missing.json"));

    let no_json = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(matches!(play(&no_json).unwrap_err(), Unreadable::Json { .. }));
}

/// Every pool takes these options, which the file wants to be refused; or refuses them otherwise.
#[test]
fn options_have_to_be_refused_for_the_reason_that_is_given() {
    for (options, complaint) in [
        (json!({ "maxPoolSize": 2 }), "saw a pool"),
        (json!({ "maxConnecting": 0 }), "expected the error \"minPoolSize\", saw"),
    ] {
        let path = folder().join("options-minimum-above-maximum.yml");
        let mut document = Document::read(&path).unwrap().into_value();
        document["poolOptions"] = options;
        for target in Target::ALL {
            let document = Document::of(&path, document.clone());
            let outcomes = cmap::play_document(&document, target, &Place::Endpoint).unwrap();
            let Verdict::Failed(what) = &outcomes[0].verdict else { panic!("not noticed") };
            assert!(what.contains(complaint), "{what}");
        }
    }
}
