use alloc::string::ToString as _;
use core::fmt::{self, Write as _};

use crate::printable::{breaks_a_line, is_invisible};

/// Text from outside, shown as one line of bounded length that has no effect on a terminal: a
/// server, a proxy or a file must not be able to forge logs, or to flood them.
///
/// Control characters and line separators become spaces. Characters that are invisible or change
/// the direction of writing are shown by their number, as in `\u{202e}`. A text that is too long
/// is cut and ends in `…`. `Debug` shows the same in quotes.
///
/// ```
/// use cenote_core::error::OneLine;
///
/// assert_eq!(OneLine::name("rs0\r\nERROR forged\u{202e}").to_string(), r"rs0  ERROR forged\u{202e}");
/// assert_eq!(OneLine::with_limit("rainbow", 4).to_string(), "rain…");
/// ```
#[derive(Clone, Copy)]
pub struct OneLine<'a> {
    text: &'a str,
    characters_max: usize,
}

impl<'a> OneLine<'a> {
    /// How many characters of a name are shown.
    pub const NAME_MAX: usize = 256;
    /// How many characters of an error's text are shown.
    pub const TEXT_MAX: usize = 500;

    /// A name, such as that of a replica set: at most [`NAME_MAX`](Self::NAME_MAX) characters.
    #[must_use]
    pub const fn name(text: &'a str) -> Self {
        Self::with_limit(text, Self::NAME_MAX)
    }

    /// A message: at most [`TEXT_MAX`](Self::TEXT_MAX) characters.
    #[must_use]
    pub const fn text(text: &'a str) -> Self {
        Self::with_limit(text, Self::TEXT_MAX)
    }

    /// At most so many characters, without the `…`.
    #[must_use]
    pub const fn with_limit(text: &'a str, characters_max: usize) -> Self {
        Self { text, characters_max }
    }
}

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = self.characters_max;
        for character in self.text.chars() {
            let width = if is_invisible(character) { character.escape_unicode().len() } else { 1 };
            let Some(left) = room.checked_sub(width) else { return f.write_char('…') };
            room = left;
            if is_invisible(character) {
                write!(f, "{}", character.escape_unicode())?;
            } else {
                f.write_char(if breaks_a_line(character) { ' ' } else { character })?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::OneLine;
    use alloc::{format, string::ToString as _};

    #[test]
    fn what_would_break_the_line_becomes_a_space() {
        let shown = OneLine::text("down\r\nERROR forged\u{1b}[0m\u{2028}x").to_string();
        assert_eq!(shown, "down  ERROR forged [0m x");
    }

    #[test]
    fn what_is_invisible_is_shown_by_its_number() {
        let shown = OneLine::name("rs0\u{202e}0sr\u{200f}\u{e0041}").to_string();
        assert_eq!(shown, r"rs0\u{202e}0sr\u{200f}\u{e0041}");
        assert_eq!(OneLine::with_limit("ab\u{202e}", 9).to_string(), "ab…");
        assert_eq!(OneLine::with_limit("ab\u{202e}", 10).to_string(), r"ab\u{202e}");
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        let exactly = "ü".repeat(OneLine::TEXT_MAX);
        assert_eq!(OneLine::text(&exactly).to_string(), exactly);

        let longer = "ü".repeat(OneLine::TEXT_MAX + 1);
        assert_eq!(OneLine::text(&longer).to_string(), format!("{exactly}…"));
    }

    #[test]
    fn debug_is_bounded_too() {
        let shown = format!("{:?}", OneLine::with_limit("a\"\n\u{1b}bc", 5));
        assert_eq!(shown, r#""a\"  b…""#);
    }
}
