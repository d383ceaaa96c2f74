//! How long the server may work on a command: `maxTimeMS`.

use core::time::Duration;
use std::borrow::Cow;

use bson::{RawBson, RawDocument, cstr};

/// The command with the `maxTimeMS` that its operation has time for: what is `left` of `timeoutMS`, less the least
/// time that a round trip to the server takes ([`RoundTrip::minimum`]), in whole milliseconds, rounded up. `None` if
/// nothing remains: then the command must not be sent.
///
/// `getMore` is as it was: servers refuse the field there, but for tailable cursors that await data. More than the
/// 24 days that a server accepts are cut to these. Whether the command has a `maxTimeMS` already is not looked at, as
/// the specification demands: the server refuses it twice.
///
/// ```
/// use std::time::Duration;
///
/// use bson::rawdoc;
/// use cenote_core::client::with_max_time;
///
/// let (left, round_trip) = (Duration::from_millis(200), Duration::from_millis(15));
/// let command = rawdoc! { "ping": 1 };
/// let bounded = with_max_time(&command, left, round_trip).expect("time is left");
/// assert_eq!(bounded.into_owned(), rawdoc! { "ping": 1, "maxTimeMS": 185_i64 });
/// assert_eq!(with_max_time(&command, round_trip, round_trip), None);
/// ```
///
/// [`RoundTrip::minimum`]: crate::monitor::RoundTrip::minimum
// CS-11, CS-14
#[must_use]
pub fn with_max_time(
    command: &RawDocument,
    left: Duration,
    min_round_trip: Duration,
) -> Option<Cow<'_, RawDocument>> {
    let time = left.checked_sub(min_round_trip).filter(|time| !time.is_zero())?;
    if command.iter().next().is_some_and(|first| first.is_ok_and(|(name, _)| name == "getMore")) {
        return Some(Cow::Borrowed(command));
    }
    let millis = time.as_nanos().div_ceil(1_000_000);
    let millis = i32::try_from(millis).unwrap_or(i32::MAX);
    let mut bounded = command.to_owned();
    bounded.append(cstr!("maxTimeMS"), RawBson::Int64(millis.into()));
    Some(Cow::Owned(bounded))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use bson::{RawDocument, rawdoc};

    use super::with_max_time;

    fn max_time(command: &RawDocument, left: Duration, round_trip: Duration) -> Option<i64> {
        let bounded = with_max_time(command, left, round_trip)?;
        Some(bounded.get_i64("maxTimeMS").unwrap_or(0))
    }

    // CS-11, CS-14
    #[test]
    fn it_is_the_rest_less_a_round_trip_rounded_up() {
        let (ping, micros) = (rawdoc! { "ping": 1 }, Duration::from_micros);
        for (left, round_trip, expected) in [
            (1_000, 0, Some(1)),
            (1_001, 0, Some(2)),
            (1, 0, Some(1)),
            (20_000, 5_500, Some(15)),
            (5_000, 5_000, None),
            (5_000, 5_001, None),
            (0, 0, None),
        ] {
            assert_eq!(max_time(&ping, micros(left), micros(round_trip)), expected, "{left}");
        }
        let long = max_time(&ping, Duration::MAX, Duration::ZERO);
        assert_eq!(long, Some(i64::from(i32::MAX)));
    }

    #[test]
    fn get_more_has_none() {
        let (more, second) =
            (rawdoc! { "getMore": 7_i64, "collection": "birds" }, Duration::from_secs(1));
        assert_eq!(max_time(&more, second, Duration::ZERO), Some(0));
        assert_eq!(max_time(&more, second, second), None);
    }
}
