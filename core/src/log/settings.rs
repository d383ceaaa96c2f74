use core::fmt;

#[cfg(feature = "protocol")]
use super::extended_json::ExtendedJson;

/// How records are made.
///
/// The settings of a program take precedence over its environment: a shell reads the variable only
/// where nothing was set. To have it the other way round, ask the environment last, with
/// [`with_variable`](Self::with_variable):
///
/// ```
/// use cenote_core::log::LogSettings;
///
/// let own = LogSettings::default().with_max_document_length(200);
/// let variable = |value| own.with_variable(value).max_document_length;
/// assert_eq!([variable(Some("80")), variable(None), variable(Some("many"))], [80, 200, 200]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LogSettings {
    /// How long the text of an error may be, which can have a server's reply in it; the rest is cut
    /// off and `...` put in its place, which does not count. In Unicode scalar values (`char`s);
    /// default 1000.
    pub max_document_length: usize,
}

impl LogSettings {
    /// The default of [`max_document_length`](Self::max_document_length).
    pub const DEFAULT_MAX_DOCUMENT_LENGTH: usize = 1000;
    /// The name of the environment variable that a shell reads for
    /// [`from_variable`](Self::from_variable). The core reads none.
    pub const VARIABLE: &'static str = "MONGODB_LOG_MAX_DOCUMENT_LENGTH";

    /// The settings that go with the value of [`VARIABLE`](Self::VARIABLE). What is not a whole
    /// number counts as not set and is no error.
    // LG-44
    #[must_use]
    pub fn from_variable(value: Option<&str>) -> Self {
        Self::default().with_variable(value)
    }

    /// These settings, but for what the value of [`VARIABLE`](Self::VARIABLE) says, if it is valid:
    /// so the environment takes precedence.
    // LG-54
    #[must_use]
    pub fn with_variable(self, value: Option<&str>) -> Self {
        // `usize` itself would also read `+1`.
        let digits =
            value.filter(|value| value.bytes().all(|character| character.is_ascii_digit()));
        digits
            .and_then(|digits| digits.parse().ok())
            .map_or(self, |max| self.with_max_document_length(max))
    }

    /// Sets [`max_document_length`](Self::max_document_length).
    #[must_use]
    pub const fn with_max_document_length(mut self, characters: usize) -> Self {
        self.max_document_length = characters;
        self
    }

    /// A document as relaxed Extended JSON, as far as there is room for it.
    #[cfg(feature = "protocol")]
    #[must_use]
    pub fn document(self, document: &bson::RawDocument) -> String {
        self.cut(ExtendedJson(document))
    }

    /// The text of `shown`, as far as there is room for it. Takes no more memory than that, and
    /// stops listening when it is full.
    // LG-48, LG-50
    pub(super) fn cut(self, shown: impl fmt::Display) -> String {
        use fmt::Write as _;

        let mut room = Room { text: String::new(), left: Some(self.max_document_length) };
        // An error stops the text when the room is full.
        let _ = write!(room, "{shown}");
        room.text
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { max_document_length: Self::DEFAULT_MAX_DOCUMENT_LENGTH }
    }
}

/// Takes text until there are too many characters of it.
// LG-52
struct Room {
    text: String,
    /// For how many more characters there is room; `None` once something was cut off.
    left: Option<usize>,
}

impl fmt::Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.left.ok_or(fmt::Error)?;
        if let Some((end, _)) = text.char_indices().nth(left) {
            self.text.push_str(&text[..end]);
            self.text.push_str("...");
            self.left = None;
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        self.left = Some(left - text.chars().count());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::fmt;

    use super::LogSettings;

    fn cut(text: &str, max: usize) -> String {
        LogSettings::default().with_max_document_length(max).cut(text)
    }

    // LG-48
    #[test]
    fn text_is_cut_between_characters() {
        for (text, max, expected) in [
            ("", 0, ""),
            ("a", 0, "..."),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc..."),
            ("ü€𝄞", 3, "ü€𝄞"),
            ("ü€𝄞", 2, "ü€..."),
            ("ü€𝄞", 1, "ü..."),
            ("ü€𝄞", 0, "..."),
        ] {
            assert_eq!(cut(text, max), expected, "{text} at {max}");
        }
    }

    /// Writes without end unless it is stopped, and then tries once more.
    struct Endless<'a>(&'a Cell<u32>);

    impl fmt::Display for Endless<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            while f.write_str("€€").is_ok() {
                self.0.set(self.0.get() + 1);
            }
            f.write_str("again")
        }
    }

    // LG-52
    #[test]
    fn pieces_count_together_and_stop_when_there_is_no_room() {
        let pieces = Cell::new(0);
        let text = LogSettings::default().with_max_document_length(5).cut(Endless(&pieces));
        assert_eq!((text.as_str(), pieces.get()), ("€€€€€...", 2));
    }

    // LG-44
    #[test]
    fn a_variable_that_is_no_number_counts_as_not_set() {
        let length = |value| LogSettings::from_variable(value).max_document_length;
        assert_eq!([length(Some("0")), length(Some("25"))], [0, 25]);
        for invalid in ["", "-1", "+1", "1.5", " 7", "many", "99999999999999999999999"] {
            assert_eq!(length(Some(invalid)), 1000, "{invalid}");
        }
        assert_eq!(length(None), 1000);
    }
}
