//! Checks that the machine answers as the files in `transcripts/` say.
//!
//! Each file is played and compared with the result. After an intended change, `CENOTE_BLESS=1
//! cargo test -p cenote-lab --test machine transcripts` rewrites the files; review the diff.

use std::path::{Path, PathBuf};

use cenote_lab::transcript;

#[test]
fn the_machine_answers_as_the_transcripts_say() {
    let files = transcripts();
    assert!(files.len() >= 20, "all transcripts are present");
    let differences: Vec<String> = files.iter().filter_map(|file| difference(file)).collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Plays a file. Returns the first difference, or rewrites the file and returns `None`.
fn difference(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).expect("a readable transcript");
    let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("inside").display().to_string();
    let played = match transcript::play(&name, &text) {
        Ok(played) => played,
        Err(trouble) => return Some(trouble.to_string()),
    };
    if std::env::var_os("CENOTE_BLESS").is_some() {
        std::fs::write(path, played).expect("a writable transcript");
        return None;
    }
    let first = text.lines().zip(played.lines()).zip(1..).find(|((told, is), _)| told != is);
    match first {
        Some(((told, is), line)) => Some(format!("{name}:{line}: said {told:?}, but is {is:?}")),
        None if text != played => Some(format!("{name}: the end differs")),
        None => None,
    }
}

fn transcripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts");
    let entries = std::fs::read_dir(folder).expect("the folder of transcripts");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files
}

#[test]
fn an_error_names_its_line() {
    let trouble = |text| transcript::play("x.txt", text).unwrap_err().to_string();
    assert_eq!(trouble("# Story\n\npool\nopne\n----\n"), "x.txt:4: unknown command: opne");
    assert_eq!(trouble("ready\n----\n"), "x.txt:1: there is no pool yet: start with `pool`");
    assert_eq!(trouble("pool\ncancel a\n----\n"), "x.txt:2: a has not checked out");
    assert_eq!(trouble("pool\n"), "x.txt:1: the block that begins here lacks its ----");
}
