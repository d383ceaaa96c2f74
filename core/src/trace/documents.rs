//! One document after another, from any source, in memory that does not depend on its length.

use alloc::vec::Vec;
use std::io::{self, Read};

use bson::RawDocument;

use crate::wire::{WireError, check_document};

use super::error::TraceProblem;
use super::fields::wrong;

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
        if self.fill(LENGTH).map_err(TraceProblem::Io)? == 0 {
            return Ok(None);
        }
        let Some(length) = self.unread().first_chunk() else {
            return Err(TraceProblem::Cut { expected: LENGTH, got: self.unread().len() });
        };
        let got = i32::from_le_bytes(*length);
        let fitting = usize::try_from(got).ok().filter(|got| (5..=DOCUMENT_MAX).contains(got));
        let length = fitting.ok_or(TraceProblem::Length { got, max: DOCUMENT_MAX })?;
        let there = self.fill(length).map_err(TraceProblem::Io)?;
        if there < length {
            return Err(TraceProblem::Cut { expected: length, got: there });
        }
        let begin = self.start;
        let bytes = self.buffer.get(begin..begin + length).unwrap_or_default();
        let document = RawDocument::from_bytes(bytes).map_err(|_| what_is_wrong(bytes))?;
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
                self.make_room(wanted.max(READ));
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

    /// Moves what is unread to the front of a buffer of at least so many bytes.
    fn make_room(&mut self, needed: usize) {
        if self.buffer.len() < needed {
            let mut larger = alloc::vec![0; needed];
            let unread = self.unread();
            if let Some(room) = larger.get_mut(..unread.len()) {
                room.copy_from_slice(unread);
            }
            self.buffer = larger;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        self.end -= self.start;
        self.start = 0;
    }
}

/// Why a document could not be read: looked for only when that is so, for a second pass over every
/// document costs as much as the first.
pub(super) fn what_is_wrong(document: &[u8]) -> TraceProblem {
    match check_document(document, 0) {
        Err(WireError::Bson { offset, problem }) => TraceProblem::Bson { offset, problem },
        // Other readers take it as well-formed: they do not look at texts.
        Ok(_) | Err(_) => wrong("text", "is not UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    /// Gives a few bytes at a time.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(room.len());
            self.0.read(&mut room[..count])
        }
    }

    #[test]
    fn documents_come_whole_from_wherever_they_begin() {
        let all: Vec<_> =
            (0..400).map(|number| rawdoc! { "n": "x".repeat(number * 7 % 3001) }).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|it| it.as_bytes()).copied().collect();
        assert!(bytes.len() > 4 * READ);
        for piece in [1000, READ - 1, usize::MAX] {
            let mut documents = Documents::new(Dripping(&bytes, piece));
            let mut offset = 0;
            for expected in &all {
                assert_eq!(documents.offset(), offset);
                let document = documents.next().expect("no problem").expect("one more");
                assert_eq!(document, &**expected);
                offset += document.as_bytes().len() as u64;
            }
            assert!(documents.next().expect("no problem").is_none());
            assert_eq!(documents.buffer.len(), READ, "as much as is read at once");
        }
    }
}
