//! Traces that cannot be replayed, or only in part: one line that says where, exit status 2, and with
//! `--lenient` what was readable.

use std::path::PathBuf;

use bson::{Bson, Document, doc};

use super::{Folder, bad, cenote, good, refused, text};

/// A trace, taken apart.
struct Parts {
    documents: Vec<Document>,
}

/// What was broken: the file, and where it has to be said to be wrong.
struct Broken {
    path: PathBuf,
    byte: usize,
    steps: usize,
}

impl Parts {
    fn of(trace: &[u8]) -> Self {
        let (mut documents, mut rest) = (Vec::new(), trace);
        while !rest.is_empty() {
            documents.push(Document::from_reader(&mut rest).expect("a document"));
        }
        Self { documents }
    }

    /// The place of the so-manieth input, from 1.
    fn input(&self, number: usize) -> usize {
        let mut inputs = self.documents.iter().enumerate().filter(|(_, one)| one.contains_key("t"));
        // The header has a time, too.
        inputs.nth(number).expect("an input").0
    }

    /// Writes them with other bytes in place of one of them, or before it.
    fn with(
        &self,
        folder: &Folder,
        name: &str,
        place: usize,
        inserted: &[u8],
        instead: bool,
    ) -> Broken {
        let mut written: Vec<u8> = self.documents[..place].iter().flat_map(bytes).collect();
        let byte = written.len();
        written.extend(inserted);
        let rest = &self.documents[place + usize::from(instead)..];
        written.extend(rest.iter().flat_map(bytes));
        let path = folder.path(name);
        std::fs::write(&path, written).expect("a file");
        let before = &self.documents[1..place.max(1)];
        let steps = before.iter().filter(|one| one.contains_key("t")).count();
        Broken { path, byte, steps }
    }
}

fn bytes(document: &Document) -> Vec<u8> {
    bson::serialize_to_vec(document).expect("a document")
}

#[test]
fn what_is_wrong_in_the_midst_is_told_with_its_place_and_what_came_before_is_shown() {
    let folder = Folder::new();
    let trace = std::fs::read(folder.traffic("a.bson")).expect("a file");
    let parts = Parts::of(&trace);
    let place = parts.input(1_500);
    let at = parts.documents[place].get("t").cloned().expect("a time");
    let with = |name, bytes: &[u8]| parts.with(&folder, name, place, bytes, false);
    let read = |name, document: Document| (with(name, &bytes(&document)), true);
    let mut damaged = bytes(&parts.documents[place]);
    damaged[4] = 0x7f;
    for ((broken, counts), expected) in [
        ((with("gigantic", &i32::MAX.to_le_bytes()), false), "a document of 2147483647 bytes"),
        ((with("negative", &(-5_i32).to_le_bytes()), false), "a document of -5 bytes"),
        ((with("damaged", &damaged), false), "damaged"),
        (
            (with("strange", &bytes(&doc! { "hello": 1 })), false),
            "no document of a trace begins with `hello`",
        ),
        (read("untyped", doc! { "t": "noon", "timer": true }), "`t` is not a whole number"),
        (read("backwards", doc! { "t": 5, "timer": true }), "times out of order: 5 ns"),
        (
            read("connection", doc! { "t": at.clone(), "in": 999_999, "s": 0 }),
            "CheckedIn is refused",
        ),
        (
            read("established", doc! { "t": at.clone(), "up": 999_999, "s": 1 }),
            "EstablishSucceeded is refused",
        ),
        (
            read("cause", doc! { "t": at.clone(), "clear": false, "e": 999 }),
            "`e` names a cause that was not told",
        ),
        ((with("end", &bytes(&doc! { "end": 7 })), false), "there were 7 inputs up to here"),
    ] {
        check(&folder, &broken, counts, expected);
    }
    // Cancelling a request that does not exist is allowed, and an input that is not there any more makes
    // none look wrong: the next fingerprint tells how many there were.
    let more = with("request", &bytes(&doc! { "t": at, "cancel": 999_999 }));
    refused(&["replay", text(&more.path), "--quiet"], 2, "1536 inputs up to here");
    let missing = parts.with(&folder, "missing", parts.input(3_000), &[], true);
    refused(&["replay", text(&missing.path), "--quiet"], 2, "2999 are in it");
}

