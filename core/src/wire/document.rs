use bson::RawDocument;
use smallvec::SmallVec;

use super::{BsonProblem, WireError};

/// How deep documents may be nested in a message, itself counted: the limit of servers.
///
/// Documents that a server stores are limited to 180 levels, so that a reply around them stays
/// within this. It keeps code that turns a document into a tree from running out of stack.
pub const MAX_DEPTH: usize = 200;

/// Length and terminator.
const EMPTY: usize = 5;

/// Checks the document that begins at `offset` of `bytes`, all of its levels included, and gives
/// it with its length in bytes. What comes after it does not matter.
///
/// Well-formed is: every length fits into what surrounds it, every key, string and document is
/// terminated, every type is known, booleans are 0 or 1, and nothing is nested deeper than
/// [`MAX_DEPTH`]. Whether a key or string is UTF-8, and whether a key comes twice, shows when it is
/// read. One pass without recursion; allocates only below 32 levels of nesting.
///
/// # Errors
///
/// [`WireError::Cut`] when not even a length is there, otherwise [`WireError::Bson`].
///
/// ```
/// use bson::rawdoc;
/// use cenote_core::wire::{BsonProblem, WireError, check_document};
///
/// let mut bytes = rawdoc! { "a": true }.into_bytes();
/// assert_eq!(check_document(&bytes, 0).map(|(_, length)| length), Ok(9));
/// bytes[7] = 2;
/// let problem = BsonProblem::Boolean { got: 2 };
/// assert_eq!(check_document(&bytes, 0), Err(WireError::Bson { offset: 7, problem }));
/// ```
pub fn check_document(bytes: &[u8], offset: usize) -> Result<(&RawDocument, usize), WireError> {
    let length = document_length(bytes, offset)?;
    let end = offset + length;
    Walk { bytes: &bytes[..end], at: offset }
        .document(end)
        .map_err(|(offset, problem)| WireError::Bson { offset, problem })?;
    let document = RawDocument::from_bytes(&bytes[offset..end]).expect("length and end are right");
    Ok((document, length))
}

/// The length at the start of a document, if there is room for so much.
pub(super) fn document_length(bytes: &[u8], offset: usize) -> Result<usize, WireError> {
    let rest = bytes.get(offset..).unwrap_or_default();
    let Some(length) = rest.first_chunk() else {
        return Err(WireError::Cut { what: "document", offset, needed: EMPTY, left: rest.len() });
    };
    fitting(i32::from_le_bytes(*length), EMPTY, rest.len())
        .map_err(|problem| WireError::Bson { offset, problem })
}

fn fitting(got: i32, min: usize, max: usize) -> Result<usize, BsonProblem> {
    usize::try_from(got)
        .ok()
        .filter(|length| (min..=max).contains(length))
        .ok_or(BsonProblem::Length { got, min, max })
}

/// Goes through a document from front to back.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Where, and what.
type Problem = (usize, BsonProblem);

/// Where each document ends that is open, from the outermost to the innermost. Not the stack of
/// the thread: that one has no limit to check.
type Open = SmallVec<[usize; 32]>;

