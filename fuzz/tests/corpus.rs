//! Replays every kept input of every fuzz target, without the fuzzer.

use std::fs;
use std::path::Path;

use cenote_fuzz::{TARGETS, corpus};

#[test]
fn every_kept_input_still_passes() {
    for (target, body) in TARGETS {
        let folder = corpus(target);
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} is empty", folder.display());
        for file in files {
            eprintln!("{}", file.display());
            body(&fs::read(&file).unwrap());
        }
    }
}

#[test]
fn every_target_is_known_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files, TARGETS.map(|(target, _)| target));
}