/// One line that says where, and 2; with `--lenient` all that came before, and 0. `counts`: the
/// refused input is one that was read, and is the step that is named.
fn check(folder: &Folder, broken: &Broken, counts: bool, expected: &str) {
    let path = text(&broken.path);
    let error_by = |command: &str, more: &[&str]| {
        let (status, error) = bad(&[&[command, path][..], more].concat());
        assert_eq!(status, 2, "{error}");
        error
    };
    let error = error_by("replay", &["--quiet"]);
    let told = [broken.steps, broken.steps + usize::from(counts)];
    let places = told.map(|step| format!("cenote: {path}: byte {}, step {step}: ", broken.byte));
    assert!(places.iter().any(|place| error.starts_with(place)), "{error}, not {places:?}");
    assert!(error.contains(expected), "{error}, not {expected}");
    for more in [&[][..], &["--json"], &["--step"], &["--until", "step=2999"]] {
        assert_eq!(error_by("replay", more), error, "{more:?}");
    }
    assert_eq!(error_by("explain", &[]), error);
    assert_eq!(error_by("predict", &["--what-if", "maxPoolSize=2"]), error);
    let page = folder.path("page.html");
    assert_eq!(error_by("draw", &["--html", text(&page)]), error);
    assert!(!page.exists(), "no page without --lenient");

    let lenient = cenote(&["replay", path, "--lenient"]);
    assert_eq!(lenient.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&lenient.stderr).trim_end(), error);
    // Two lines say what it is.
    assert_eq!(String::from_utf8_lossy(&lenient.stdout).lines().count(), 2 + broken.steps);
    let drawn = cenote(&["draw", path, "--lenient", "--html", text(&page)]);
    let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
    assert!(drawn.starts_with(&format!("{} steps drawn in", broken.steps)), "{drawn}");
    std::fs::remove_file(page).expect("a page");
}

#[test]
fn what_is_cut_is_told_with_its_place_and_what_came_before_is_shown() {
    let folder = Folder::new();
    let trace = std::fs::read(folder.traffic("a.bson")).expect("a file");
    let parts = Parts::of(&trace);
    let cut = |name, number, more| {
        let broken = parts.with(&folder, name, parts.input(number), &[], false);
        let bytes = std::fs::read(&broken.path).expect("a file");
        std::fs::write(&broken.path, &bytes[..broken.byte + more]).expect("a file");
        broken
    };
    check(&folder, &cut("between", 700, 0), false, "cut: the trace ends without its last document");
    check(&folder, &cut("within", 700, 10), false, "cut: the document has");
    check(&folder, &cut("length", 700, 2), false, "cut: the document has 4 bytes, but only 2");

    let cut = folder.path("within");
    let shrunk = folder.path("shrunk");
    good(&["replay", text(&cut), "--lenient", "--shrink", "in-use>1", "--out", text(&shrunk)]);
    good(&["replay", text(&shrunk), "--quiet"]);
}

