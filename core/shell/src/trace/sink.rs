//! What a trace is written into.

use std::io::Write;
use std::path::PathBuf;

pub(super) type Sink = Box<dyn Write + Send>;

/// A sink, and its path if it is a file.
pub(super) type OpenSink = (Sink, Option<PathBuf>);
