//! One socket for all pools of a client, until the client is closed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use cenote_shell::builder::BuildError;
use cenote_shell::client::ClientBuildError;
use cenote_shell::inspect::InspectError;
use serde_json::Value;
use tempfile::tempdir;

use crate::shells::{ClientSetup, Shell, on_all_runtimes};

on_all_runtimes!(all_pools_of_a_client);

const URI: &str = "mongodb://127.0.0.1:1,127.0.0.1:2/?maxPoolSize=7";

/// The greeting, and the answer to `pools`.
fn look(path: &Path) -> (Value, Value) {
    let stream = UnixStream::connect(path).expect("a socket");
    (&stream).write_all(b"pools\n").expect("it listens");
    let mut lines = BufReader::new(stream).lines();
    let mut next = || {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    (next(), next())
}

fn expect_two_pools(path: &Path, program: &str) {
    let (greeting, answer) = look(path);
    assert!(greeting["program"].as_str().expect("a name").starts_with(program), "{greeting}");
    assert_eq!(greeting["pools"], 2);
    let pools = answer["pools"].as_array().expect("a list");
    for (number, pool) in (1..).zip(pools) {
        assert_eq!((&pool["pool"], &pool["maxPoolSize"]), (&number.into(), &7.into()));
        assert_eq!(pool["address"], format!("127.0.0.1:{number}"));
        assert_eq!(pool["status"], "paused");
    }
    assert_eq!(pools.len(), 2);
}

fn all_pools_of_a_client(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("client.sock");
    let program = format!("cenote-{shell:?} ").to_lowercase();
    let build = || {
        let setup = ClientSetup { inspect: Some(&path), ..ClientSetup::default() };
        shell.build_client(URI, setup)
    };
    let client = build().expect("a client");
    expect_two_pools(&path, &program);
    let error = build().map(drop).expect_err("the path is taken");
    let is_in_use =
        matches!(&error, ClientBuildError::Pool(BuildError::Inspect(InspectError::InUse(_))));
    assert!(is_in_use, "{error}");
    expect_two_pools(&path, &program);
    client.close();
    assert!(!path.exists());
    drop(build().expect("the path is free"));
    assert!(!path.exists());
}