#[test]
fn what_is_no_trace_at_all_is_told_in_one_line() {
    let folder = Folder::new();
    let trace = std::fs::read(folder.traffic("a.bson")).expect("a file");
    let parts = Parts::of(&trace);
    let header = |key: &str, value: Bson| {
        let mut header = parts.documents[0].clone();
        header.insert(key, value);
        bytes(&header)
    };
    let newer = header("version", Bson::Int32(4));
    let without_a_length = header("options", Bson::Document(doc! { "maxPoolSize": -1 }));
    let vast = doc! {
        "status": "ready", "generation": 0, "inherited": 0, "lastConnection": 0,
        "clockRegressions": 0, "services": 0, "connections": i64::MAX, "freeSlots": 0, "requests": 0,
    };
    let vast = header("state", Bson::Document(vast));
    for (name, bytes, expected) in [
        ("empty", &b""[..], "byte 0, step 0: empty: a trace begins with a header"),
        ("text", b"hello, this is a text", "byte 0, step 0: not a trace"),
        ("zeros", &[0; 4096], "byte 0, step 0: not a trace"),
        ("short", b"\x30", "byte 0, step 0: cut: the document has 4 bytes, but only 1"),
        ("other", &bytes(&doc! { "_id": 1 }), "byte 0, step 0: not a trace"),
        ("newer", &newer, "a trace of version 4, but this program reads none above 3"),
        ("options", &without_a_length, "`maxPoolSize` is below 0"),
        ("vast", &vast, "cut: the trace ends without its last document"),
    ] {
        let path = folder.path(name);
        std::fs::write(&path, bytes).expect("a file");
        // There is nothing readable in it.
        for more in [&["--quiet"][..], &["--lenient"], &["--step"], &["--json"]] {
            let output = cenote(&[&["replay", text(&path)][..], more].concat());
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{name} {more:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert!(error.starts_with(&format!("cenote: {}: ", path.display())), "{error}");
            assert!(error.contains(expected), "{error}, not {expected}");
            assert!(output.stdout.is_empty(), "{name} {more:?}");
        }
    }
    refused(&["replay", text(&folder.path("nowhere"))], 2, "nowhere");
    let without = folder.path("without");
    std::fs::create_dir(&without).expect("a folder");
    let expected = "without: a folder without a trace: files whose names end in .bson";
    refused(&["replay", text(&without)], 2, expected);
}

#[test]
fn another_fingerprint_is_no_broken_file_but_it_is_not_good_either() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let mut bytes = std::fs::read(&trace).expect("a file");
    let at = bytes.windows(4).position(|four| four == b"\x12fp\0").expect("a fingerprint");
    bytes[at + 4] ^= 1;
    let other = folder.path("other");
    std::fs::write(&other, bytes).expect("a file");
    for more in [&[][..], &["--lenient"], &["--diff", text(&trace)]] {
        let arguments = [&["replay", text(&other), "--quiet"][..], more].concat();
        refused(&arguments, 1, "the fingerprint is");
    }
}

/// A trace may come from anywhere.
#[test]
fn a_trace_gives_no_orders_to_a_terminal_and_does_not_break_its_page() {
    let folder = Folder::new();
    let trace = std::fs::read(folder.traffic("a.bson")).expect("a file");
    let mut parts = Parts::of(&trace);
    let forged = "<!--<script>\u{1b}]0;title\u{7}\u{202e}\n3 steps: fine";
    parts.documents[0].insert("program", forged);
    parts.documents[0].insert("address", forged.repeat(1_000));
    let path = folder.path("forged\u{1b}[31m.bson");
    let whole: Vec<u8> = parts.documents.iter().flat_map(bytes).collect();
    std::fs::write(&path, whole).expect("a file");
    let page = folder.path("page\u{1b}[31m.html");
    let drawn = good(&["draw", text(&path), "--html", text(&page)]);
    let missing = bad(&["replay", text(&folder.path("\u{1b}[31m\nnone"))]).1;
    let printed = good(&["replay", text(&path), "--json"]);
    for shown in [drawn, missing, printed, good(&["replay", text(&path)])] {
        let is_bad = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        assert!(!shown.contains(is_bad), "{}", shown.escape_debug());
        assert!(shown.lines().next().is_some_and(|line| line.len() < 4000), "{shown}");
    }
    let page = std::fs::read_to_string(page).expect("a page");
    let about = page.split("<script").nth(2).expect("the header of the trace");
    assert!(!about.contains("<!--"), "it keeps the script from ending");
    assert!(about.contains("\\u003c!--\\u003cscript"), "the text itself is there");
}
