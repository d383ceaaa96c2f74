use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// How long something took, each time: to three digits, in little memory, however often.
#[derive(Clone, Debug)]
pub(super) struct Latencies(Histogram<u64>);

/// What is told of them; in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) count: u64,
    #[serde(rename = "p50MS")]
    pub(super) p50: f64,
    #[serde(rename = "p99MS")]
    pub(super) p99: f64,
    #[serde(rename = "p999MS")]
    pub(super) p999: f64,
    #[serde(rename = "maxMS")]
    pub(super) max: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "three digits are among the 0 to 5 that there can be"
        )]
        Self(Histogram::new(3).expect("three digits"))
    }
}

impl Latencies {
    pub(super) fn record(&mut self, time: Duration) {
        // It grows as it has to, up to any u64: half a millennium.
        self.0 += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    }

    pub(super) fn add(&mut self, others: &Self) {
        self.0 += &others.0;
    }

    /// Zeros if there are none.
    pub(super) fn quantiles(&self) -> Quantiles {
        let [p50, p99, p999, max] =
            [0.5, 0.99, 0.999, 1.0].map(|it| self.0.value_at_quantile(it) as f64 / 1e6);
        Quantiles { count: self.0.len(), p50, p99, p999, max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        (1..=500).for_each(|it| one.record(Duration::from_millis(it)));
        (501..=1000).for_each(|it| other.record(Duration::from_millis(it)));
        one.add(&other);
        let Quantiles { count, p50, p99, p999, max } = one.quantiles();
        assert_eq!(count, 1000);
        for (is, should) in [(p50, 500.0), (p99, 990.0), (p999, 999.0), (max, 1000.0)] {
            assert!((is / should - 1.0).abs() < 1e-3, "{is} is not {should}");
        }
    }

    #[test]
    fn nothing_and_any_time_can_be_recorded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantiles(), Quantiles::default());
        latencies.record(Duration::ZERO);
        latencies.record(Duration::MAX);
        assert_eq!(latencies.quantiles().count, 2);
    }
}
