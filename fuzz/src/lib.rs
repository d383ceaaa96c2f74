//! The bodies of the fuzz targets are in `cenote_lab::fuzzing`, so that they compile with every build;
//! this package adds the fuzzer, the corpora, and the body for the C library.

#![forbid(unsafe_code)]

mod c_library;

use std::path::{Path, PathBuf};

use cenote_lab::fuzzing;

pub use c_library::c_library;

/// A body: takes any bytes, and panics when something is wrong.
pub type Body = fn(&[u8]);

/// Every target, by the name of its file.
pub const TARGETS: [(&str, Body); 8] = [
    ("c_library", c_library),
    ("hello_reply", fuzzing::hello_reply),
    ("pool_vs_model", fuzzing::pool_vs_model),
    ("scram", fuzzing::scram),
    ("socks5", fuzzing::socks5),
    ("trace", fuzzing::trace),
    ("uri", fuzzing::uri),
    ("wire", fuzzing::wire),
];

/// Where the inputs of a target are kept.
pub fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}
