//! The commands of `cenote`, as people and scripts use them.

mod check;
mod conform;
mod endpoint;
mod explain;
mod replay;
mod run;
mod top;

use std::process::{Command, Output};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cenote"));
    command.args(arguments);
    command
}

fn cenote(arguments: &[&str]) -> Output {
    command(arguments).output().expect("a child process")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// What it prints; it has to end well.
fn good(arguments: &[&str]) -> String {
    let output = cenote(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Its status and the one line on standard error.
fn bad(arguments: &[&str]) -> (i32, String) {
    let output = cenote(arguments);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    (output.status.code().expect("an exit status"), errors.trim_end().to_owned())
}

/// It has this status, and its one line on standard error has this text.
#[track_caller]
fn refused(arguments: &[&str], status: i32, expected: &str) {
    let (code, error) = bad(arguments);
    assert!(
        code == status && error.contains(expected),
        "{arguments:?}: {code}, {error}, not {expected}"
    );
}
