//! `cenote study`: what it prints, the pages that it keeps, and what it refuses.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn study(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cenote"));
    command.arg("study").args(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn pages() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    root.join("docs/studies").to_str().expect("UTF-8").to_owned()
}

/// Those that are quick in a debug build; the gate looks at all of them.
#[test]
fn pages_say_what_the_studies_find() {
    let output = study(&["chained", "reuse", "cold-start", "--check", &pages()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("| takes what comes first |"));
}

#[test]
fn another_seed_is_other_chance() {
    let output = study(&["chained", "--seed", "2", "--check", &pages()]);
    assert_eq!(output.status.code(), Some(1));
    let complaints = text(&output.stderr);
    assert!(complaints.contains("chained.md: says something else than the study"), "{complaints}");
}

#[test]
fn a_page_is_written_around_its_prose() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chained.md");
    fs::write(&path, "# Mine\n\n<!-- table -->\nold\n<!-- end -->\n\nMore.\n").expect("written");
    let to = folder.path().to_str().expect("UTF-8");
    assert!(study(&["chained", "--write", to]).status.success());
    let page = fs::read_to_string(&path).expect("there");
    assert!(page.starts_with("# Mine\n\n<!-- table -->\n\n| opening |"), "{page}");
    assert!(page.ends_with("|\n\n<!-- end -->\n\nMore.\n"), "{page}");
    let picture = fs::read_to_string(folder.path().join("chained.svg")).expect("there");
    assert!(picture.starts_with("<svg"), "{picture}");
    assert!(study(&["chained", "--check", to]).status.success());
}

/// The prose of a page must survive a failed write.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_takes_no_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, page) =
        (folder.path().join("chained.md"), "# Mine\n\n<!-- table -->\n<!-- end -->\n");
    fs::write(&path, page).expect("written");
    // A process that may write files of no length at all.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" study chained --write \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_cenote")]).arg(folder.path());
    // Not into files, which would be as short.
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&path).expect("there"), page);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
}

#[test]
fn as_json() {
    let output = study(&["chained", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["interrupted"], false);
    let study = &json["studies"]["chained"];
    assert_eq!(study["tables"][0]["rows"].as_array().map(Vec::len), Some(4));
    assert_eq!(study["plots"][0]["name"], "chained");
}

#[test]
fn what_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().to_str().expect("UTF-8");
    let complaint = |arguments: &[&str]| {
        let output = study(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    let unknown = complaint(&["storms"]);
    assert!(
        unknown.contains("no study is called `storms`; there are storm, cold-start"),
        "{unknown}"
    );
    let missing = complaint(&["chained", "--write", to]);
    assert!(missing.contains("chained.md: No such file"), "{missing}");
    fs::write(folder.path().join("chained.md"), "# No place\n").expect("written");
    let no_place = complaint(&["chained", "--write", to]);
    assert!(no_place.contains("1 tables for 0 places"), "{no_place}");
    fs::write(folder.path().join("chained.md"), "<!-- table -->\nno end\n").expect("written");
    let no_end = complaint(&["chained", "--write", to]);
    assert!(no_end.contains("1 tables for"), "{no_end}");
    complaint(&["--seed", "-1"]);
    complaint(&["chained", "--write", to, "--check", to]);
}
