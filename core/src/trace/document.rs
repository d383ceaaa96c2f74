//! Writing BSON: only what traces hold, straight into the buffer that goes out.

use alloc::vec::Vec;

use crate::pool::ServiceId;

/// A document that is being written at the end of a buffer.
pub(super) struct Document<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Document<'a> {
    pub(super) fn new(buffer: &'a mut Vec<u8>) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        Self { buffer, start }
    }

    pub(super) fn boolean(&mut self, key: &str, value: bool) -> &mut Self {
        self.key(0x08, key).push(u8::from(value));
        self
    }

    /// Only if it is true: what is absent is false.
    pub(super) fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        if value { self.boolean(key, true) } else { self }
    }

    /// A number without sign, as 32 bits where that is enough. Above the range of signed numbers it
    /// shows as a negative one.
    pub(super) fn number(&mut self, key: &str, value: u64) -> &mut Self {
        match i32::try_from(value) {
            Ok(small) => self.key(0x10, key).extend_from_slice(&small.to_le_bytes()),
            Err(_) => self.key(0x12, key).extend_from_slice(&value.to_le_bytes()),
        }
        self
    }

    pub(super) fn number_if(&mut self, key: &str, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.number(key, value),
            None => self,
        }
    }

    /// As 64 bits, whatever the number: what is always large, or has a sign.
    pub(super) fn long(&mut self, key: &str, value: i64) -> &mut Self {
        self.key(0x12, key).extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn date(&mut self, key: &str, milliseconds: i64) -> &mut Self {
        self.key(0x09, key).extend_from_slice(&milliseconds.to_le_bytes());
        self
    }

    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        let length = value.len() as i32 + 1;
        let buffer = self.key(0x02, key);
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(value.as_bytes());
        buffer.push(0);
        self
    }

    pub(super) fn service(&mut self, key: &str, value: Option<ServiceId>) -> &mut Self {
        match value {
            Some(ServiceId(bytes)) => self.object_id(key, bytes),
            None => self,
        }
    }

    pub(super) fn object_id(&mut self, key: &str, bytes: [u8; 12]) -> &mut Self {
        self.key(0x07, key).extend_from_slice(&bytes);
        self
    }

    pub(super) fn document(
        &mut self,
        key: &str,
        write: impl FnOnce(&mut Document<'_>),
    ) -> &mut Self {
        self.nested(0x03, key, write)
    }

    /// Keys of an array are 0, 1, 2, …: the writer's to give.
    pub(super) fn array(&mut self, key: &str, write: impl FnOnce(&mut Document<'_>)) -> &mut Self {
        self.nested(0x04, key, write)
    }

    pub(super) fn end(self) {
        self.buffer.push(0);
        let length = (self.buffer.len() - self.start) as i32;
        if let Some(head) = self.buffer.get_mut(self.start..self.start + 4) {
            head.copy_from_slice(&length.to_le_bytes());
        }
    }

    fn nested(&mut self, kind: u8, key: &str, write: impl FnOnce(&mut Document<'_>)) -> &mut Self {
        let mut nested = Document::new(self.key(kind, key));
        write(&mut nested);
        nested.end();
        self
    }

    fn key(&mut self, kind: u8, key: &str) -> &mut Vec<u8> {
        self.buffer.push(kind);
        self.buffer.extend_from_slice(key.as_bytes());
        self.buffer.push(0);
        self.buffer
    }
}
