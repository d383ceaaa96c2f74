//! The other end of the socket: what a process says of its pools.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, str};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};

use super::Trouble;

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
    pub(super) last_failure: Option<Failure>,
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
pub(super) struct Failure {
    #[serde(rename = "agoMS")]
    pub(super) ago: f64,
    pub(super) text: String,
}

/// A connection to the socket.
pub(super) struct Live {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    pub(super) greeting: Greeting,
}

impl Live {
    pub(super) fn connect(path: &Path) -> Result<Self, Trouble> {
        let stream = connect(path).map_err(|source| no_connection(path, source))?;
        let path = path.to_owned();
        let system = |source| Trouble::Socket { path: path.clone(), source };
        stream.set_read_timeout(Some(PATIENCE)).map_err(system)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(system)?;
        let mut stream = BufReader::new(stream);
        let line = read(&path, &mut stream)?;
        let foreign = || Trouble::Foreign { path: path.clone(), line: beginning(&line) };
        let value: Value = serde_json::from_str(&line).map_err(|_| foreign())?;
        if let Some(error) = value["error"].as_str() {
            return Err(Trouble::Refused(error.to_owned()));
        }
        let greeting: Greeting = serde_json::from_value(value).map_err(|_| foreign())?;
        if greeting.protocol != PROTOCOL {
            return Err(foreign());
        }
        if greeting.version != VERSION {
            let Greeting { program, version, .. } = greeting;
            return Err(Trouble::Version { path, program, version, expected: VERSION });
        }
        Ok(Self { path, stream, greeting })
    }

    /// The counts of all pools, as they were sent.
    pub(super) fn pools(&mut self) -> Result<Vec<Pool>, Trouble> {
        let pools = self.ask("pools")?["pools"].take();
        self.known(pools)
    }

    /// Everything about one pool, as it was sent.
    pub(super) fn pool_as_sent(&mut self, number: usize) -> Result<Value, Trouble> {
        Ok(self.ask(&format!("pool {number}"))?["pool"].take())
    }

    pub(super) fn pool(&mut self, number: usize) -> Result<Detail, Trouble> {
        let pool = self.pool_as_sent(number)?;
        self.known(pool)
    }

    /// Has a file written by the process: `dump` or `record`. Returns its path there.
    pub(super) fn write(
        &mut self,
        verb: &str,
        number: usize,
        folder: &Path,
    ) -> Result<String, Trouble> {
        let folder = folder.to_str().filter(|folder| !folder.contains('\n'));
        let folder = folder.ok_or_else(|| {
            Trouble::Refused("the name of the folder is not on one line of UTF-8".to_owned())
        })?;
        let file = self.ask(&format!("{verb} {number} {folder}"))?["file"].take();
        self.known(file)
    }

    /// Ends a recording that this connection has begun.
    pub(super) fn stop(&mut self, number: usize) -> Result<(), Trouble> {
        self.ask(&format!("stop {number}")).map(drop)
    }

    fn ask(&mut self, request: &str) -> Result<Value, Trouble> {
        let line = format!("{request}\n");
        let asked = self.stream.get_mut().write_all(line.as_bytes());
        asked.map_err(|error| lost(&self.path, error))?;
        let line = read(&self.path, &mut self.stream)?;
        let foreign = |_| Trouble::Foreign { path: self.path.clone(), line: beginning(&line) };
        let answer: Value = serde_json::from_str(&line).map_err(foreign)?;
        match answer["error"].as_str() {
            Some(error) => Err(Trouble::Refused(error.to_owned())),
            None => Ok(answer),
        }
    }

    fn known<T: DeserializeOwned>(&self, value: Value) -> Result<T, Trouble> {
        let path = self.path.clone();
        serde_json::from_value(value).map_err(|source| Trouble::Answer { path, source })
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

fn no_connection(path: &Path, source: io::Error) -> Trouble {
    let is_socket = fs::metadata(path).map(|found| found.file_type().is_socket());
    let path = path.to_owned();
    match (source.kind(), is_socket) {
        (ErrorKind::PermissionDenied, _) => Trouble::Forbidden { path },
        (ErrorKind::NotFound, _) => Trouble::Absent { path },
        (_, Ok(false)) => Trouble::NotASocket { path },
        (ErrorKind::ConnectionRefused, _) => Trouble::Ended { path },
        (ErrorKind::WouldBlock, _) => Trouble::Silent { path },
        _ => Trouble::Socket { path, source },
    }
}

fn read(path: &Path, stream: &mut BufReader<UnixStream>) -> Result<String, Trouble> {
    let mut line = Vec::new();
    let read = stream.take(ANSWER_MAX).read_until(b'\n', &mut line);
    match read {
        Err(error) => Err(lost(path, error)),
        Ok(0) => Err(Trouble::Gone { path: path.to_owned() }),
        Ok(_) => match String::from_utf8(line) {
            Ok(line) if line.ends_with('\n') => Ok(line),
            Ok(line) => Err(Trouble::Foreign { path: path.to_owned(), line: beginning(&line) }),
            Err(error) => {
                let line = String::from_utf8_lossy(error.as_bytes());
                Err(Trouble::Foreign { path: path.to_owned(), line: beginning(&line) })
            }
        },
    }
}

fn lost(path: &Path, source: io::Error) -> Trouble {
    let (path, kind) = (path.to_owned(), source.kind());
    if matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut) {
        Trouble::Silent { path }
    } else if matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
        Trouble::Gone { path }
    } else {
        Trouble::Socket { path, source }
    }
}

/// Enough to recognise what it is.
fn beginning(line: &str) -> String {
    line.trim_end().chars().take(60).collect()
}
