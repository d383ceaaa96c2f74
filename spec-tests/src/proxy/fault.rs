//! What becomes of one connection.

use std::time::Duration;

use cenote_replay::random::SplitMix;

/// What becomes of one connection; the default is that everything passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFault {
    /// After so many bytes, counted both ways together, this is the end; with 0 at once.
    pub cut: Option<(u64, End)>,
    /// How long each stretch of bytes is held up.
    pub delay: Duration,
    /// Bytes come in small pieces.
    pub drip: Option<Drip>,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides are closed with FIN.
    Close,
    /// Both sides are reset.
    Reset,
    /// The receiver of the last byte gets FIN; its own bytes still pass.
    HalfClose,
    /// Nothing passes any more, and neither side is closed.
    Silence,
}

/// Bytes in small pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// Of one piece; at least 1.
    pub bytes: usize,
    /// Between two pieces.
    pub every: Duration,
}

impl End {
    /// Every end.
    pub const ALL: [Self; 4] = [Self::Close, Self::Reset, Self::HalfClose, Self::Silence];
}

impl ConnectionFault {
    /// It ends after so many bytes.
    #[must_use]
    pub fn cut(after: u64, end: End) -> Self {
        Self { cut: Some((after, end)), ..Self::default() }
    }

    /// It comes in small pieces.
    #[must_use]
    pub fn drip(bytes: usize, every: Duration) -> Self {
        Self { drip: Some(Drip { bytes: bytes.max(1), every }), ..Self::default() }
    }

    /// Half of all connections have a long life, the others end within four thousand bytes; some are
    /// slow.
    pub(super) fn draw(chance: &mut SplitMix) -> Self {
        let end = End::ALL.into_iter().nth(usize::from(chance.byte() % 4));
        let after = chance.below(4_000);
        let cut = end.map(|end| (after, end)).filter(|_| chance.below(2) == 0);
        let delay = if chance.below(4) == 0 { chance.below(2_000) } else { 0 };
        let piece = usize::from(chance.byte() % 64) + 1;
        let every = Duration::from_micros(chance.below(500));
        let drip = (chance.below(4) == 0).then_some(Drip { bytes: piece, every });
        Self { cut, delay: Duration::from_micros(delay), drip }
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionFault;
    use cenote_replay::random::SplitMix;

    #[test]
    fn seeds_draw_all_kinds_of_fates_and_the_same_again() {
        let fates = |seed| {
            let mut chance = SplitMix(seed);
            (0..100).map(|_| ConnectionFault::draw(&mut chance)).collect::<Vec<_>>()
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        let fates = fates(3);
        let share =
            |holds: fn(&ConnectionFault) -> bool| fates.iter().filter(|fault| holds(fault)).count();
        assert!((30..70).contains(&share(|fault| fault.cut.is_some())));
        assert!((10..40).contains(&share(|fault| fault.drip.is_some())));
        assert!((10..40).contains(&share(|fault| !fault.delay.is_zero())));
    }
}
