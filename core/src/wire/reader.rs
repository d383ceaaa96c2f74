use core::fmt;

use bson::RawDocument;

use super::document::document_length;
use super::{WireError, check_document};

/// Takes a message apart from front to back, and knows where it is.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Where it is, and not what it reads.
impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("offset", &self.offset())
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    /// Reads on at `at`, which may be the end but not beyond it.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        assert!(at <= bytes.len(), "a reader starts within its message");
        Self { bytes, at }
    }

    /// From the start of the message.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(
        &mut self,
        needed: usize,
        what: &'static str,
    ) -> Result<&'a [u8], WireError> {
        let (offset, left) = (self.at, self.left());
        if left < needed {
            return Err(WireError::Cut { what, offset, needed, left });
        }
        self.at += needed;
        Ok(&self.bytes[offset..self.at])
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.take(1, what)?[0])
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        let bytes = self.take(4, what)?.try_into().expect("four bytes were taken");
        Ok(u32::from_le_bytes(bytes))
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, WireError> {
        self.u32(what).map(|bits| bits as i32)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, WireError> {
        let bytes = self.take(8, what)?.try_into().expect("eight bytes were taken");
        Ok(i64::from_le_bytes(bytes))
    }

    /// A name that ends with a zero byte, without it.
    pub(super) fn name(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let (offset, left) = (self.at, self.left());
        let rest = &self.bytes[offset..];
        let length = rest.iter().position(|byte| *byte == 0).ok_or(WireError::Cut {
            what,
            offset,
            needed: left + 1,
            left,
        })?;
        self.at += length + 1;
        core::str::from_utf8(&rest[..length]).map_err(|_| WireError::BadName { what })
    }

    /// A document, checked through and through.
    pub(super) fn document(&mut self) -> Result<&'a RawDocument, WireError> {
        let (document, length) = check_document(self.bytes, self.at)?;
        self.at += length;
        Ok(document)
    }

    /// A document that was checked before; `None` at the end.
    pub(super) fn checked_document(&mut self) -> Option<&'a RawDocument> {
        if self.left() == 0 {
            return None;
        }
        let length = document_length(self.bytes, self.at).expect("the document was checked");
        let bytes = self.take(length, "document").expect("the document was checked");
        Some(RawDocument::from_bytes(bytes).expect("the document was checked"))
    }

    /// Splits off the next bytes, offsets unchanged.
    pub(super) fn split(&mut self, length: usize, what: &'static str) -> Result<Self, WireError> {
        let at = self.at;
        self.take(length, what)?;
        Ok(Self { bytes: &self.bytes[..self.at], at })
    }

    /// The same bytes, read again from there.
    pub(super) fn back_to(&self, at: usize) -> Self {
        Self::new(self.bytes, at)
    }

    /// Nothing may be left.
    pub(super) fn finish(&self) -> Result<(), WireError> {
        match self.left() {
            0 => Ok(()),
            count => Err(WireError::TrailingBytes { offset: self.at, count }),
        }
    }
}
