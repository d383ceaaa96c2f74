//! SASLprep, RFC 4013, without leaving copies of the password behind.

use stringprep::tables;
use unicode_normalization::UnicodeNormalization as _;

use super::hash::SecretBytes;

/// The password as SCRAM-SHA-256 takes it; `None` if it has what SASLprep prohibits.
///
/// `stringprep` has the tables, and a function for the whole, which grows texts of its own on the
/// way and does not overwrite them. Here the text is written once, to where there is room for all
/// of it; normalization looks at a few characters at a time.
// AU-32, AU-40
pub(super) fn saslprep(password: &str) -> Option<SecretBytes> {
    if password.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Some(password.as_bytes().to_vec().into());
    }
    if normalized(password).any(is_prohibited) || breaks_direction(password) {
        return None;
    }
    let length = normalized(password).map(char::len_utf8).sum();
    let mut prepared = SecretBytes::new(Vec::with_capacity(length));
    for character in normalized(password) {
        prepared.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(prepared)
}

/// Sections 2.1 and 2.2: any space is a space, what is not seen is nothing, and what looks the same
/// is the same.
fn normalized(password: &str) -> impl Iterator<Item = char> {
    let mapped = password
        .chars()
        .map(|it| if tables::non_ascii_space_character(it) { ' ' } else { it })
        .filter(|it| !tables::commonly_mapped_to_nothing(*it));
    mapped.nfkc()
}

/// Section 2.3, and section 2.5, which a password to be stored has to obey as well.
fn is_prohibited(character: char) -> bool {
    const TABLES: [fn(char) -> bool; 11] = [
        tables::non_ascii_space_character,
        tables::ascii_control_character,
        tables::non_ascii_control_character,
        tables::private_use,
        tables::non_character_code_point,
        tables::surrogate_code,
        tables::inappropriate_for_plain_text,
        tables::inappropriate_for_canonical_representation,
        tables::change_display_properties_or_deprecated,
        tables::tagging_character,
        tables::unassigned_code_point,
    ];
    TABLES.iter().any(|has| has(character))
}

/// Section 2.4: a text with letters from right to left has no others, and begins and ends with
/// one of them.
fn breaks_direction(password: &str) -> bool {
    let right_to_left = |it: char| tables::bidi_r_or_al(it);
    if !normalized(password).any(right_to_left) {
        return false;
    }
    let first = normalized(password).next();
    let last = normalized(password).last();
    normalized(password).any(tables::bidi_l)
        || !first.is_some_and(right_to_left)
        || !last.is_some_and(right_to_left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::saslprep;

    fn prepared(password: &str) -> Option<String> {
        saslprep(password).map(|bytes| String::from_utf8(bytes.to_vec()).expect("characters"))
    }

    // The examples of RFC 4013, section 3 (AU-40).
    #[test]
    fn examples() {
        let examples = [
            ("I\u{AD}X", Some("IX")),
            ("user", Some("user")),
            ("USER", Some("USER")),
            ("\u{AA}", Some("a")),
            ("\u{2168}", Some("IX")),
            ("\u{2163}", Some("IV")),
            ("\u{7}", None),
            ("\u{627}1", None),
            ("\u{627}1\u{628}", Some("\u{627}1\u{628}")),
            ("\u{627}x\u{628}", None),
            ("", Some("")),
            ("\u{AD}", Some("")),
            ("a\u{A0}b", Some("a b")),
            ("\u{221}", None),
        ];
        for (password, expected) in examples {
            assert_eq!(prepared(password).as_deref(), expected, "{password:?}");
        }
    }

    /// A ligature of eighteen characters: no password grows more.
    #[test]
    fn there_is_room_for_all_of_it() {
        let long = saslprep(&"\u{FDFA}".repeat(1000)).expect("letters");
        assert_eq!((long.len(), long.capacity()), (33_000, 33_000));
    }

    proptest! {
        // AU-32
        #[test]
        fn as_the_library_has_it(password in prop_oneof![
            any::<String>(),
            "[a-z\u{a0}-\u{24f}\u{300}-\u{36f}\u{590}-\u{6ff}\u{2000}-\u{2170}\u{fb00}-\u{fdff}]{0,12}",
        ]) {
            let expected = stringprep::saslprep(&password).ok().map(std::borrow::Cow::into_owned);
            prop_assert_eq!(prepared(&password), expected);
        }
    }
}
