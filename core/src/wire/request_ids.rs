/// Numbers for the requests of one connection, each one more than the last, and 1 after
/// 2,147,483,647; or [random](Self::random) ones. The default begins with 1.
///
/// Never 0, which in `responseTo` means that nothing is answered.
///
/// Connections that all count from 1 cannot notice that a proxy has exchanged their replies, which
/// answer the same number: shells use random ones.
#[derive(Clone, Debug, Default)]
pub struct RequestIds {
    last: i32,
    /// Of ids that do not count up.
    random: Option<Random>,
}

/// PCG-XSH-RR, which a peer does not predict from the ids that it has seen without effort.
#[derive(Clone, Debug)]
struct Random {
    state: u64,
    /// Odd.
    increment: u64,
}

impl RequestIds {
    /// Goes on after `last`, so that a trace or a test can begin anywhere. Negative is as 0.
    #[must_use]
    pub const fn after(last: i32) -> Self {
        Self { last, random: None }
    }

    /// In no order, so that a reply that was sent before its request is not believed. The same entropy has the same
    /// ids.
    #[must_use]
    pub const fn random(entropy: u128) -> Self {
        let random = Random { state: entropy as u64, increment: (entropy >> 64) as u64 | 1 };
        Self { last: 0, random: Some(random) }
    }

    /// The next one.
    pub fn next_id(&mut self) -> i32 {
        if let Some(random) = &mut self.random {
            return random.next();
        }
        self.last = self.last.max(0).checked_add(1).unwrap_or(1);
        self.last
    }
}

impl Random {
    /// Positive.
    const fn next(&mut self) -> i32 {
        let old = self.state;
        self.state = old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.increment);
        let mixed = (((old >> 18) ^ old) >> 27) as u32;
        let id = mixed.rotate_right((old >> 59) as u32) >> 1;
        if id == 0 { 1 } else { id as i32 }
    }
}

#[cfg(test)]
mod tests {
    use super::RequestIds;

    #[test]
    fn ids_go_round_without_zero() {
        let mut ids = RequestIds::after(i32::MAX - 1);
        assert_eq!([ids.next_id(), ids.next_id(), ids.next_id()], [i32::MAX, 1, 2]);
        assert_eq!(RequestIds::default().next_id(), 1);
        assert_eq!(RequestIds::after(-5).next_id(), 1);
    }

    #[test]
    fn random_ids_are_positive_and_in_no_order() {
        let mut ids = RequestIds::random(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF);
        let all: Vec<_> = core::iter::repeat_with(|| ids.next_id()).take(10_000).collect();
        assert!(all.iter().all(|id| *id > 0));
        let follows = all.windows(2).filter(|ids| ids[0].abs_diff(ids[1]) < 1_000).count();
        assert!(follows < 10, "{follows}");
        let other = RequestIds::random(1).next_id();
        assert_ne!(other, all[0]);
    }
}
