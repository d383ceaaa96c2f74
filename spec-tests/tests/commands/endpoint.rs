//! The command `cenote endpoint`, as scripts use it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use bson::rawdoc;
use cenote::command::signals::ignores_hang_up;
use cenote_core::uri::ConnectionString;
use cenote_mio::Pool;

use super::{cenote, command, text};

/// A running command and its first line.
fn start(arguments: &[&str]) -> (Child, String) {
    let mut child = command(&["endpoint"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child process");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a child process"))
        .read_line(&mut line)
        .expect("a child process");
    (child, line.trim_end().to_owned())
}

fn ends(arguments: &[&str]) -> Output {
    cenote(&[&["endpoint"], arguments].concat())
}

fn interrupt(mut child: Child, signal: &str) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill").args(["-s", signal, &id]).status().expect("a child process").success()
    );
    assert!(child.wait().expect("a child process").success());
    let mut rest = String::new();
    child.stdout.expect("a child process").read_to_string(&mut rest).expect("a child process");
    assert_eq!(rest, "", "the connection string is all that standard output gets");
}

#[test]
fn the_first_line_is_a_connection_string() {
    let (child, line) = start(&["--tls", "--auth", "app:pen:cil/@", "--x509"]);
    let uri = ConnectionString::parse(&line).unwrap();
    assert!(uri.warnings().is_empty(), "{line}");
    let credential = uri.credential.unwrap();
    assert_eq!(credential.username.as_deref(), Some("app"));
    assert_eq!(credential.password.unwrap().expose(), "pen:cil/@");
    assert!(uri.tls.enabled());
    let authority = uri.tls.ca_file.unwrap();
    assert!(Path::new(&authority).exists());
    interrupt(child, "TERM");
    assert!(!Path::new(&authority).exists(), "the files go when it ends");
}

/// Other users see the arguments of a process.
#[test]
fn a_password_does_not_have_to_be_an_argument() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("login");
    std::fs::write(&file, "app:pen:cil\n").unwrap();
    let (child, line) = start(&["--auth-file", file.to_str().unwrap()]);
    let credential = ConnectionString::parse(&line).unwrap().credential.unwrap();
    assert_eq!(credential.password.unwrap().expose(), "pen:cil");
    interrupt(child, if ignores_hang_up() { "TERM" } else { "HUP" });
    std::fs::write(&file, "pencil\n").unwrap();
    let output = ends(&["--auth-file", file.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(said.contains("USER:PASSWORD") && !said.contains("pencil"), "{said}");
    let output = ends(&["--auth-file", "/nowhere/login"]);
    let said = text(&output.stderr);
    assert!(said.starts_with("cenote: --auth-file: /nowhere/login: "), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_string_is_enough_to_connect() {
    let (child, line) = start(&[]);
    let pool = Pool::builder(&line).unwrap().build().unwrap();
    pool.ready();
    let reply = pool.check_out().unwrap().command("admin", &rawdoc! { "ping": 1 }).unwrap();
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
    pool.close();
    interrupt(child, "INT");
}

#[test]
fn the_topology_is_in_the_string() {
    for (arguments, text) in [
        (&["--load-balanced"][..], "loadBalanced=true"),
        (&["--load-balanced", "3"], "loadBalanced=true"),
        (&["--topology", "replica-set"], "replicaSet=cenote"),
        (&["--topology", "replica-set", "--members", "3", "--auth", "a:b"], "replicaSet=cenote"),
        (&["--tls", "--x509"], "authMechanism=MONGODB-X509"),
    ] {
        let (child, line) = start(arguments);
        assert!(line.contains(text), "{line}");
        assert!(ConnectionString::parse(&line).unwrap().warnings().is_empty(), "{line}");
        interrupt(child, "TERM");
    }
}

#[test]
fn bad_usage_is_told_without_the_password() {
    for (arguments, word) in [
        (&["--auth", "pencil"][..], "USER:PASSWORD"),
        (&["--auth", ":pencil"], "USER:PASSWORD"),
        (&["--compressors", "lzma"], "snappy, zlib or zstd"),
        (&["--x509"], "--tls"),
        (&["--load-balanced", "0"], "0"),
        (&["--members", "3"], "--topology replica-set"),
        (&["--socket", "/nowhere/at/all.sock"], "/nowhere/at/all.sock"),
        (&["--socket", "x1"], "its name has to end in .sock"),
        (&["--port", "1", "--socket", "/tmp/a.sock"], "--socket"),
    ] {
        let output = ends(arguments);
        let text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(word), "{arguments:?}: {text}");
        assert!(!text.contains("pencil"), "{text}");
        assert!(output.stdout.is_empty());
    }
}
