//! [`Instant`] and the clock of the standard library, which only shells read.

#![expect(clippy::disallowed_types, reason = "times are converted here, no clock is read")]

use std::time::Instant as StdInstant;

use crate::pool::Instant;

impl Instant {
    /// A time of the standard library's clock, which was at `origin` at [`Instant::ORIGIN`]. An earlier
    /// time is `ORIGIN`, one that is out of range is the latest there is.
    ///
    /// ```
    /// use cenote_core::pool::Instant;
    /// use std::time::Duration;
    ///
    /// let origin = std::time::Instant::now(); // The pool is made.
    /// let later = origin + Duration::from_millis(5);
    /// assert_eq!(Instant::from_std(later, origin).as_nanos(), 5_000_000);
    /// assert_eq!(Instant::from_nanos(5_000_000).into_std(origin), Some(later));
    /// ```
    #[must_use]
    pub fn from_std(at: StdInstant, origin: StdInstant) -> Self {
        Self::ORIGIN + at.saturating_duration_since(origin)
    }

    /// The time of the standard library's clock, which was at `origin` at [`Instant::ORIGIN`]; `None` if
    /// it is out of the clock's range. A deadline at that time never comes.
    #[must_use]
    pub fn into_std(self, origin: StdInstant) -> Option<StdInstant> {
        origin.checked_add(self.saturating_since(Self::ORIGIN))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a test needs some time")]

    use core::time::Duration;

    use super::{Instant, StdInstant};

    #[test]
    fn times_out_of_range_are_the_nearest_in_range() {
        let origin = StdInstant::now();
        let earlier = origin.checked_sub(Duration::from_nanos(1)).expect("the clock ran before");
        assert_eq!(Instant::from_std(earlier, origin), Instant::ORIGIN);
        let last = Instant::from_nanos(u64::MAX);
        if let Some(beyond) = origin.checked_add(Duration::from_secs(u64::MAX >> 2)) {
            assert_eq!(Instant::from_std(beyond, origin), last);
        }
        assert!(last.into_std(origin).is_none_or(|at| Instant::from_std(at, origin) == last));
    }
}
