//! What would have happened: the callers and the server of a trace, before a pool with other options.
//!
//! A [`Workload`] is what a trace tells about callers and their server: when requests were made and with which limits, how
//! long their connections were used, and how long it took to establish connections. Everything else is decided anew by the
//! machine. Callers come again some time after their last request ended (a closed loop), or whatever happens to others (an
//! open loop); [`Fit`] says which one explains the trace better.
//!
//! What the trace does not show is drawn from what it shows at about the same time: the use of a request that failed, the
//! patience of a caller that was served, establishments beyond those of the trace, and which request was the next one of
//! which caller. A [`Prediction`] repeats that several times.

mod advice;
mod callers;
mod chains;
mod doubts;
mod events;
mod fit;
mod followers;
mod goal;
mod known;
mod machine;
mod outcome;
mod part;
mod patience;
mod reader;
mod request;
mod run;
mod server;
mod settings;
mod stalls;
pub mod validation;
mod workload;
mod world;

use std::cmp::Ordering;
use std::{io, iter};

use cenote_core::pool::{Action, PoolState};
use cenote_core::trace::{JournalOptions, TraceInfo, Traced};

pub use self::advice::{Advice, Need, Situation};
pub use self::callers::ASSUMED_OPENING;
pub use self::doubts::{Doubt, Finding};
pub use self::fit::{Fit, Loop};
pub use self::goal::Goal;
pub use self::outcome::Outcome;
pub use self::server::ServerLimit;
pub use self::settings::{Change, Grid, Setting};
pub use self::workload::Workload;

use self::callers::Callers;
use self::goal::Stop;
use self::known::Known;
use self::machine::Machine;
use crate::record::RecordedRun;

/// How a prediction is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumptions {
    /// How callers come; `Some` number of callers in a closed loop.
    pub callers: Option<u64>,
    /// With more connections in use than this each use takes longer in proportion.
    pub server: Option<u32>,
    /// That proportion to this power.
    pub growth: f64,
    /// How many times as many uses leak as in the trace.
    pub leaks: f64,
    /// How many times as many callers there are as in the trace: 1 or more.
    pub load: f64,
    /// How often what the trace does not show is drawn.
    pub draws: u64,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Assumptions {
    /// The number of draws of a prediction.
    pub const DRAWS: u64 = 9;

    /// The callers of the trace, in this loop.
    pub fn new(workload: &Workload, by: Loop, fit: &Fit) -> Self {
        let callers = match by {
            Loop::Open => None,
            Loop::Closed => Some(fit.callers),
        };
        Self {
            callers,
            server: ServerLimit::of(workload).map(|limit| limit.connections),
            growth: 1.0,
            leaks: 1.0,
            load: 1.0,
            draws: Self::DRAWS,
            seed: 0,
        }
    }
}

/// What would have happened: an outcome for each draw of what the trace does not show.
#[derive(Clone, Debug)]
pub struct Prediction {
    outcomes: Vec<Outcome>,
    doubts: Vec<Doubt>,
}

impl Prediction {
    /// What happened, as if it were predicted.
    pub fn certain(outcome: Outcome) -> Self {
        Self { outcomes: vec![outcome], doubts: Vec::new() }
    }

    /// The outcomes of the draws: at least one.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// What its trace cannot show, and makes a difference.
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// The median of a number.
    pub fn median<T: PartialOrd>(&self, of: impl Fn(&Outcome) -> T) -> T {
        let mut values = self.sorted(of);
        values.swap_remove(values.len() / 2)
    }

    /// The least and the largest of a number.
    pub fn range<T: PartialOrd + Copy>(&self, of: impl Fn(&Outcome) -> T) -> (T, T) {
        let values = self.sorted(of);
        (values[0], values[values.len() - 1])
    }

    fn sorted<T: PartialOrd>(&self, of: impl Fn(&Outcome) -> T) -> Vec<T> {
        let mut values: Vec<_> = self.outcomes.iter().map(of).collect();
        values.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        values
    }
}

impl Workload {
    /// What would have happened with a change of options.
    ///
    /// # Panics
    ///
    /// If the options are invalid with the change.
    pub fn predict(&self, change: &Change, assumptions: &Assumptions) -> Prediction {
        self.known(assumptions).predict(change, assumptions)
    }

    fn known(&self, assumptions: &Assumptions) -> Known<'_> {
        Known::of(self, assumptions.server.is_some())
    }

    /// Writes a trace of what would have happened, of the first draw.
    ///
    /// # Errors
    ///
    /// I/O errors of the sink.
    ///
    /// # Panics
    ///
    /// If the options are invalid with the change.
    pub fn record<W: io::Write>(
        &self,
        change: &Change,
        assumptions: &Assumptions,
        sink: W,
    ) -> io::Result<W> {
        let mut info = TraceInfo::new(self.address().unwrap_or_default());
        info = info.with_program(concat!("cenote ", env!("CARGO_PKG_VERSION"), " --what-if"));
        info = info.with_origin(self.source.origin);
        let journal = JournalOptions::default();
        let mut run = RecordedRun::begin_with(info, self.pool(change), journal, sink);
        self.known(assumptions).play(&mut run, change, assumptions, (0, None));
        run.finish()
    }

    fn pool(&self, change: &Change) -> PoolState<Traced> {
        let options = change.apply(&self.options);
        PoolState::new(self.start, options, &mut |_: Action<_>| {}).expect("valid options")
    }
}

impl Known<'_> {
    fn predict(&self, change: &Change, assumptions: &Assumptions) -> Prediction {
        let draws = self.draws(change, assumptions, None);
        Prediction { outcomes: draws.collect(), doubts: Vec::new() }
    }

    /// What would have happened, once for each draw that makes a difference.
    fn draws<'a>(
        &'a self,
        change: &'a Change,
        assumptions: &'a Assumptions,
        stop: Option<Stop>,
    ) -> impl Iterator<Item = Outcome> + 'a {
        let mut draws = 0..assumptions.draws.max(1);
        iter::from_fn(move || {
            let mut pool = self.workload.pool(change);
            let draw = (draws.next()?, stop);
            let (outcome, has_drawn) = self.play(&mut pool, change, assumptions, draw);
            if !has_drawn {
                draws.end = 0;
            }
            Some(outcome)
        })
    }

    fn play<M: Machine>(
        &self,
        machine: &mut M,
        change: &Change,
        assumptions: &Assumptions,
        (draw, stop): (u64, Option<Stop>),
    ) -> (Outcome, bool) {
        let seed = assumptions.seed.wrapping_add(draw.wrapping_mul(0x9e37_79b9));
        let mut world = Callers::new(self, change, assumptions, seed);
        let Workload { warm, start, end, .. } = self.workload;
        let outcome = run::run(machine, &mut world, warm, (*start, *end), stop);
        (outcome, world.has_drawn)
    }
}
