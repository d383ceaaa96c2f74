//! One socket for all pools of a client, until the client is closed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use cenote_mio::{BuildError, ClientBuildError};
use cenote_shell::inspect::InspectError;
use serde_json::Value;
use tempfile::tempdir;

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

#[test]
fn all_pools_of_a_client_on_mio() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("client.sock");
    let builder = || cenote_mio::Client::builder(URI).expect("a connection string").inspect(&path);
    let client = builder().build().expect("a client");
    expect_two_pools(&path, "cenote-mio");
    let error = builder().build().expect_err("the path is taken");
    let is_in_use =
        matches!(&error, ClientBuildError::Pool(BuildError::Inspect(InspectError::InUse(_))));
    assert!(is_in_use, "{error}");
    expect_two_pools(&path, "cenote-mio");
    client.close();
    assert!(!path.exists());
    drop(builder().build().expect("the path is free"));
    assert!(!path.exists());
}

#[tokio::test]
async fn all_pools_of_a_client_on_tokio() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("client.sock");
    let builder =
        || cenote_tokio::Client::builder(URI).expect("a connection string").inspect(&path);
    let client = builder().build().expect("a client");
    expect_two_pools(&path, "cenote-tokio");
    client.close().await;
    assert!(!path.exists());
    drop(builder().build().expect("the path is free"));
    assert!(!path.exists());
}
