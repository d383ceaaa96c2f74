//! What a mistyped name was meant for.

/// The known name that differs from a mistyped one in the fewest ASCII letters, whatever their case; `None`
/// if more than a third of the letters differ. Of equally similar names, the first in alphabetical order.
///
/// ```
/// use cenote_core::uri::similar_name;
///
/// let known = ["maxConnecting", "maxPoolSize", "minPoolSize"];
/// assert_eq!(similar_name("maxpolsize", known), Some("maxPoolSize"));
/// assert_eq!(similar_name("poolSize", known), None);
/// ```
#[must_use]
pub fn similar_name(
    name: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let limit = name.len() / 3;
    let distances = known.into_iter().map(|known| (distance(name, known), known));
    distances.filter(|&(distance, _)| distance <= limit).min().map(|(_, known)| known)
}

/// How many letters have to be added, left out or changed.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (place, same) in other.iter().enumerate() {
            let change = diagonal + usize::from(!letter.eq_ignore_ascii_case(same));
            diagonal = row[place + 1];
            row[place + 1] = change.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "ABC", 0),
            ("abc", "abd", 1),
            ("abc", "bc", 1),
            ("abc", "xabcy", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected));
        }
    }
}
