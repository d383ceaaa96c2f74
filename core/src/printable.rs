//! Characters that have no place in a line of text.

/// Whether the character has no place in a line of text: it breaks the line, or is invisible.
pub(crate) fn is_unprintable(character: char) -> bool {
    breaks_a_line(character) || is_invisible(character)
}

/// Control characters, and the two separators that some viewers take for a new line.
pub(crate) fn breaks_a_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Marks of direction, and other characters that are shown as nothing (Unicode's
/// `Default_Ignorable_Code_Point`, and interlinear annotations).
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
