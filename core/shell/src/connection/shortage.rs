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
pub(crate) mod codes {
    pub(crate) const PROCESS_FILES: i32 = 24;
    pub(crate) const SYSTEM_FILES: i32 = 23;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) const BUFFERS: i32 = 105;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) const BUFFERS: i32 = 55;
}

/// Windows has one number for open files.
#[cfg(not(unix))]
pub(crate) mod codes {
    pub(crate) const PROCESS_FILES: i32 = 10024;
    pub(crate) const SYSTEM_FILES: i32 = 4;
    pub(crate) const BUFFERS: i32 = 10055;
}

#[cfg(test)]
mod tests {
    use std::io;

    use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};

    use super::{codes, opening_failed};

    /// Numbers of the operating system for errors: no memory, no free port, one that would block, and some
    /// of the network.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const ERRORS: ([i32; 2], i32, [i32; 6]) = ([12, 99], 11, [32, 103, 104, 110, 111, 113]);
    #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
    const ERRORS: ([i32; 2], i32, [i32; 6]) = ([12, 49], 35, [32, 53, 54, 60, 61, 65]);
    #[cfg(not(unix))]
    const ERRORS: ([i32; 2], i32, [i32; 6]) =
        ([8, 10049], 10035, [109, 10053, 10054, 10060, 10061, 10065]);

    fn failed(stage: Stage, code: i32) -> ConnectionError {
        opening_failed(stage, io::Error::from_raw_os_error(code))
    }

    #[test]
    fn shortages_are_local_and_everything_else_is_the_network() {
        let ([memory, port], would_block, of_the_network) = ERRORS;
        let files = [codes::PROCESS_FILES, codes::SYSTEM_FILES];
        for code in files.into_iter().chain([memory, port, codes::BUFFERS]) {
            let error = failed(Stage::Tcp, code);
            assert_eq!(error.kind(), &Kind::Local, "{error}");
            assert_eq!(error.labels(RetryWrites::Enabled).count(), 0, "{error}");
            assert!(!error.is_retryable() && !error.is_network_error(), "{error}");
        }
        for code in of_the_network {
            assert_eq!(failed(Stage::Tcp, code).kind(), &Kind::Network, "{code}");
        }
        assert_eq!(failed(Stage::Dns, would_block).kind(), &Kind::Local);
        assert_eq!(failed(Stage::Authentication, would_block).kind(), &Kind::Local);
        assert_eq!(failed(Stage::Tcp, would_block).kind(), &Kind::Network);
    }

    #[test]
    fn it_says_what_is_missing() {
        let error = failed(Stage::Tcp, codes::PROCESS_FILES);
        let cause = io::Error::from_raw_os_error(codes::PROCESS_FILES);
        let text = format!("connect: this process cannot open more files: {cause}");
        assert_eq!(error.to_string(), text);
        assert!(error.advice().unwrap().contains("limits"));
    }

    /// The numbers are those of the operating system.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_operating_system_means_the_same_by_its_numbers() {
        let says = |code| io::Error::from_raw_os_error(code).to_string();
        assert_eq!(says(codes::PROCESS_FILES), "Too many open files (os error 24)");
        assert_eq!(says(codes::SYSTEM_FILES), "Too many open files in system (os error 23)");
        assert_eq!(says(codes::BUFFERS), "No buffer space available (os error 105)");
    }
}
