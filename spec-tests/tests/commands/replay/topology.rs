//! The trace of a topology, alone and with those of the pools of its client: a set of three whose primary is lost at
//! 03:07:12, with an election 600 ms later, and which has a member less from 03:07:17 on.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{Folder, bad, cenote, flat, good, refused, stepped, text};

const TOPOLOGY: &str = "topology.bson";
const A: &str = "a.example.com-27017.bson";
const B: &str = "b.example.com-27017.bson";
const C: &str = "c.example.com-27017.bson";

/// The folder in which the client has recorded.
fn client(folder: &Folder) -> PathBuf {
    folder.record("client", "--case fail-over")
}

#[test]
fn changes_are_printed_a_line_each() {
    let folder = Folder::new();
    let trace = client(&folder).join(TOPOLOGY);
    let printed = good(&["replay", text(&trace)]);
    let unknown =
        ["a", "b", "c"].map(|it| format!("{it}.example.com:27017: Unknown: not checked yet"));
    let expected = [
        "a trace of a topology, recorded by cenote 0.1.0, from 0.000000000s, 2026-01-01 03:07:00 UTC",
        &format!("begins with ReplicaSetNoPrimary rs0: {}", unknown.join("; ")),
        "      1  0.001000000s  03:07:00.001  a.example.com:27017: Unknown -> RSPrimary of rs0, round trip \
         901µs, tags dc: ny; ReplicaSetNoPrimary -> ReplicaSetWithPrimary",
        "      2  0.002000000s  03:07:00.002  b.example.com:27017: Unknown -> RSSecondary of rs0, round trip \
         1.3ms, tags dc: sf",
        "      3  0.003000000s  03:07:00.003  c.example.com:27017: Unknown -> RSSecondary of rs0, round trip \
         1.7ms, tags dc: ny",
        "     19  12.000000000s  03:07:12.000  a.example.com:27017: RSPrimary -> Unknown: hello: timed out \
         after 10s; ReplicaSetWithPrimary -> ReplicaSetNoPrimary",
        "     22  12.600000000s  03:07:12.600  b.example.com:27017: RSSecondary -> RSPrimary of rs0, round \
         trip 1.38ms, tags dc: sf; ReplicaSetNoPrimary -> ReplicaSetWithPrimary",
        "     23  12.600000000s  03:07:12.600  request 7204 for the primary waited 588ms for \
         b.example.com:27017",
        "     24  12.600000000s  03:07:12.600  request 7205 for the primary waited 31ms for \
         b.example.com:27017",
        "     27  15.000000000s  03:07:15.000  a.example.com:27017: Unknown -> RSSecondary of rs0, round trip \
         962µs, tags dc: ny",
        "     31  17.000000000s  03:07:17.000  b.example.com:27017: RSPrimary of rs0, round trip 1.32ms, tags \
         dc: sf; c.example.com:27017 is removed: hello: the primary, b.example.com:27017, does not list this \
         address as a member: name members as `rs.conf()` has them, or set directConnection=true",
        "33 steps until 18.002000000s, 7 changes; the replay agrees with the recording",
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    let verified = good(&["replay", text(&trace), "--quiet"]);
    assert_eq!(verified.lines().collect::<Vec<_>>(), expected[11..]);
    // From standard input, too.
    let shell = format!("{} replay - <{}", env!("CARGO_BIN_EXE_cenote"), text(&trace));
    let output = std::process::Command::new("sh").args(["-c", &shell]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
}

#[test]
fn steps_are_chosen() {
    let folder = Folder::new();
    let trace = client(&folder).join(TOPOLOGY);
    let steps = |more: &[&str]| {
        let printed = good(&[&["replay", text(&trace)], more].concat());
        let lines = printed.lines().skip(2).map(flat);
        let number = |line: &String| line.split(' ').next().map(ToOwned::to_owned);
        let mut numbers: Vec<_> = lines.filter_map(|line| number(&line)).collect();
        // How many there were.
        numbers.pop();
        (numbers.join(" "), printed)
    };
    assert_eq!(steps(&[]).0, "1 2 3 19 22 23 24 27 31");
    assert_eq!(steps(&["--from", "03:07:12.3", "--to", "15"]).0, "22 23 24 27");
    assert_eq!(steps(&["--type", "RemoveServer"]).0, "31");
    // Checks that say the same are printed if they are asked for.
    let (numbers, printed) = steps(&["--type", "Described", "--to", "2.002"]);
    assert_eq!(numbers, "1 2 3 4 5");
    let same = "4 2.001000000s 03:07:02.001 a.example.com:27017: RSPrimary of rs0, round trip 961µs, tags dc: ny; \
                nothing changes";
    assert!(flat(&printed).contains(same), "{printed}");
    assert!(
        printed.ends_with("7 changes; the replay agrees with the recording, 3 shown\n"),
        "{printed}"
    );
    assert_eq!(steps(&["--all"]).0.split(' ').count(), 33);
    for until in ["event=ServerDescriptionChanged", "step=1", "at=0.0005", "input=Described"] {
        let (numbers, printed) = steps(&["--until", until]);
        assert_eq!(numbers, "1", "{until}");
        assert!(printed.ends_with("recording, stopped by --until\n"), "{printed}");
    }
    assert_eq!(steps(&["--until", "action=RemoveServer"]).0, "1 2 3 19 22 23 24 27 31");
    let never = ["replay", text(&trace), "--until", "event=TopologyClosed"];
    refused(&never, 1, "cenote: the condition of --until never holds");
}

#[test]
fn machines_read_json() {
    let folder = Folder::new();
    let trace = client(&folder).join(TOPOLOGY);
    let printed = good(&["replay", text(&trace), "--json"]);
    let steps: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(steps.len(), 33);
    let lost = &steps[18];
    assert_eq!(lost["step"], 19);
    assert_eq!((&lost["at"], &lost["time"]), (&12.0.into(), &"2026-01-01T03:07:12.000Z".into()));
    let input = serde_json::json!({
        "name": "Described", "id": 1, "server": "a.example.com:27017", "kind": "Unknown", "setName": null,
        "roundTripMS": null, "tags": null, "error": "hello: timed out after 10s",
    });
    assert_eq!(lost["input"], input);
    assert_eq!(lost["actions"][0]["name"], "ServerDescriptionChanged");
    assert_eq!(
        (&lost["actions"][0]["was"], &lost["actions"][0]["now"]),
        (&"RSPrimary".into(), &"Unknown".into())
    );
    assert_eq!(lost["topology"]["kind"], "ReplicaSetNoPrimary");
    assert_eq!(steps[3]["input"]["roundTripMS"], 0.961);
    assert_eq!(steps[3]["actions"], serde_json::json!([]));
    let waited = serde_json::json!({
        "name": "Selection", "id": 7204, "wanted": "the primary", "waited": 0.588,
        "chosen": ["b.example.com:27017"],
    });
    assert_eq!(steps[22]["input"], waited);
    assert_eq!(steps[32]["topology"]["servers"].as_array().map(Vec::len), Some(2));
}

#[test]
fn it_is_explained_on_one_screen() {
    let folder = Folder::new();
    let trace = client(&folder).join(TOPOLOGY);
    let explained = good(&["explain", text(&trace)]);
    assert!(
        explained.lines().count() < 40 && explained.lines().all(|line| line.chars().count() <= 100)
    );
    for expected in [
        "trace a topology, by cenote 0.1.0: 33 steps, 18 s from 2026-01-01\u{a0}03:07:00\u{a0}UTC",
        "elections 1 election, at 03:07:12.600: b.example.com:27017 no primary from 03:07:12.000 for 600 ms waits 2 requests for a server, the longest of \
         588 ms until 03:07:12.600",
        "server a.example.com:27017: RSPrimary 67 %, RSSecondary 17 %, Unknown 17 %; last error hello: timed out \
         after 10s server",
        "7 changes 03:07:00.001 a.example.com:27017: Unknown -> RSPrimary",
    ] {
        assert!(flat(&explained).contains(&flat(expected)), "{expected} is not in {explained}");
    }
}

#[test]
fn a_folder_is_one_story() {
    let folder = Folder::new();
    let client = client(&folder);
    let told = good(&["replay", text(&client)]);
    let lines: Vec<_> = told.lines().collect();
    let agrees = "; the replay agrees with the recording";
    assert_eq!(
        lines[0],
        format!("{TOPOLOGY}             33 steps until 18.002000000s, 7 changes{agrees}")
    );
    assert_eq!(
        lines[1],
        format!("{A}  24,303 steps until 15.013920000s, 45 check-outs failed{agrees}")
    );
    assert!(lines[2].starts_with(B) && lines[3].starts_with(C) && lines[4].is_empty(), "{told}");
    // What changed comes before what came of it, in the order of time.
    let lost = lines.iter().position(|line| line.starts_with("03:07:12.000")).expect("the loss");
    assert!(lines[lost].contains("  a.example.com:27017: RSPrimary -> Unknown: "), "{told}");
    assert_eq!(
        lines[lost + 1],
        "03:07:12.000    pool of a.example.com:27017: Clear interrupting (hello: timed out after 10s)"
    );
    assert!(
        lines[lost + 2].starts_with("03:07:12.600  b.example.com:27017: RSSecondary -> RSPrimary"),
        "{told}"
    );
    assert_eq!(lines.last(), Some(&"03:07:17.000    pool of c.example.com:27017: Close"));
    assert!(lines[5..].is_sorted_by_key(|line| &line[..12]), "{told}");
    assert_eq!(good(&["replay", text(&client), "--quiet"]).lines().collect::<Vec<_>>(), lines[..4]);
    // Files that are named one by one are the same story.
    let files = [TOPOLOGY, A, B, C].map(|name| client.join(name));
    let named: Vec<_> = files.iter().map(|path| text(path)).collect();
    assert_eq!(good(&[&["replay"], &*named].concat()), told);
    assert_eq!(good(&["replay", text(&client), named[0], named[2]]), told);

    let explained = flat(&good(&["explain", text(&client)]));
    let parts = ["trace a topology,", "trace a.example.com:27017,", "trace b.", "trace c."];
    let places: Vec<_> = parts.iter().map(|part| explained.find(part).expect("a part")).collect();
    assert!(places.is_sorted(), "{explained}");
}

#[test]
fn of_several_dumps_in_a_folder_the_last_counts() {
    let folder = Folder::new();
    let client = client(&folder);
    let dumps = folder.path("dumps");
    fs::create_dir(&dumps).expect("a folder");
    let mut last = Vec::new();
    for (of, number) in [(TOPOLOGY, "1-topology"), (A, "2")] {
        for reason in ["1-wait-queue-timeout", "2-wait-queue-timeout", "3-after-timeouts"] {
            let (second, reason) = reason.split_at(1);
            let name = format!("cenote-20260101T00000{second}.000Z-7-{number}{reason}.bson");
            fs::copy(client.join(of), dumps.join(&name)).expect("a file");
            last.push(dumps.join(name));
        }
    }
    let [_, topology, _, _, pool, _] = &*last else { panic!("{last:?}") };
    let output = cenote(&["replay", text(&dumps)]);
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        good(&["replay", text(topology), text(pool)])
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("is a dump of the same; left out\n").count(), 4, "{said}");
}

#[test]
fn failures_and_clears_name_the_change_that_they_follow() {
    let folder = Folder::new();
    let client = client(&folder);
    let told = |pool: &str, more: &[&str]| {
        let (topology, pool) = (client.join(TOPOLOGY), client.join(pool));
        flat(&good(&[&["explain", text(&topology), text(&pool)], more].concat()))
    };
    let cleared = told(A, &[]);
    for expected in [
        "-> the pool was cleared at 03:07:12.000 (hello: timed out after 10s), because a.example.com:27017 became \
         Unknown, and paused until 03:07:15.000",
        "clears one at 03:07:12.000 (hello: timed out after 10s), because a.example.com:27017 became Unknown; --clear 1",
    ] {
        assert!(cleared.contains(expected), "{cleared}");
    }
    let clear = told(A, &["--clear", "1"]);
    let because =
        "because a.example.com:27017 became Unknown: hello: timed out after 10s, at 03:07:12.000";
    assert!(clear.contains(because), "{clear}");
    let line = told(A, &["--clears"]);
    assert!(line.contains("10s), because a.example.com:27017 became Unknown"), "{line}");

    let elected = "b.example.com:27017 became RSPrimary of rs0, round trip 1.38ms, tags dc: sf at 03:07:12.600";
    let timed_out = told(B, &[]);
    let follows = format!("follows a change of the topology: {elected}");
    assert!(timed_out.contains(&follows), "{timed_out}");
    let wait = told(B, &["--waiter", "15"]);
    assert!(
        wait.contains("topology b.example.com:27017 became RSPrimary of rs0, round trip 1.38ms, tags dc: sf, 21.6 ms before"),
        "{wait}"
    );
    // One that came more than a second after it does not.
    let late = told(B, &["--waiter", "190"]);
    assert!(late.contains("from 03:07:13.779") && !late.contains("topology "), "{late}");
    let as_json = told(B, &["--json"]);
    let as_json: Value = serde_json::from_str(&as_json).expect("JSON");
    let follows = &as_json["groups"][0]["follows"];
    assert_eq!(
        follows["change"],
        "b.example.com:27017 became RSPrimary of rs0, round trip 1.38ms, tags dc: sf"
    );
    // A pool whose requests follow nothing says nothing of it.
    let calm = told(C, &[]);
    assert!(!calm.contains("because") && !calm.contains("follows"), "{calm}");
    // And without the topology all of it is as before.
    let alone = flat(&good(&["explain", text(&client.join(A))]));
    assert!(!alone.contains("because") && alone.contains("paused until 03:07:15.000"), "{alone}");
}

#[test]
fn the_traces_of_a_client_are_compared_and_shrunk_as_a_whole() {
    let folder = Folder::new();
    let client = client(&folder);
    let same = good(&["replay", text(&client), "--diff", text(&client)]);
    assert!(same.starts_with("topology.bson: 33 steps are the same\na.example"), "{same}");
    assert_eq!(same.matches(" steps are the same\n").count(), 4, "{same}");
    // What the clear of a pool follows is left: that the primary was lost, and that it had been one.
    let small = folder.path("small");
    let shrunk = ["--shrink", "event=ConnectionPoolCleared", "--out", text(&small)];
    let shrunk = good(&[&["replay", text(&client)], &shrunk[..]].concat());
    let [of_topology, of_pool, _] = *shrunk.lines().collect::<Vec<_>>() else { panic!("{shrunk}") };
    assert_eq!(of_topology, "topology.bson: shrunk to 2 steps");
    assert!(
        of_pool.starts_with(&format!("{A}: ")) && of_pool.ends_with(" shrunk to 2"),
        "{of_pool}"
    );
    let topology = good(&["replay", text(&small.join(TOPOLOGY))]);
    assert!(topology.contains("2 changes; the replay agrees"), "{topology}");
    let pool = good(&["replay", text(&small)]);
    assert!(
        pool.contains("Clear interrupting (hello: timed out after 10s) after step 2"),
        "{pool}"
    );
    let clear = good(&["explain", text(&small), "--clear", "1"]);
    let cause =
        "because a.example.com:27017 became Unknown: hello: timed out after 10s, at 03:07:00.001";
    assert!(flat(&clear).contains(cause), "{clear}");
    let output = cenote(&["replay", text(&client), "--diff", text(&small)]);
    let compared = String::from_utf8(output.stdout).expect("a text");
    assert_eq!(output.status.code(), Some(1));
    for expected in [
        "topology.bson: 0 steps are the same\ndifferent inputs:\n-       1  0.001000000s",
        &format!("{B}: the other client has no such trace\n"),
    ] {
        let compared = compared.replace(&format!("{}/", text(&client)), "");
        assert!(compared.contains(expected), "{compared}");
    }
    let never = ["--shrink", "event=ConnectionPoolCreated", "--out", text(&small)];
    let never = [&["replay", text(&client)], &never[..]].concat();
    refused(&never, 1, "cenote: none of the traces shows event=ConnectionPoolCreated");
}

#[test]
fn one_goes_through_a_whole_client_by_hand() {
    let folder = Folder::new();
    let client = client(&folder);
    let commands = "find -> Unknown\nn\nstate\nfind nothing of the kind\nback 2\ngo 1\nfly\n";
    let shown = stepped(&client, commands);
    let lines: Vec<_> = shown.lines().map(flat).collect();
    let [_, lost, cleared, a, b, c, of_a, _, of_c, none, back, first, unknown] = &*lines else {
        panic!("{shown}")
    };
    assert!(lost.contains("a.example.com:27017: RSPrimary -> Unknown"), "{lost}");
    assert!(
        cleared.contains("Clear interrupting") && cleared.contains("after step 19"),
        "{cleared}"
    );
    let mut servers = [a, b, c].map(String::as_str);
    servers.sort_unstable();
    assert!(servers[0].starts_with("a.example.com:27017: Unknown: hello: timed out"), "{shown}");
    assert!(servers[1].starts_with("b.example.com:27017: RSSecondary of rs0"), "{shown}");
    assert!(of_a.starts_with("pool of a.example.com:27017: paused gen 1"), "{of_a}");
    assert!(of_c.starts_with("pool of c.example.com:27017: ready gen 0"), "{of_c}");
    assert_eq!(none, "no step from here on has `nothing of the kind`");
    assert!(back.contains("03:07:11.99"), "{back}");
    assert!(
        first.starts_with("1 03:07:00.001 a.example.com:27017: Unknown -> RSPrimary"),
        "{first}"
    );
    assert_eq!(unknown, "`fly` is not a command; `help` lists them");
}

#[test]
fn what_means_nothing_is_refused() {
    let folder = Folder::new();
    let client = client(&folder);
    let (topology, a) = (client.join(TOPOLOGY), client.join(A));
    let (topology, a, out) = (text(&topology), text(&a), folder.path("out"));
    for (command, more, option) in [
        ("replay", &["--step"][..], "--step"),
        ("replay", &["--waiter", "1"], "--waiter"),
        ("replay", &["--connection", "1"], "--connection"),
        ("replay", &["--shrink", "misuse", "--out", text(&out)], "--shrink"),
        ("replay", &["--until", "waiting>3"], "--until waiting>3"),
        ("replay", &["--until", "status=paused"], "--until status=paused"),
        ("replay", &["--json", "--events"], "--events"),
        ("explain", &["--leaks"], "--leaks"),
        ("explain", &["--slowest", "3"], "--slowest"),
        ("explain", &["--clears"], "--clears"),
        ("explain", &["--clear", "1"], "--clear"),
        ("explain", &["--waiter", "1"], "--waiter"),
        ("explain", &["--json"], "--json"),
        ("draw", &["--perfetto", text(&out)], "--perfetto"),
        ("predict", &["--what-if", "maxPoolSize=2"], "--what-if"),
        ("predict", &["--advise", "max wait < 1 s"], "--advise"),
    ] {
        let expected = "does not apply to the trace of a topology: add the trace of a pool";
        let arguments = [&[command, topology], more].concat();
        refused(&arguments, 2, &format!("cenote: {option} {expected}"));
    }
    for (command, more) in [
        ("replay", &["--until", "step=3"][..]),
        ("replay", &["--json"]),
        ("explain", &["--until", "step=3"]),
        ("explain", &["--leaks"]),
        ("draw", &["--from", "1", "--html", text(&out)]),
        ("predict", &["--what-if", "maxPoolSize=2"]),
    ] {
        let expected = "is for one pool: name its trace, and that of the topology";
        let arguments = [&[command, text(&client)], more].concat();
        refused(&arguments, 2, &format!("cenote: {} {expected}", more[0]));
    }
    let (status, error) = bad(&["replay", a, "--diff", topology]);
    let expected =
        "a trace with format: \"cenote-topology\", where one with \"cenote-trace\" is expected";
    assert!(status == 2 && error.contains(topology) && error.ends_with(expected), "{error}");
    refused(&["replay", "-", a], 2, "cenote: - is one trace: name files, or a folder");
    let other = folder.path("other.bson");
    fs::copy(topology, &other).expect("a copy");
    let (status, error) = bad(&["replay", topology, text(&other)]);
    let expected = " are both traces of a topology: name one of them, with the pools of its client";
    assert!(status == 2 && error.ends_with(expected) && error.contains(text(&other)), "{error}");
}

#[test]
fn what_is_cut_is_read_up_to_there() {
    let folder = Folder::new();
    let client = client(&folder);
    let topology = client.join(TOPOLOGY);
    let whole = fs::read(&topology).expect("a trace");
    fs::write(&topology, &whole[..5_200]).expect("a file");
    let cut = format!(
        "cenote: {}: byte 5126, step 30: cut: the document has 304 bytes, but only 74 are there",
        topology.display()
    );
    for (more, status) in [(&[][..], 2), (&["--lenient"], 0)] {
        for (source, expected) in
            [(&topology, "     27  15.000000000s  "), (&client, "03:07:15.000  a.")]
        {
            let output = cenote(&[&["replay", text(source)], more].concat());
            assert_eq!(String::from_utf8_lossy(&output.stderr).trim_end(), cut);
            assert_eq!(output.status.code(), Some(status));
            // All files are read before there is a picture of them together.
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed.contains(expected), status == 0 || source == &topology, "{printed}");
        }
        let page = folder.path("page.html");
        let output = cenote(&[&["draw", text(&client), "--html", text(&page)], more].concat());
        assert_eq!((output.status.code(), page.exists()), (Some(status), status == 0));
    }
    let mut damaged = whole;
    let place = damaged.windows(9).position(|it| it == b"RSPrimary").expect("a type");
    damaged[place + 2] = b'Q';
    fs::write(&topology, &damaged).expect("a file");
    refused(&["replay", text(&topology)], 2, "byte 436, step 0: damaged: `kind`");
}

/// Of a folder that holds more than the traces of one client.
#[test]
fn others_are_left_out() {
    let folder = Folder::new();
    let client = client(&folder);
    let expected = good(&["replay", text(&client)]);
    folder.traffic("client/other.bson");
    fs::write(client.join("text.bson"), "no trace").expect("a file");
    fs::write(client.join("readme"), "no trace").expect("a file");
    let output = cenote(&["replay", text(&client)]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].contains("text.bson: no trace, left out"), "{errors}");
    assert!(lines[1].contains("other.bson: recorded by another client than "), "{errors}");
    // Without a topology all of them are read.
    fs::remove_file(client.join(TOPOLOGY)).expect("a file");
    let output = cenote(&["replay", text(&client), "--quiet"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 4);
}
