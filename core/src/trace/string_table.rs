//! The texts of causes, each kept once, in memory that was set aside before.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A bounded set of short texts, numbered from 1. Does not allocate after its creation: a text for
/// which there is no room is left out.
#[derive(Clone, Debug)]
pub(super) struct StringTable {
    all: String,
    /// Where each ends, and its hash.
    ends: Vec<(u32, u32)>,
}

impl StringTable {
    /// Bytes of one text, at most.
    pub(super) const TEXT_MAX: usize = 256;
    /// Texts, at most.
    const COUNT_MAX: usize = 255;

    pub(super) fn with_capacity(bytes: usize) -> Self {
        let count = (bytes / 16).min(Self::COUNT_MAX);
        Self { all: String::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    /// The number of the text that `write` writes; 0 if it is empty or there is no room for it.
    pub(super) fn number(&mut self, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> u64 {
        let start = self.all.len();
        let room = (self.all.capacity() - start).min(Self::TEXT_MAX);
        // Refused when it is longer than that, and then it is cut there.
        let _ = write(&mut Bounded { text: &mut self.all, end: start + room });
        let hash = hash(&self.all.as_bytes()[start..]);
        if let Some(index) = self.find(start, hash) {
            self.all.truncate(start);
            return index as u64 + 1;
        }
        let is_full = self.ends.len() == self.ends.capacity();
        let Ok(end) = u32::try_from(self.all.len()) else { return 0 };
        if is_full || end as usize == start {
            self.all.truncate(start);
            return 0;
        }
        self.ends.push((end, hash));
        self.ends.len() as u64
    }

    /// The text of a number.
    pub(super) fn get(&self, number: u64) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let (end, _) = *self.ends.get(index)?;
        self.all.get(self.start_of(index)..end as usize)
    }

    /// A text that is there already and is the same as the one that begins at `start`.
    fn find(&self, start: usize, hash: u32) -> Option<usize> {
        let same = |index: usize, end: u32| {
            self.all.get(self.start_of(index)..end as usize) == self.all.get(start..)
        };
        let mut all = self.ends.iter().enumerate();
        all.find(|&(index, &(end, known))| known == hash && same(index, end))
            .map(|(index, _)| index)
    }

    fn start_of(&self, index: usize) -> usize {
        let before = index.checked_sub(1).and_then(|before| self.ends.get(before));
        before.map_or(0, |&(end, _)| end as usize)
    }
}

/// Writes up to an end and refuses more; what would break the line becomes a space.
struct Bounded<'a> {
    text: &'a mut String,
    end: usize,
}

impl fmt::Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let character = if character.is_control() { ' ' } else { character };
            if self.text.len() + character.len_utf8() > self.end {
                return Err(fmt::Error);
            }
            self.text.push(character);
        }
        Ok(())
    }
}

/// FNV-1a: enough to tell few texts apart quickly; texts that collide are compared.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::StringTable;
    use alloc::string::ToString as _;

    fn number(texts: &mut StringTable, text: &str) -> u64 {
        texts.number(|out| out.write_str(text))
    }

    #[test]
    fn the_same_text_has_one_number() {
        let mut texts = StringTable::with_capacity(1024);
        assert_eq!(["a", "b", "a", "", "b"].map(|text| number(&mut texts, text)), [1, 2, 1, 0, 2]);
        assert_eq!([1, 2, 3].map(|number| texts.get(number)), [Some("a"), Some("b"), None]);
    }

    #[test]
    fn long_texts_are_cut_and_what_has_no_room_is_left_out() {
        let mut texts = StringTable::with_capacity(300);
        let long = "é".repeat(200);
        assert_eq!(number(&mut texts, &long), 1);
        assert_eq!(texts.get(1), Some("é".repeat(128).as_str()));
        let before = texts.all.capacity();
        for index in 0..1000 {
            number(&mut texts, &index.to_string());
        }
        assert_eq!(texts.all.capacity(), before);
        assert_eq!(number(&mut texts, "no room"), 0);
        texts.clear();
        assert_eq!(number(&mut texts, "one\nline"), 1);
        assert_eq!(texts.get(1), Some("one line"));
    }

    #[test]
    fn a_text_is_cut_where_the_room_ends() {
        let mut texts = StringTable::with_capacity(100);
        let room = texts.all.capacity();
        assert_eq!(number(&mut texts, &"a".repeat(70)), 1);
        assert_eq!(number(&mut texts, &"b".repeat(70)), 2);
        assert_eq!(texts.get(2).map(str::len), Some(room - 70));
        assert_eq!(texts.all.capacity(), room);
    }
}
