//! The threads that answer inspectors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use socket2::SockRef;

use super::InspectedPool;
use super::error::InspectError;
use super::protocol::{self, Request};
use super::socket::{self, SocketFile};
use crate::runtime::process::Process;
use crate::trace::RecordingError;

/// How many inspectors there may be at a time.
const INSPECTORS_MAX: usize = 16;

/// How long an answer may take to be read, and an inspector may ask for nothing: one that has stopped is
/// dropped, so that the pools are not watched for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the accepting thread waits after an error, such as that there are too many open files.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The socket of a pool or a client, and its threads. Dropped, it is [closed](Self::close).
pub(crate) struct Inspector {
    shared: Arc<Shared>,
    file: SocketFile,
    /// In a child process everything is the parent's.
    process: Process,
}

struct Shared {
    program: &'static str,
    /// Locked after the sessions.
    pools: Mutex<NumberedPools>,
    sessions: Mutex<Sessions>,
}

/// The pools, each with its number, which stays when others come and go.
#[derive(Default)]
struct NumberedPools {
    /// The highest number.
    last: usize,
    live: BTreeMap<usize, Weak<dyn InspectedPool>>,
}

/// `None` when the socket is closed.
type Sessions = Option<Open>;

struct Open {
    listener: Arc<UnixListener>,
    /// The number of the last inspector.
    last: u64,
    streams: BTreeMap<u64, UnixStream>,
}

impl Inspector {
    /// Listens at `path`.
    pub(crate) fn start(
        path: &Path,
        program: &'static str,
        pools: impl IntoIterator<Item = Weak<dyn InspectedPool>>,
    ) -> Result<Self, InspectError> {
        let (file, listener) = SocketFile::bind(path)?;
        let listener = Arc::new(listener);
        let accepting = Arc::clone(&listener);
        let open = Open { listener, last: 0, streams: BTreeMap::new() };
        let (sessions, numbered) = (Mutex::new(Some(open)), Mutex::default());
        let shared = Arc::new(Shared { program, pools: numbered, sessions });
        pools.into_iter().for_each(|pool| shared.show(pool));
        let inspector = Self { shared: Arc::clone(&shared), file, process: Process::current() };
        spawn(move || shared.accept(&accepting))
            .map_err(|error| InspectError::socket(path, error))?;
        Ok(inspector)
    }

    /// Shows one more pool. Its number is the next one.
    #[cfg(feature = "tls")]
    pub(crate) fn show(&self, pool: Weak<dyn InspectedPool>) {
        self.shared.show(pool);
    }

    /// Removes the socket, and hangs up on every inspector. Waits for none.
    pub(crate) fn close(&self) {
        if !self.process.is_current() {
            return;
        }
        let Some(open) = self.shared.sessions().take() else { return };
        // Wakes the accepting thread: a connection everywhere, if the file is still there; a shutdown on Linux.
        let _ = socket::is_live(self.file.path());
        let _ = SockRef::from(&*open.listener).shutdown(Shutdown::Both);
        self.file.remove();
        for stream in open.streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("file", &self.file).finish_non_exhaustive()
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("cenote-inspect".to_owned()).spawn(work).map(drop)
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until the socket is closed.
    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        loop {
            let accepted = listener.accept();
            if self.sessions().is_none() {
                return;
            }
            match accepted {
                Ok((stream, _)) => self.admit(stream),
                Err(_) => thread::sleep(RETRY_DELAY),
            }
        }
    }

    /// An inspector that cannot be served finds the connection closed.
    fn admit(self: &Arc<Self>, stream: UnixStream) {
        let Ok(kept) = stream.try_clone() else { return };
        let Some(number) = self.add(kept) else {
            // The socket has room for that, and none is waited for.
            let full =
                protocol::error(&format!("{INSPECTORS_MAX} inspectors are connected already"));
            let _ = stream.set_nonblocking(true);
            let _ = (&stream).write_all(protocol::line(&full).as_bytes());
            return;
        };
        let session = Session { shared: Arc::clone(self), number, recordings: BTreeSet::new() };
        // If there is no thread for it, it is dropped, and so ends.
        let _ = spawn(move || session.serve(&stream));
    }

    fn add(&self, stream: UnixStream) -> Option<u64> {
        let mut sessions = self.sessions();
        let open = sessions.as_mut().filter(|open| open.streams.len() < INSPECTORS_MAX)?;
        open.last += 1;
        open.streams.insert(open.last, stream);
        if open.streams.len() == 1 {
            self.set_watched(true);
        }
        Some(open.last)
    }

    fn remove(&self, number: u64) {
        let mut sessions = self.sessions();
        let left = sessions.as_mut().map_or(0, |open| {
            open.streams.remove(&number);
            open.streams.len()
        });
        if left == 0 {
            self.set_watched(false);
        }
    }

