//! The other end of the socket: what a process says of its pools.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;

use crate::command::Failure;
use crate::command::input::at;

const PROTOCOL: &str = "cenote-inspect";
const VERSION: u64 = 1;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer: several times what the largest one has.
const ANSWER_MAX: u64 = 8 << 20;

/// The first line.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Greeting {
    protocol: String,
    version: u64,
    #[serde(default)]
    pub(super) program: String,
    #[serde(default)]
    pub(super) process: u64,
}

/// A pool in the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pool {
    pub(super) pool: usize,
    pub(super) address: String,
    pub(super) status: String,
    pub(super) generation: u64,
    pub(super) total: u64,
    pub(super) in_use: u64,
    pub(super) idle: u64,
    pub(super) pending: u64,
    pub(super) waiting: u64,
    #[serde(rename = "longestWaitMS")]
    pub(super) longest_wait: Option<f64>,
    pub(super) max_pool_size: Option<u64>,
    pub(super) max_connecting: u64,
    pub(super) check_outs: u64,
    pub(super) created: u64,
    pub(super) clears: u64,
    pub(super) failures: Failures,
    pub(super) flight_recorder: bool,
    pub(super) recorded: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failures {
    pub(super) timeout: u64,
    pub(super) connection_error: u64,
    pub(super) cleared: u64,
    pub(super) closed: u64,
    /// Unknown to programs of older versions.
    #[serde(default)]
    pub(super) rejected: u64,
}

/// A pool with its connections and requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    #[serde(flatten)]
    pub(super) pool: Pool,
    pub(super) connections: Vec<Connection>,
    pub(super) requests: Vec<Request>,
    pub(super) last_clear: Option<Clear>,
    pub(super) last_failure: Option<CheckOutFailure>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Connection {
    pub(super) connection: u64,
    pub(super) state: String,
    #[serde(rename = "forMS")]
    pub(super) since: f64,
    pub(super) exact: bool,
    #[serde(rename = "ageMS")]
    pub(super) age: f64,
    pub(super) request: Option<u64>,
    pub(super) place: Option<String>,
    pub(super) purpose: Option<String>,
    pub(super) stale: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) request: u64,
    #[serde(rename = "waitedMS")]
    pub(super) waited: f64,
    pub(super) exact: bool,
    #[serde(rename = "deadlineInMS")]
    pub(super) deadline: Option<f64>,
    pub(super) purpose: String,
    pub(super) waits_for: String,
    pub(super) connection: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Clear {
    #[serde(rename = "agoMS")]
    pub(super) ago: f64,
    pub(super) cause: String,
    pub(super) interrupt: bool,
    pub(super) requests: u64,
    pub(super) in_use: u64,
    pub(super) idle: u64,
    pub(super) pending: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct CheckOutFailure {
    #[serde(rename = "agoMS")]
    pub(super) ago: f64,
    pub(super) text: String,
}

/// What the process, or the disk, refuses: everything else goes on.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Refused(pub(super) String);

/// A connection to the socket.
pub(super) struct Live {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    pub(super) greeting: Greeting,
}

impl Live {
    pub(super) fn connect(path: &Path) -> Result<Self, Failure> {
        let stream = connect(path).map_err(|source| no_connection(path, &source))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(at(path))?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(at(path))?;
        let mut stream = BufReader::new(stream);
        let line = read(path, &mut stream)?;
        let value = answer(path, &line)?;
        let greeting: Greeting =
            serde_json::from_value(value).map_err(|_| foreign(path, line.as_bytes()))?;
        let Greeting { protocol, program, version, .. } = &greeting;
        if protocol != PROTOCOL {
            return Err(foreign(path, line.as_bytes()));
        }
        if *version != VERSION {
            return Err(at(path)(format!(
                "{program} speaks version {version} of the protocol, this command version {VERSION}: \
                 use the cenote command of the same release"
            )));
        }
        Ok(Self { path: path.to_owned(), stream, greeting })
    }

    /// The counts of all pools, as they were sent.
    pub(super) fn pools(&mut self) -> Result<Vec<Pool>, Failure> {
        let pools = self.ask("pools")?["pools"].take();
        self.known(pools)
    }

    /// Everything about one pool, as it was sent.
    pub(super) fn pool_as_sent(&mut self, number: usize) -> Result<Value, Failure> {
        Ok(self.ask(&format!("pool {number}"))?["pool"].take())
    }

    pub(super) fn pool(&mut self, number: usize) -> Result<Detail, Failure> {
        let pool = self.pool_as_sent(number)?;
        self.known(pool)
    }

    /// Has a file written by the process: `dump` or `record`. Returns its path there.
    pub(super) fn write(
        &mut self,
        verb: &str,
        number: usize,
        folder: &Path,
    ) -> Result<String, Failure> {
        let folder = folder.to_str().filter(|folder| !folder.contains('\n'));
        let folder = folder.ok_or_else(|| {
            Refused("the name of the folder is not on one line of UTF-8".to_owned())
        })?;
        let file = self.ask(&format!("{verb} {number} {folder}"))?["file"].take();
        self.known(file)
    }

    /// Ends a recording that this connection has begun.
    pub(super) fn stop(&mut self, number: usize) -> Result<(), Failure> {
        self.ask(&format!("stop {number}")).map(drop)
    }

    fn ask(&mut self, request: &str) -> Result<Value, Failure> {
        let asked = self.stream.get_mut().write_all(format!("{request}\n").as_bytes());
        asked.map_err(|error| lost(&self.path, &error))?;
        answer(&self.path, &read(&self.path, &mut self.stream)?)
    }

    fn known<T: DeserializeOwned>(&self, value: Value) -> Result<T, Failure> {
        serde_json::from_value(value)
            .map_err(|error| at(&self.path)(format!("an answer cannot be read: {error}")))
    }
}

/// A connection without waiting for a process that has stopped, whose queue may be full.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(false)?;
    Ok(UnixStream::from(OwnedFd::from(socket)))
}

