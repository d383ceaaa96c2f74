//! Texts that occur often, each stored once.

use std::collections::HashMap;

/// A list of different texts; the first is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    indices: HashMap<String, u32>,
    list: Vec<String>,
}

impl Texts {
    /// The index of a text. Where there are too many texts already, that of `brief`.
    pub(super) fn index(&mut self, text: &str, brief: &str) -> u32 {
        if let Some(&index) = self.indices.get(text) {
            return index;
        }
        if self.list.len() >= TEXTS_MAX && text != brief {
            return self.index(brief, brief);
        }
        self.add(text)
    }

    fn add(&mut self, text: &str) -> u32 {
        if self.list.is_empty() && !text.is_empty() {
            self.add("");
        }
        let index = self.list.len() as u32;
        self.indices.insert(text.to_owned(), index);
        self.list.push(text.to_owned());
        index
    }

    pub(super) fn get(&self, index: u32) -> &str {
        self.list.get(index as usize).map_or("", String::as_str)
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}

/// How many different texts there are at most, apart from the brief ones.
const TEXTS_MAX: usize = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_stored_once_and_too_many_become_brief() {
        let mut texts = Texts::default();
        assert_eq!(
            [texts.index("a", "-"), texts.index("b", "-"), texts.index("a", "-")],
            [1, 2, 1]
        );
        for number in 0..TEXTS_MAX {
            texts.index(&number.to_string(), "-");
        }
        let more = texts.index("one more", "-");
        assert_eq!((texts.index("another", "-"), texts.index("a", "-")), (more, 1));
        let list = texts.into_list();
        assert_eq!((list[0].as_str(), list[more as usize].as_str()), ("", "-"));
    }
}
