//! What holds for every command: how it is asked for help, and what it says when it is called in a
//! way that it does not understand.

use std::fs::File;
use std::process::{Command, Stdio};

use super::{Folder, bad, cenote, command, good, text};

const COMMANDS: &[&str] = &[
    "run",
    #[cfg(unix)]
    "top",
    "explain",
    "draw",
    "predict",
    "replay",
    "record",
    "check",
    "conform",
    "endpoint",
    "completions",
    "man",
];

#[test]
fn every_command_refuses_what_it_does_not_know_in_one_line() {
    for &command in COMMANDS {
        let (status, error) = bad(&[command, "--nonsense"]);
        assert_eq!(status, 2, "{error}");
        let expected = "cenote: unexpected argument '--nonsense' found";
        assert!(error.starts_with(expected), "{error}");
        assert!(error.ends_with(&format!("see `cenote {command} --help`")), "{error}");
    }
    for (arguments, expected) in [
        (&[][..], "'cenote' requires a subcommand but one was not provided"),
        (
            &["recrod"],
            "unrecognized subcommand 'recrod'; tip: a similar subcommand exists: 'record'",
        ),
        (
            &["replay"],
            "the following required arguments were not provided: <TRACE>...; see `cenote replay",
        ),
        (&["replay", "a", "--quite"], "tip: a similar argument exists: '--quiet'"),
        (
            &["replay", "a", "--step", "--json"],
            "the argument '--step' cannot be used with '--json'",
        ),
        (
            &["replay", "a", "--shrink", "misuse"],
            "required arguments were not provided: --out <FILE>",
        ),
        (
            &["replay", "a", "--shrink", "nonsense", "--out", "b"],
            "or misuse, invariant, or the name of an event",
        ),
        (
            &["replay", "a", "--until", "x"],
            "'--until <COND>': `x` is not a condition: write waiting>100",
        ),
        (&["replay", "a", "--type", "Cleer"], "neither an input (CheckOutRequested"),
        (&["replay", "a", "--type", "Cleer"], "has this name; did you mean Clear?"),
        (&["replay", "a", "--from", "-1"], "'-1'"),
        (&["record", "a", "--connections", "0"], "0 is not in 1..=1000000"),
        (&["conform", "a", "--target", "moon"], "[possible values: core, tokio, mio, smol, c]"),
        (&["completions", "cmd"], "invalid value 'cmd' for '<SHELL>'"),
        (
            &["run", "--ops", "99999999999999999999"],
            "for '--ops <K>': the number is too large; see",
        ),
        (&["run", "--seconds", "soon"], "invalid value 'soon' for '--seconds <"),
        (&["endpoint", "--port", "99999"], "invalid value '99999' for '--port <"),
        (&["check", "no such file"], "no such file: No such file or directory"),
    ] {
        let (status, error) = bad(arguments);
        assert_eq!(status, 2, "{error}");
        assert!(error.starts_with("cenote: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn every_command_tells_what_it_is_for_in_lines_that_fit() {
    let all = good(&["--help"]);
    for &command in COMMANDS {
        let help = good(&[command, "--help"]);
        assert!(help.contains(&format!("Usage: cenote {command}")), "{help}");
        assert!(all.contains(&format!("  {command} ")), "{all}");
        assert!(!good(&[command, "-h"]).is_empty());
        let widest = help.lines().max_by_key(|line| line.chars().count()).expect("a line");
        assert!(widest.chars().count() <= 100, "{command}: {widest}");
        assert!(help.lines().count() <= 48, "{command} takes more than two screens: {help}");
    }
    assert!(good(&["--version"]).starts_with("cenote "));
}

#[test]
fn options_without_what_they_modify_are_refused() {
    for options in [
        &["replay", "--events"][..],
        &["draw", "--beside", "other.bson"],
        &["draw"],
        &["predict", "--callers", "open"],
    ] {
        let (status, error) = bad(&[options, &["trace.bson"]].concat());
        assert_eq!(status, 2, "{error}");
        assert!(error.contains("the following required arguments were not provided"), "{error}");
    }
}

#[test]
fn shells_complete_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&["completions", shell]);
        for word in COMMANDS.iter().chain(&["lenient", "perfetto"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let ask = "source /dev/stdin; COMP_WORDS=(cenote draw --pe); COMP_CWORD=2; \
               _cenote cenote --pe draw; echo \"${COMPREPLY[*]}\"";
    let script = good(&["completions", "bash"]);
    let mut bash = Command::new("bash")
        .args(["-c", ask])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut input = bash.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, script.as_bytes()).expect("a pipe");
    drop(input);
    let output = bash.wait_with_output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--perfetto");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    let pages = folder.path("man1");
    assert_eq!(good(&["man", text(&pages)]), "");
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).expect("a page");
    for &command in COMMANDS {
        let (name, page) = (format!("cenote-{command}"), page(&format!("cenote-{command}.1")));
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        assert!(page.contains("SYNOPSIS"), "{page}");
        assert!(page.contains(&name.replace('-', "\\-")), "{page}");
    }
    let all = page("cenote.1");
    assert!(
        COMMANDS.iter().all(|command| all.contains(&format!("cenote\\-{command}(1)"))),
        "{all}"
    );
    let pages = std::fs::read_dir(&pages).expect("a folder").count();
    assert_eq!(pages, COMMANDS.len() + 1);
    let file = folder.path("file");
    File::create(&file).expect("a file");
    let (status, error) = bad(&["man", text(&file)]);
    assert!(status == 2 && error.contains("file: "), "{error}");
}

#[test]
fn a_reader_that_closes_its_pipe_early_gets_no_error() {
    let output = Command::new("bash")
        .args(["-c", "\"$0\" completions bash | head -1", env!("CARGO_BIN_EXE_cenote")])
        .output()
        .expect("bash");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(cenote(&["help", "nonsense"]).status.code(), Some(2));
}

/// As in `… | head`: the reader closes the pipe early.
#[test]
fn a_closed_standard_output_is_no_failure() {
    for arguments in [["completions", "bash"], ["completions", "zsh"]] {
        let mut begun = command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child process");
        drop(begun.stdout.take());
        let output = begun.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

/// A device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_is_said() {
    for arguments in [["completions", "bash"], ["completions", "zsh"]] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let output = command(&arguments).stdout(full).output().expect("a child process");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("cenote: cannot print: No space left"), "{said}");
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1));
    }
}

#[test]
fn a_trace_is_not_written_over() {
    let folder = Folder::new();
    let trace = folder.traffic("trace.bson");
    let before = std::fs::read(&trace).expect("a trace");
    let (trace, page) = (text(&trace), folder.path("page"));
    let page = text(&page);
    for (arguments, names) in [
        (&["draw", "--html", trace][..], "the trace and --html"),
        (&["draw", "--perfetto", trace], "the trace and --perfetto"),
        (&["draw", "--html", page, "--perfetto", page], "--html and --perfetto"),
        (&["draw", "--html", page, "--beside", page], "--beside and --html"),
        (&["predict", "--what-if", "maxPoolSize=2", "--html", trace], "the trace and --html"),
        (&["replay", "--shrink", "misuse", "--out", trace], "the trace and --out"),
    ] {
        let (status, error) = bad(&[arguments, &[trace]].concat());
        assert_eq!(status, 2, "{error}");
        assert!(error.starts_with(&format!("cenote: {names} are one file, ")), "{error}");
    }
    assert_eq!(std::fs::read(trace).expect("it is there"), before);
}
