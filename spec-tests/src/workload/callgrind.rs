//! Counting instructions.

use std::process::Command;

/// All instructions of a process that is this program with these arguments, as callgrind counts
/// them: the same number on every run, however busy the machine is.
///
/// # Panics
///
/// When valgrind is not there, or the program fails under it.
pub fn instructions_of(arguments: &[&str]) -> u64 {
    let this = std::env::current_exe().expect("the path of this program");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(arguments)
        .output()
        .expect("valgrind, which this needs, could not be started");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "callgrind failed: {report}");
    let line = report.lines().find(|line| line.contains("Collected")).expect("a total");
    let total = line.rsplit(' ').next().expect("a number at the end");
    total.trim().parse().expect("a number")
}
