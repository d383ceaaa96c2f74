//! Places in a document, such as `operations/3/name`.

use std::collections::BTreeMap;

/// The line of everything that has one: `operations/3/name`, from 1.
pub(super) type Lines = BTreeMap<String, usize>;

/// The place of a key below a place.
pub(super) fn child(place: &str, key: &str) -> String {
    let mut place = place.to_owned();
    push(&mut place, key);
    place
}

pub(super) fn push(place: &mut String, key: &str) {
    // serde writes list indices as `[3]`.
    let key = key.trim_start_matches('[').trim_end_matches(']');
    if !place.is_empty() {
        place.push('/');
    }
    place.push_str(key);
}
