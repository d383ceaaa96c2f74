//! Documents on their way to a file.

use alloc::vec::Vec;
use std::io;

/// How much is buffered before it is written: 64 KiB.
const BUFFER: usize = 64 << 10;

/// Encoded documents that are not written yet, and where they are written to.
pub(super) struct DocumentSink<W> {
    pub(super) buffer: Vec<u8>,
    pub(super) sink: W,
}

impl<W: io::Write> DocumentSink<W> {
    pub(super) const fn new(sink: W) -> Self {
        Self { buffer: Vec::new(), sink }
    }

    /// Writes the documents if there are many.
    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        if self.buffer.len() > BUFFER { self.write() } else { Ok(()) }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write()?;
        self.sink.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// A trace would begin with the continuation of a chunk.
pub(super) fn missing_chunk() -> io::Error {
    let problem = "a trace cannot begin with this chunk: one before it is missing";
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use super::{BUFFER, DocumentSink};

    #[test]
    fn many_documents_are_written_together() {
        let mut out = DocumentSink::new(Vec::new());
        out.buffer.resize(BUFFER, 1);
        out.pass_on().unwrap();
        assert_eq!((out.buffer.len(), out.sink.len()), (BUFFER, 0));
        out.buffer.push(1);
        out.pass_on().unwrap();
        assert_eq!((out.buffer.len(), out.sink.len()), (0, BUFFER + 1));
    }
}
