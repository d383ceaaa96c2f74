//! Numbers and times as text.

use std::time::Duration;

pub(super) use indicatif::HumanCount as Count;

/// Three digits and a unit: `412 µs`, `4.12 ms`, `41.2 s`.
pub(in crate::command) fn time(time: Duration) -> String {
    milliseconds(time.as_secs_f64() * 1e3)
}

/// [`time`] of a number of milliseconds.
pub(in crate::command) fn milliseconds(milliseconds: f64) -> String {
    let (number, unit) = match milliseconds {
        it if it < 0.9995 => (it * 1e3, "µs"),
        it if it < 999.5 => (it, "ms"),
        it => (it / 1e3, "s"),
    };
    let digits = match number {
        it if it < 9.995 => 2,
        it if it < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let texts = [0.0, 0.00412, 0.412, 0.9996, 4.12, 41.2, 999.6, 41_200.0].map(milliseconds);
        assert_eq!(
            texts,
            ["0.00 µs", "4.12 µs", "412 µs", "1.00 ms", "4.12 ms", "41.2 ms", "1.00 s", "41.2 s"]
        );
    }
}
