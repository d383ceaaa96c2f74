use cenote_replay::random::SplitMix;

/// Seeded random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance(SplitMix);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    /// An independent generator for another task.
    pub(crate) fn of(&self, number: u64) -> Self {
        let mut numbers = SplitMix(self.0.0 ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Self::new(numbers.number())
    }

    /// A number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// One of them, uniformly.
    pub(super) fn one_of<T: Copy, const N: usize>(&mut self, things: &[T; N]) -> T {
        const { assert!(N > 0, "there is something to choose from") };
        let index = usize::try_from(self.below(N as u64)).unwrap_or_default();
        things[index]
    }
}