fn no_connection(path: &Path, error: &io::Error) -> Failure {
    let is_socket = fs::metadata(path).map(|found| found.file_type().is_socket());
    at(path)(match (error.kind(), is_socket) {
        (ErrorKind::PermissionDenied, _) => {
            "permission denied: only the user of the process can inspect it"
        }
        (ErrorKind::NotFound, _) => {
            "there is no such socket: is the process running, and was its client built with .inspect(…)?"
        }
        (_, Ok(false)) => {
            "this is not a socket: give the path that the process passes to .inspect(…)"
        }
        (ErrorKind::ConnectionRefused, _) => {
            "no process listens: the one that created this socket has ended"
        }
        _ => return lost(path, error),
    })
}

fn lost(path: &Path, error: &io::Error) -> Failure {
    let is = |kinds: [ErrorKind; 2]| kinds.contains(&error.kind());
    if is([ErrorKind::WouldBlock, ErrorKind::TimedOut]) {
        at(path)(SILENT)
    } else if is([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset]) {
        at(path)(GONE)
    } else {
        at(path)(error)
    }
}

/// The process does not run, or is a server of another protocol that waits for its client to speak.
const SILENT: &str =
    "no answer within 10 s: the process is stopped, or this is not a socket of cenote";
const GONE: &str = "the process has closed the socket: its pools are closed, or it has ended";

fn read(path: &Path, stream: &mut BufReader<UnixStream>) -> Result<String, Failure> {
    let mut line = Vec::new();
    let read = stream.take(ANSWER_MAX).read_until(b'\n', &mut line);
    if read.map_err(|error| lost(path, &error))? == 0 {
        return Err(at(path)(GONE));
    }
    match String::from_utf8(line) {
        Ok(line) if line.ends_with('\n') => Ok(line),
        Ok(line) => Err(foreign(path, line.as_bytes())),
        Err(error) => Err(foreign(path, error.as_bytes())),
    }
}

/// What a line says, unless it is that the process refuses.
fn answer(path: &Path, line: &str) -> Result<Value, Failure> {
    let answer: Value = serde_json::from_str(line).map_err(|_| foreign(path, line.as_bytes()))?;
    match answer["error"].as_str() {
        Some(error) => Err(Refused(error.to_owned()).into()),
        None => Ok(answer),
    }
}

/// With enough of the line to recognise what it is.
fn foreign(path: &Path, line: &[u8]) -> Failure {
    let beginning: String = String::from_utf8_lossy(line).trim_end().chars().take(60).collect();
    at(path)(format!("not a socket of cenote: it says {beginning:?}"))
}
