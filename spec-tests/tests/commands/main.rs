//! The commands of `cenote`, as people and scripts use them.

mod check;
mod conform;
mod endpoint;
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
