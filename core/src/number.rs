//! Numbers in replies: servers, shells and proxies disagree about their BSON types.

use bson::RawBsonRef;

/// The value as an `i64`, whatever its numeric type; `None` when it is no whole number.
pub(crate) fn as_i64(value: RawBsonRef<'_>) -> Option<i64> {
    if let Some(whole) = value.as_i64() {
        return Some(whole);
    }
    if let Some(whole) = value.as_i32() {
        return Some(i64::from(whole));
    }
    whole_double(value.as_f64()?)
}

/// The value as an `i32`, whatever its numeric type; `None` when it does not fit.
pub(crate) fn as_i32(value: RawBsonRef<'_>) -> Option<i32> {
    i32::try_from(as_i64(value)?).ok()
}

/// The value as a double, whatever its numeric type.
pub(crate) fn as_f64(value: RawBsonRef<'_>) -> Option<f64> {
    if let Some(double) = value.as_f64() {
        return Some(double);
    }
    as_i64(value).map(|whole| whole as f64)
}

/// Only doubles that stand for one whole number: beyond 2^53 neighbours share a value.
fn whole_double(double: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let is_exact = double.trunc() == double && double.abs() <= EXACT_MAX;
    is_exact.then_some(double as i64)
}

#[cfg(test)]
mod tests {
    use super::{as_f64, as_i32, as_i64};
    use bson::RawBsonRef;

    #[test]
    fn every_numeric_type_counts() {
        assert_eq!(as_i64(RawBsonRef::Int32(-7)), Some(-7));
        assert_eq!(as_i64(RawBsonRef::Int64(i64::MAX)), Some(i64::MAX));
        assert_eq!(as_i64(RawBsonRef::Double(91.0)), Some(91));
        assert_eq!(as_f64(RawBsonRef::Int64(1)), Some(1.0));
    }

    #[test]
    fn what_is_no_whole_number_does_not() {
        for double in [0.5, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(as_i64(RawBsonRef::Double(double)), None, "{double}");
        }
        assert_eq!(as_i32(RawBsonRef::Int64(1 << 40)), None);
        assert_eq!(as_i64(RawBsonRef::String("91")), None);
    }
}
