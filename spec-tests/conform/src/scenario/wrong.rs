/// An error in a part of a file, and its place.
pub(super) struct Wrong {
    pub(super) place: String,
    pub(super) reason: String,
}

impl Wrong {
    pub(super) fn at(place: &str, reason: impl Into<String>) -> Self {
        Self { place: place.to_owned(), reason: reason.into() }
    }

    /// Makes an error of every reason, at this place.
    pub(super) fn in_part(place: &str) -> impl Fn(String) -> Self {
        move |reason| Self::at(place, reason)
    }
}