    /// While the sessions are locked, so that it is as the last change of their number says.
    fn set_watched(&self, is_watched: bool) {
        self.live_pools().iter().for_each(|(_, pool)| pool.set_watched(is_watched));
    }

    fn show(&self, pool: Weak<dyn InspectedPool>) {
        let sessions = self.sessions();
        if let Some(pool) = pool.upgrade() {
            pool.begin();
            if sessions.as_ref().is_some_and(|open| !open.streams.is_empty()) {
                pool.set_watched(true);
            }
        }
        let mut pools = self.pools();
        pools.live.retain(|_, pool| pool.strong_count() > 0);
        pools.last += 1;
        let number = pools.last;
        pools.live.insert(number, pool);
    }

    fn pools(&self) -> MutexGuard<'_, NumberedPools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are not gone, with their numbers.
    fn live_pools(&self) -> Vec<(usize, Arc<dyn InspectedPool>)> {
        let pools = self.pools();
        pools.live.iter().filter_map(|(number, pool)| Some((*number, pool.upgrade()?))).collect()
    }

    fn pool(&self, number: usize) -> Result<Arc<dyn InspectedPool>, String> {
        let pools = self.pools();
        if number == 0 || number > pools.last {
            return Err(format!("there is no pool {number}"));
        }
        let pool = pools.live.get(&number).and_then(Weak::upgrade);
        pool.ok_or_else(|| format!("pool {number} is closed and gone"))
    }
}

/// One inspector. Dropped, it is detached, and its recordings end.
struct Session {
    shared: Arc<Shared>,
    number: u64,
    /// The pools that this inspector records.
    recordings: BTreeSet<usize>,
}

impl Session {
    /// Answers until the inspector hangs up, or something is wrong with it.
    fn serve(mut self, stream: &UnixStream) {
        // The inspector may have gone: there is nothing to report an error to.
        let _ = self.answer_all(stream);
    }

    fn answer_all(&mut self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
        let greeting = protocol::greeting(self.shared.program, self.shared.live_pools().len());
        stream.write_all(protocol::line(&greeting).as_bytes())?;
        let (mut reader, mut request) = (BufReader::new(stream), String::new());
        loop {
            let answer = match protocol::read(&mut reader, &mut request) {
                Ok(false) => return Ok(()),
                Ok(true) => self.answer(&request).unwrap_or_else(|text| protocol::error(&text)),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    // Where the next request begins is not known.
                    let answer = protocol::line(&protocol::error(&error.to_string()));
                    return stream.write_all(answer.as_bytes());
                }
                Err(error) => return Err(error),
            };
            stream.write_all(protocol::line(&answer).as_bytes())?;
        }
    }

    fn answer(&mut self, request: &str) -> Result<RawDocumentBuf, String> {
        let failed = |error: RecordingError| error.to_string();
        match Request::parse(request)? {
            Request::Pools => Ok(self.pools()),
            Request::Pool(number) => {
                let pool = numbered(number, &self.shared.pool(number)?.detail());
                Ok(rawdoc! { "atMS": protocol::wall_clock(), "pool": pool })
            }
            Request::Dump(number, folder) => {
                let file = self.shared.pool(number)?.dump_into(folder).map_err(failed)?;
                Ok(rawdoc! { "file": file.display().to_string() })
            }
            Request::Record(number, folder) => {
                let file = self.shared.pool(number)?.record_into(folder).map_err(failed)?;
                self.recordings.insert(number);
                Ok(rawdoc! { "file": file.display().to_string() })
            }
            Request::Stop(number) => {
                if !self.recordings.remove(&number) {
                    return Err(format!("this inspector does not record pool {number}"));
                }
                end_recording(&*self.shared.pool(number)?).map_err(failed)?;
                Ok(rawdoc! { "stopped": integer(number) })
            }
        }
    }

    fn pools(&self) -> RawDocumentBuf {
        let mut pools = RawArrayBuf::new();
        for (number, pool) in self.shared.live_pools() {
            pools.push(numbered(number, &pool.summary()));
        }
        rawdoc! { "atMS": protocol::wall_clock(), "pools": pools }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let recorded = self.recordings.iter().filter_map(|number| self.shared.pool(*number).ok());
        recorded.for_each(|pool| _ = pool.end_recording(Box::new(drop)));
        self.shared.remove(self.number);
    }
}

/// Waits until the trace is complete.
fn end_recording(pool: &dyn InspectedPool) -> Result<(), RecordingError> {
    let (sender, outcome) = channel();
    let is_ending = pool.end_recording(Box::new(move |outcome| drop(sender.send(outcome))));
    if is_ending { outcome.recv().unwrap_or_else(|_| Err(RecordingError::ended())) } else { Ok(()) }
}

/// A description that begins with the pool's number.
fn numbered(number: usize, description: &RawDocumentBuf) -> RawDocumentBuf {
    let mut document = rawdoc! { "pool": integer(number) };
    for (key, value) in description.iter().flatten() {
        document.append(key, value);
    }
    document
}

fn integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