impl Walk<'_> {
    /// Everything up to `end`, whose length has been checked.
    fn document(mut self, end: usize) -> Result<(), Problem> {
        let mut open = Open::new();
        self.open(end, &mut open)?;
        while let Some(end) = open.last().copied() {
            // The last byte of a document is its terminator: `open` has looked.
            if self.at == end - 1 {
                self.at = end;
                open.pop();
            } else {
                self.element(end - 1, &mut open)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, end: usize, open: &mut Open) -> Result<(), Problem> {
        if open.len() == MAX_DEPTH {
            return Err((self.at, BsonProblem::TooDeep));
        }
        if self.bytes[end - 1] != 0 {
            return Err((end - 1, BsonProblem::Unterminated));
        }
        self.at += size_of::<i32>();
        open.push(end);
        Ok(())
    }

    fn element(&mut self, end: usize, open: &mut Open) -> Result<(), Problem> {
        let start = self.at;
        let kind = self.bytes[start];
        self.at += 1;
        self.name(end)?;
        match kind {
            0x0A | 0x06 | 0x7F | 0xFF => Ok(()),
            0x08 => self.boolean(end),
            0x10 => self.skip(4, end),
            0x01 | 0x09 | 0x11 | 0x12 => self.skip(8, end),
            0x07 => self.skip(12, end),
            0x13 => self.skip(16, end),
            0x02 | 0x0D | 0x0E => self.string(end),
            0x03 | 0x04 => self.nested(end, open),
            0x05 => self.binary(end),
            0x0B => self.name(end).and_then(|()| self.name(end)),
            0x0C => self.string(end).and_then(|()| self.skip(12, end)),
            0x0F => self.code_with_scope(end, open),
            got => Err((start, BsonProblem::UnknownType { got })),
        }
    }

    fn name(&mut self, end: usize) -> Result<(), Problem> {
        let length = self.bytes[self.at..end].iter().position(|byte| *byte == 0);
        self.at += length.ok_or((self.at, BsonProblem::Unterminated))? + 1;
        Ok(())
    }

    fn skip(&mut self, needed: usize, end: usize) -> Result<(), Problem> {
        let left = end - self.at;
        if left < needed {
            return Err((self.at, BsonProblem::Value { needed, left }));
        }
        self.at += needed;
        Ok(())
    }

    fn boolean(&mut self, end: usize) -> Result<(), Problem> {
        self.skip(1, end)?;
        match self.bytes[self.at - 1] {
            0 | 1 => Ok(()),
            got => Err((self.at - 1, BsonProblem::Boolean { got })),
        }
    }

    /// A length that counts what follows it.
    fn length(&mut self, min: usize, extra: usize, end: usize) -> Result<usize, Problem> {
        let start = self.at;
        let got = self.peek_i32(end)?;
        self.at += size_of::<i32>();
        let room = (end - self.at).saturating_sub(extra);
        fitting(got, min, room).map_err(|problem| (start, problem))
    }

    fn peek_i32(&self, end: usize) -> Result<i32, Problem> {
        let rest = &self.bytes[self.at..end];
        let chunk = rest.first_chunk();
        let chunk = chunk.ok_or((self.at, BsonProblem::Value { needed: 4, left: rest.len() }))?;
        Ok(i32::from_le_bytes(*chunk))
    }

    fn string(&mut self, end: usize) -> Result<(), Problem> {
        let length = self.length(1, 0, end)?;
        self.at += length;
        if self.bytes[self.at - 1] == 0 {
            Ok(())
        } else {
            Err((self.at - 1, BsonProblem::Unterminated))
        }
    }

    fn binary(&mut self, end: usize) -> Result<(), Problem> {
        // The subtype stands between the length and what it counts.
        const OLD: u8 = 0x02;
        let length = self.length(0, 1, end)?;
        self.skip(1, end)?;
        let subtype = self.bytes[self.at - 1];
        let end = self.at + length;
        if subtype == OLD {
            // Its bytes are another length and what that one counts, exactly.
            let room = length.saturating_sub(size_of::<i32>());
            self.length(room, 0, end)?;
        }
        self.at = end;
        Ok(())
    }

    fn nested(&mut self, end: usize, open: &mut Open) -> Result<(), Problem> {
        let length = fitting(self.peek_i32(end)?, EMPTY, end - self.at);
        let length = length.map_err(|problem| (self.at, problem))?;
        self.open(self.at + length, open)
    }

    /// A length that counts itself, a string, and a document up to the end.
    fn code_with_scope(&mut self, end: usize, open: &mut Open) -> Result<(), Problem> {
        const LEAST: usize = 4 + 5 + EMPTY;
        let length = fitting(self.peek_i32(end)?, LEAST, end - self.at);
        let end = self.at + length.map_err(|problem| (self.at, problem))?;
        self.skip(4, end)?;
        self.string(end)?;
        let got = self.peek_i32(end)?;
        let room = end - self.at;
        fitting(got, room.max(EMPTY), room).map_err(|problem| (self.at, problem))?;
        self.open(end, open)
    }
}
