//! Where a conversation can be broken, and what has to be told then.

use cenote::proxy::{End, Way};
use cenote_core::error::Stage;

/// How many lanes there are side by side: each has its own proxy and its own pool.
pub(super) const LANES: usize = 8;

/// A conversation without a fault: hello, authentication and a ping, each with its reply.
#[derive(Clone)]
pub(super) struct Conversation {
    turns: Vec<(Way, u64)>,
}

/// One way to break it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) after: u64,
    pub(super) end: End,
}

impl Conversation {
    pub(super) fn new(turns: Vec<(Way, u64)>) -> Self {
        let ways: Vec<_> = turns.iter().map(|(way, _)| *way).collect();
        assert_eq!(ways, [Way::ToServer, Way::ToClient].repeat(3), "hello, login, ping: {turns:?}");
        Self { turns }
    }

    /// After each byte in every way, shared out among the lanes.
    pub(super) fn cases(&self, lane: usize) -> impl Iterator<Item = Case> {
        let total: u64 = self.turns.iter().map(|(_, bytes)| bytes).sum();
        assert!((1_000..10_000).contains(&total), "{total} bytes");
        let ends = [End::Close, End::Reset, End::HalfClose];
        let all = (0..total).flat_map(move |after| ends.map(|end| Case { after, end }));
        let this = self.clone();
        all.filter(move |case| !this.may_go_well(*case)).skip(lane).step_by(LANES)
    }

    /// The server has heard the ping, and that nothing more comes: it may answer.
    fn may_go_well(&self, case: Case) -> bool {
        case.end == End::HalfClose && case.after == self.end_of(4)
    }

    /// How far a connection that is broken there may come.
    pub(super) fn expect(&self, case: Case, stage: Stage) {
        let expected = match (0..6).find(|turn| case.after < self.end_of(*turn)) {
            Some(0 | 1) => Stage::Hello,
            Some(2 | 3) => Stage::Authentication,
            Some(_) | None => Stage::Operation,
        };
        let has_heard = [0, 2].iter().any(|turn| case.after == self.end_of(*turn));
        let is_right = match case.end {
            End::Close | End::Silence => stage == expected,
            // It may overtake what came before it.
            End::Reset => stage <= expected,
            // A server that has heard all of a command may answer it.
            End::HalfClose => stage == expected || (has_heard && stage > expected),
        };
        assert!(is_right, "{case:?}: the connection came to {stage}, and should to {expected}");
    }

    fn end_of(&self, turn: usize) -> u64 {
        self.turns.iter().take(turn + 1).map(|(_, bytes)| bytes).sum()
    }
}
