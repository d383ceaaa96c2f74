use core::fmt;

/// Shows text from outside as one line of bounded length: an error message ends up in logs, and a
/// peer must not be able to forge or flood them.
pub(super) struct OneLine<'a>(pub(super) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        let mut characters = self.0.chars();
        for character in characters.by_ref().take(CHARACTERS_MAX) {
            f.write_char(if breaks_a_line(character) { ' ' } else { character })?;
        }
        if characters.next().is_some() {
            f.write_char('…')?;
        }
        Ok(())
    }
}

/// Control characters, and the two separators that some viewers take for a new line.
fn breaks_a_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

const CHARACTERS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::{CHARACTERS_MAX, OneLine};
    use alloc::string::ToString as _;

    #[test]
    fn what_would_break_the_line_becomes_a_space() {
        let shown = OneLine("down\r\nERROR forged\u{1b}[0m\u{2028}x").to_string();
        assert_eq!(shown, "down  ERROR forged [0m x");
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        let exactly = "ü".repeat(CHARACTERS_MAX);
        assert_eq!(OneLine(&exactly).to_string(), exactly);

        let longer = "ü".repeat(CHARACTERS_MAX + 1);
        let shown = OneLine(&longer).to_string();
        assert_eq!(shown.chars().count(), CHARACTERS_MAX + 1);
        assert!(shown.ends_with("ü…"));
    }
}
