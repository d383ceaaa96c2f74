//! What this process or its machine lacks, apart from what fails on the network.

use std::io::{self, ErrorKind};

use cenote_core::error::{ConnectionError, Stage};

/// The error of a connection whose opening failed at this stage: local, if this process or its
/// machine lacks what it needs, and otherwise of the network.
#[must_use]
pub fn opening_failed(stage: Stage, error: io::Error) -> ConnectionError {
    match shortage(stage, &error) {
        Some(shortage) => ConnectionError::local(stage, &format!("{shortage}: {error}")),
        None => ConnectionError::network(stage, error),
    }
}

/// Whether the server had no part in the failure.
#[cfg(feature = "tls")]
pub(crate) fn is_local(stage: Stage, error: &io::Error) -> bool {
    shortage(stage, error).is_some()
}

fn shortage(stage: Stage, error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        codes::PROCESS_FILES => return Some("this process cannot open more files"),
        codes::SYSTEM_FILES => return Some("the system cannot open more files"),
        codes::BUFFERS => return Some("the system has no buffers for another connection"),
        _ => {}
    }
    let kind = error.kind();
    if kind == ErrorKind::OutOfMemory {
        return Some("the system has no memory for another connection");
    }
    if kind == ErrorKind::AddrNotAvailable {
        return Some("this host has no free port or address to connect from");
    }
    // Sockets that would block do not fail. A full queue of a Unix domain socket is the server's.
    let is_thread = kind == ErrorKind::WouldBlock && stage != Stage::Tcp;
    is_thread.then_some("this process cannot start another thread")
}

/// Numbers for which the standard library has no name.
#[cfg(unix)]
mod codes {
    pub(super) const PROCESS_FILES: i32 = 24;
    pub(super) const SYSTEM_FILES: i32 = 23;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) const BUFFERS: i32 = 105;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) const BUFFERS: i32 = 55;
}

/// Windows has one number for open files.
#[cfg(not(unix))]
mod codes {
    pub(super) const PROCESS_FILES: i32 = 10024;
    pub(super) const SYSTEM_FILES: i32 = 4;
    pub(super) const BUFFERS: i32 = 10055;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io;

    use cenote_core::error::{ConnectionError, Kind, Stage};

    use super::opening_failed;

    fn failed(stage: Stage, code: i32) -> ConnectionError {
        opening_failed(stage, io::Error::from_raw_os_error(code))
    }

    /// By the numbers of Linux.
    #[test]
    fn shortages_are_local_and_everything_else_is_the_network() {
        const EAGAIN: i32 = 11;
        const OF_THE_NETWORK: [i32; 6] = [32, 103, 104, 110, 111, 113];
        for code in [24, 23, 12, 105, 99] {
            let error = failed(Stage::Tcp, code);
            assert_eq!(error.kind(), &Kind::Local, "{error}");
            assert_eq!(error.labels(true).count(), 0, "{error}");
            assert!(!error.is_retryable() && !error.is_network_error(), "{error}");
        }
        for code in OF_THE_NETWORK {
            assert_eq!(failed(Stage::Tcp, code).kind(), &Kind::Network, "{code}");
        }
        assert_eq!(failed(Stage::Dns, EAGAIN).kind(), &Kind::Local);
        assert_eq!(failed(Stage::Authentication, EAGAIN).kind(), &Kind::Local);
        assert_eq!(failed(Stage::Tcp, EAGAIN).kind(), &Kind::Network);
    }

    #[test]
    fn it_says_what_is_missing() {
        let error = failed(Stage::Tcp, 24);
        assert_eq!(
            error.to_string(),
            "TCP connect: this process cannot open more files: Too many open files (os error 24)"
        );
        assert!(error.advice().unwrap().contains("limits"));
    }
}
