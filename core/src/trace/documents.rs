//! One document after another, from any source, in memory that does not depend on its length.

use alloc::vec::Vec;
use std::io::{self, Read};

use bson::RawDocument;

use crate::wire::{WireError, check_document};

use super::error::TraceProblem;

/// Cuts a source into documents.
pub(super) struct Documents<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where what was not given out yet begins and ends in the buffer.
    start: usize,
    end: usize,
    /// Of `start`, from the beginning of the source.
    offset: u64,
}

/// The largest document that a trace can hold; actions and states are told in several.
pub(super) const DOCUMENT_MAX: usize = 1 << 20;
const READ: usize = 64 << 10;
const LENGTH: usize = 4;

impl<R: Read> Documents<R> {
    pub(super) const fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), start: 0, end: 0, offset: 0 }
    }

    /// Where the next document begins.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next document; `None` when the source ends between two. After a problem the offset is
    /// still that of the document which has it.
    pub(super) fn next(&mut self) -> Result<Option<&RawDocument>, TraceProblem> {
        if self.fill(LENGTH)? == 0 {
            return Ok(None);
        }
        let Some(length) = self.unread().first_chunk() else {
            return Err(TraceProblem::Cut { expected: LENGTH, got: self.unread().len() });
        };
        let got = i32::from_le_bytes(*length);
        let fitting = usize::try_from(got).ok().filter(|got| (5..=DOCUMENT_MAX).contains(got));
        let length = fitting.ok_or(TraceProblem::Length { got, max: DOCUMENT_MAX })?;
        let there = self.fill(length)?;
        if there < length {
            return Err(TraceProblem::Cut { expected: length, got: there });
        }
        let begin = self.start;
        let bytes = self.buffer.get(begin..begin + length).unwrap_or_default();
        let (document, _) = check_document(bytes, 0).map_err(damaged)?;
        self.start += length;
        self.offset += length as u64;
        Ok(Some(document))
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads until so many bytes are there, or the source ends; how many there are, at most as many
    /// as were asked for.
    fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        while self.end - self.start < wanted {
            if self.buffer.len() - self.start < wanted.max(LENGTH) {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                let needed = wanted.max(READ);
                if self.buffer.len() < needed {
                    self.buffer.resize(needed, 0);
                }
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wanted.min(self.end - self.start))
    }
}

fn damaged(error: WireError) -> TraceProblem {
    if let WireError::Bson { offset, problem } = error {
        return TraceProblem::Bson { offset, problem };
    }
    TraceProblem::Io(io::Error::new(io::ErrorKind::InvalidData, error))
}
