//! PyMongo as a process of its own.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/pymongo_topology.py");

/// It has one client at a time.
pub(crate) struct PyMongo {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl PyMongo {
    pub(crate) fn start() -> Self {
        let python = env::var_os("CENOTE_PYTHON").expect("CENOTE_PYTHON: run .ci/clients");
        let mut command = Command::new(python);
        command.args(["-B", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python");
        let requests = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, requests, answers }
    }

    /// Connects to another deployment, whose SRV records that name server has.
    pub(crate) fn connect(&mut self, uri: &str, names: Option<SocketAddr>) {
        let request = match names {
            Some(names) => json!({ "connect": uri, "names": names.port() }),
            None => json!({ "connect": uri }),
        };
        self.ask(&request);
    }

    /// What it knows now.
    pub(crate) fn topology(&mut self) -> Value {
        self.ask(&json!({}))
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.requests, "{request}").expect("PyMongo runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("a line");
        serde_json::from_str(&answer).expect("JSON; standard error says why there is none")
    }
}

impl Drop for PyMongo {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
