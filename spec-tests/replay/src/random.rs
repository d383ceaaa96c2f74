//! Random numbers, reproducible from a seed.

/// The generator SplitMix64. The same seed always gives the same numbers, in every version of Cenote.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[3]
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit.max(1)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// A number from 0 to 1, without 1.
    pub fn part(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// `true` half of the time.
    pub fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// `true` once in `times` draws on average; never if `times` is 0.
    pub fn one_in(&mut self, times: u64) -> bool {
        times != 0 && self.below(times) == 0
    }

    /// One of the items; `None` if there are none.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len() as u64);
        items.get(usize::try_from(index).ok()?).cloned()
    }
}
