//! The socket's file: readable by its user only, never in the place of another one.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{self, Path, PathBuf};
use std::time::Duration;
use std::{process, thread};

use socket2::{Domain, SockAddr, Socket, Type};

use super::error::InspectError;

/// How often a socket is tried on which no process seems to listen, and how long apart: one that is just being
/// created is bound a moment before it listens.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// A socket that listens, and the file that is its name.
#[derive(Debug)]
pub(super) struct SocketFile {
    /// Absolute, because the process may change its folder.
    path: PathBuf,
    /// Device and number of the file.
    id: (u64, u64),
}

impl SocketFile {
    /// Creates the file, or replaces that of a process that has ended.
    pub(super) fn bind(path: &Path) -> Result<(Self, UnixListener), InspectError> {
        let failed = |error| InspectError::socket(path, error);
        let absolute = path::absolute(path).map_err(failed)?;
        let socket = match listen(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                remove_stale(path)?;
                listen(path)
            }
            other => other,
        };
        let is_taken = |error: &io::Error| error.kind() == ErrorKind::AddrInUse;
        let socket = socket.map_err(|error| {
            if is_taken(&error) { InspectError::InUse(path.to_owned()) } else { failed(error) }
        })?;
        let id = fs::symlink_metadata(&absolute).map_err(failed)?;
        let file = Self { path: absolute, id: (id.dev(), id.ino()) };
        Ok((file, UnixListener::from(OwnedFd::from(socket))))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, unless another one has taken its place. To be called while the socket is open: the
    /// number of its file belongs to no other until then.
    pub(super) fn remove(&self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.id) {
            // It may be in a folder that has become read-only: then it is stale, and replaced by the next process.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// No process can connect before the socket listens, and by then the file is its user's only.
fn listen(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let listening =
        fs::set_permissions(path, Permissions::from_mode(0o600)).and_then(|()| socket.listen(16));
    if let Err(error) = listening {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(socket)
}

/// Removes a socket on which no process listens. It is moved aside and tried again there, so that a socket that
/// another process has created meanwhile is noticed.
fn remove_stale(path: &Path) -> Result<(), InspectError> {
    let failed = |error| InspectError::socket(path, error);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !found.file_type().is_socket() {
        return Err(InspectError::NotASocket(path.to_owned()));
    }
    for _ in 0..TRIES {
        if is_live(path).map_err(failed)? {
            return Err(InspectError::InUse(path.to_owned()));
        }
        thread::sleep(PAUSE);
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}.old", process::id()));
    let aside = PathBuf::from(aside);
    match fs::rename(path, &aside) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    let is_live = is_live(&aside).unwrap_or(false);
    let was_given_back = is_live && fs::hard_link(&aside, path).is_ok();
    fs::remove_file(&aside).map_err(failed)?;
    if was_given_back { Err(InspectError::InUse(path.to_owned())) } else { Ok(()) }
}

/// Whether a process listens there. Does not wait for one that has stopped.
pub(super) fn is_live(path: &Path) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let connected = socket.connect(&SockAddr::unix(path)?);
    let kind = connected.as_ref().err().map(io::Error::kind);
    match kind {
        Some(ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(false),
        // Its queue is full.
        Some(ErrorKind::WouldBlock) => Ok(true),
        None | Some(_) => connected.map(|()| true),
    }
}
