//! File names of traces.

use std::fmt::Write;

use cenote_core::address::ServerAddress;

/// The file name for the trace of a client's topology; no [server's](file_name) is like it.
pub const TOPOLOGY: &str = "topology.bson";

/// The file name for a trace of the pool of this server, unique for each server:
/// `db.example.com-27017.bson`. Bytes that a file name may not hold, such as the colons of an IPv6 address
/// or the slashes of a socket's path, are percent-encoded.
#[must_use]
pub fn file_name(address: &ServerAddress) -> String {
    file_name_of(address, 1)
}

/// That of one of several pools of a server, from 1: `db.example.com-27017.2.bson`.
pub(super) fn file_name_of(address: &ServerAddress, number: u32) -> String {
    let mut name = String::new();
    for byte in address.host().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(byte.into()),
            byte => {
                // Writing into memory does not fail.
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    if let Some(port) = address.port() {
        let _ = write!(name, "-{port}");
    }
    if number > 1 {
        let _ = write!(name, ".{number}");
    }
    name + ".bson"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_files_and_differ() {
        for (address, name) in [
            ("db.example.com", "db.example.com-27017.bson"),
            ("db.example.com:27018", "db.example.com-27018.bson"),
            ("[::1]:27017", "%3A%3A1-27017.bson"),
            ("/tmp/mongodb-27017.sock", "%2Ftmp%2Fmongodb-27017.sock.bson"),
        ] {
            let address: ServerAddress = address.parse().unwrap();
            assert_eq!(file_name(&address), name);
            assert_ne!(name, TOPOLOGY);
        }
        let address = "db.example.com".parse().unwrap();
        assert_eq!(file_name_of(&address, 2), "db.example.com-27017.2.bson");
    }
}
