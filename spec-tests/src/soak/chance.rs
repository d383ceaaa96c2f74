/// Numbers that look like chance: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another one, for somebody else.
    pub(crate) fn of(&self, number: u64) -> Self {
        let mut chance = Self(self.0 ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Self(chance.next())
    }

    /// Below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Any of them, each as likely as another.
    pub(super) fn one_of<T: Copy, const N: usize>(&mut self, things: &[T; N]) -> T {
        const { assert!(N > 0, "there is something to choose from") };
        let index = usize::try_from(self.below(N as u64)).unwrap_or_default();
        things[index]
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
