//! Traces of runs that nobody had: random ones, and traffic.

use std::io;

use cenote_core::pool::{
    Action, ConnId, ConnectionState, Health, Input, Instant, PoolOptions, PoolState, PoolTypes,
};
use cenote_core::trace::{JournalOptions, Recorder, TraceCause, TraceInfo, TraceWriter};

use super::random::RandomRun;
use super::traffic::{Scene, Simulated, Traffic, Watched, returned};
use crate::lockstep::Tagged;

/// Writes a trace of traffic with so many inputs.
///
/// # Errors
///
/// Those of the sink.
pub fn traffic<W: io::Write>(
    scene: Scene,
    steps: u64,
    journal: JournalOptions,
    sink: W,
) -> io::Result<W> {
    let nobody = &mut |_: Action<Simulated>| {};
    let pool = PoolState::new(Instant::ORIGIN, scene.options.clone(), nobody);
    let mut taping = Taping::begin(pool.expect("a scene has usable options"), journal, sink);
    let checks_in_twice = scene.checks_in_twice;
    let mut traffic = Traffic::new(scene);
    let mut step = 0;
    // Whoever is to check in twice may do so only after somebody has checked in.
    let mut may_end = !checks_in_twice;
    while step < steps || !may_end {
        let Some((now, input)) = traffic.next(&taping.pool) else { break };
        let returned = returned_by(&input);
        let handled = taping.pool.handle(now, input, &mut Watched(&mut traffic));
        handled.expect("traffic feeds nothing that makes no sense");
        step += 1;
        if let Some(id) = returned.filter(|_| step >= steps && !may_end) {
            may_end = check_in_again(&mut taping.pool, now, id);
        }
        taping.drain()?;
    }
    taping.finish()
}

/// Writes a trace of a new pool to which nothing has happened.
///
/// # Errors
///
/// Those of the sink.
///
/// # Panics
///
/// With options that no pool can work with.
pub fn beginning<W: io::Write>(options: &PoolOptions, sink: W) -> io::Result<W> {
    let nobody = &mut |_: Action<Tagged>| {};
    let pool = PoolState::new(Instant::ORIGIN, options.clone(), nobody).expect("usable options");
    Taping::begin(pool, JournalOptions::default(), sink).finish()
}

fn returned_by(input: &Input<Simulated>) -> Option<ConnId> {
    if let Input::CheckedIn { id, .. } = input { Some(*id) } else { None }
}

/// Whether it was refused: a connection that somebody else has been handed already would be taken
/// from him.
fn check_in_again(pool: &mut Recorder<Simulated>, now: Instant, id: ConnId) -> bool {
    let same = pool.connections().find(|connection| connection.id == id);
    let is_used = same.is_some_and(|same| matches!(same.state, ConnectionState::InUse { .. }));
    let again = returned(id, Health::Healthy);
    !is_used && pool.handle(now, again, &mut |_: Action<Simulated>| {}).is_err()
}

/// Writes a trace of the random run of a seed, with about so many inputs; some of them are refused.
///
/// # Errors
///
/// Those of the sink.
pub fn random<W: io::Write>(
    seed: u64,
    steps: usize,
    journal: JournalOptions,
    sink: W,
) -> io::Result<W> {
    let mut run = RandomRun::new(seed, steps);
    let nobody = &mut |_: Action<Tagged>| {};
    let pool = PoolState::new(Instant::ORIGIN, run.options.clone(), nobody);
    let mut taping = Taping::begin(pool.expect("usable options"), journal, sink);
    while let Some((now, input)) = run.next_tagged(&taping.pool) {
        // Refused on purpose, now and then.
        let _ = taping.pool.handle(now, input, &mut |_: Action<Tagged>| {});
        taping.drain()?;
    }
    taping.finish()
}

/// A pool with its journal and who writes it, all in one thread.
pub(crate) struct Taping<S: PoolTypes, W> {
    pool: Recorder<S>,
    writer: TraceWriter<W>,
}

impl<S: PoolTypes, W: io::Write> Taping<S, W>
where
    S::Cause: TraceCause,
{
    pub(crate) fn begin(pool: PoolState<S>, journal: JournalOptions, sink: W) -> Self {
        let program = concat!("cenote ", env!("CARGO_PKG_VERSION"));
        let info = TraceInfo::new("db.example.com:27017").with_program(program);
        let pool = Recorder::new(pool).with_journal(journal);
        Self { pool, writer: TraceWriter::new(sink, info) }
    }

    /// Feeds the pool, and writes what there is to be written.
    pub(crate) fn feed(&mut self, now: Instant, input: Input<S>) -> io::Result<()> {
        // What it does is for somebody else to look at.
        let fed = self.pool.handle(now, input, &mut |_: Action<S>| {});
        fed.map_err(|misuse| io::Error::other(misuse.reason.to_string()))?;
        self.drain()
    }

    fn drain(&mut self) -> io::Result<()> {
        while let Some(chunk) = self.pool.take_chunk() {
            self.writer.write(&chunk)?;
            self.pool.give_back(chunk);
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.pool.flush();
        self.drain()?;
        self.writer.finish()
    }
}
