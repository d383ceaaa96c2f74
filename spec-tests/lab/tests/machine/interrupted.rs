//! Ctrl-C in commands that take their time: they say how far they came, and that is no failure.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Runs `cenote`, presses Ctrl-C as soon as it would be heard, and waits for the end.
fn interrupted(arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cenote-lab"))
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child process");
    wait_until(&mut child, hears_interrupts);
    // The operating system has the handler before the handler has its flag.
    let before = cpu_time(child.id());
    wait_until(&mut child, |id| cpu_time(id) >= before + 5);
    let pressed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(pressed.expect("it runs").success());
    child.wait_with_output().expect("it ends")
}

fn wait_until(child: &mut Child, is_so: impl Fn(u32) -> bool) {
    while !is_so(child.id()) {
        assert_eq!(child.try_wait().expect("a child"), None, "it ended before it was interrupted");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process handles SIGINT, which is number 2.
fn hears_interrupts(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.expect("a set of signals").trim(), 16);
    caught.expect("a number") & 0b10 != 0
}

/// For how long it has run by now, in hundredths of a second.
fn cpu_time(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("a process");
    let (_, after_name) = stat.rsplit_once(')').expect("a name");
    let in_user_mode = after_name.split_whitespace().nth(11).expect("fourteen fields");
    in_user_mode.parse().expect("a number")
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
