//! Ctrl-C in commands that take their time: they say how far they came, and that is no failure.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Runs `cenote`, presses Ctrl-C as soon as it would be heard, and waits for the end.
fn interrupted(arguments: &[&str]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_cenote-lab"))
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child process");
    while !hears_interrupts(&child) {
        thread::sleep(Duration::from_millis(5));
    }
    let pressed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(pressed.expect("it runs").success());
    child.wait_with_output().expect("it ends")
}

/// Whether the process handles SIGINT, which is number 2.
fn hears_interrupts(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it lives");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.expect("a set of signals").trim(), 16);
    caught.expect("a number") & 0b10 != 0
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn worlds_end_in_their_midst() {
    for kind in [
        &["simulate", "--steps", "1000000000"][..],
        &["simulate", "--wire", "--steps", "1000000000"],
    ] {
        let output = interrupted(kind);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        let last = printed.lines().last().unwrap();
        assert!(last.starts_with("interrupted at seed 0, after 0 worlds, "), "{printed}");
        assert!(last.ends_with(" a second of CPU: no failure"), "{printed}");
    }
    let output = interrupted(&["simulate", "--steps", "1000000000", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&json["worlds"], &json["interrupted"]), (&0.into(), &true.into()));
}

#[test]
fn explorers_say_how_deep_they_came() {
    let output = interrupted(&["explore", "--depth", "40"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let last = printed.lines().last().unwrap();
    assert!(last.starts_with("interrupted: "), "{printed}");
    let output = interrupted(&["explore", "--depth", "40", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["interrupted"], true);
}
