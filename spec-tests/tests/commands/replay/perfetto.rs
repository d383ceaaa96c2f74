//! What `--perfetto` writes is well-formed, after the trace event format: each kind of event has what
//! it needs, slices of a thread lie within each other, and what begins also ends.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::{Folder, good, text};

#[test]
fn perfetto_gets_what_the_trace_event_format_asks_for() {
    let folder = Folder::new();
    let trace = folder.traffic("a.bson");
    let file = folder.path("a.json");
    let said = good(&["draw", text(&trace), "--perfetto", text(&file)]);
    assert!(said.starts_with("3000 steps for https://ui.perfetto.dev in "), "{said}");
    let json = std::fs::read(&file).expect("a file");
    let all: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(all["displayTimeUnit"], "ms");
    let mut seen = Seen::default();
    for event in all["traceEvents"].as_array().expect("events") {
        seen.take(event);
    }
    seen.check();
    let packed = folder.path("a.json.gz");
    good(&["draw", text(&trace), "--perfetto", text(&packed)]);
    let unpacked = Command::new("gzip").args(["-dc", text(&packed)]).output().expect("gzip");
    assert!(unpacked.status.success() && unpacked.stdout == json, "packed by gzip");
}

#[derive(Default)]
struct Seen {
    counts: BTreeMap<String, usize>,
    threads: BTreeMap<u64, String>,
    /// Beginnings and ends, by thread, in nanoseconds.
    slices: BTreeMap<u64, Vec<(u64, u64)>>,
    open: BTreeMap<(u64, String), u64>,
    last: BTreeMap<String, u64>,
}

impl Seen {
    fn take(&mut self, event: &Value) {
        let [phase, name] =
            ["ph", "name"].map(|key| event[key].as_str().expect("a text").to_owned());
        *self.counts.entry(phase.clone()).or_default() += 1;
        assert!(event["pid"] == 1 && !name.is_empty(), "{event}");
        let (thread, args) = (event["tid"].as_u64(), &event["args"]);
        if phase == "M" && name == "process_name" {
            return assert_eq!(args["name"], "pool of db.example.com:27017");
        } else if phase == "M" {
            let told = args["name"].as_str().expect("a name").to_owned();
            assert!(name == "thread_name", "{event}");
            let other = self.threads.insert(thread.expect("a thread"), told);
            return assert!(other.is_none(), "{event}");
        }
        let at = nanos(&event["ts"]);
        match phase.as_str() {
            "X" => {
                let thread = thread.filter(|thread| self.threads.contains_key(thread));
                let slices = self.slices.entry(thread.expect("a known thread")).or_default();
                slices.push((at, at + nanos(&event["dur"])));
            }
            "C" => {
                let last = self.last.insert(name, at);
                assert!(last.is_none_or(|last| last <= at), "{event}");
                let args = args.as_object().expect("counts");
                assert!(!args.is_empty() && args.values().all(Value::is_u64), "{event}");
            }
            "b" | "e" => {
                assert_eq!(event["cat"], "wait", "{event}");
                let key = (event["id"].as_u64().expect("an id"), name);
                if phase == "b" {
                    assert!(self.open.insert(key, at).is_none(), "{event}");
                } else {
                    assert!(self.open.remove(&key).is_some_and(|began| began <= at), "{event}");
                }
            }
            "i" => {
                assert!(thread.is_some(), "{event}");
                assert!(["g", "p", "t"].iter().any(|scope| event["s"] == *scope), "{event}");
                assert!(args["step"].as_u64().is_some_and(|step| step > 0), "{event}");
            }
            other => panic!("{other}: {event}"),
        }
    }

    fn check(mut self) {
        assert!(self.open.is_empty(), "never end: {:?}", self.open);
        for phase in ["M", "X", "C", "b", "e", "i"] {
            assert!(self.counts.get(phase).is_some_and(|count| *count > 5), "{:?}", self.counts);
        }
        assert_eq!(self.threads.len(), 5 + 1, "{:?}", self.threads);
        for (thread, slices) in &mut self.slices {
            // Longer ones first, where two begin together.
            slices.sort_unstable_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
            let mut within = Vec::<u64>::new();
            for &mut (start, end) in slices {
                within.retain(|last| *last > start);
                let fits = within.last().is_none_or(|last| end <= *last);
                assert!(fits, "thread {thread}: {start} to {end} overlaps another one");
                within.push(end);
            }
        }
    }
}

/// Microseconds with three decimals.
fn nanos(micros: &Value) -> u64 {
    let micros = micros.as_f64().expect("a time");
    assert!(micros >= 0.0);
    (micros * 1_000.0).round() as u64
}
