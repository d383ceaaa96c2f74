//! Records traces: of simulated traffic, and of any pool in one thread.

use std::io;

use cenote_core::pool::{
    Action, ActionSink, ConnId, ConnectionState, Health, Input, Instant, PoolState, PoolTypes,
};
use cenote_core::trace::{JournalOptions, Recorder, TraceCause, TraceInfo, TraceWriter};

use super::traffic::{ADDRESS, Scene, Simulated, Traffic, Watched, returned};

/// Writes a trace of simulated traffic with about `steps` inputs.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn traffic<W: io::Write>(
    scene: Scene,
    steps: u64,
    journal: JournalOptions,
    sink: W,
) -> io::Result<W> {
    let ignore = &mut |_: Action<Simulated>| {};
    let pool = PoolState::new(Instant::ORIGIN, scene.options.clone(), ignore);
    let pool = pool.expect("a scene has usable options");
    let info = info(scene.address).with_origin(scene.origin);
    let mut run = RecordedRun::begin_with(info, pool, journal, sink);
    let (checks_in_twice, cleared_by) = (scene.checks_in_twice, scene.cleared_by);
    let mut traffic = Traffic::new(scene);
    let mut step = 0;
    // The second check-in of a connection can only follow a first one, which may never come if all leaked.
    let mut may_end = !checks_in_twice;
    while step < steps || (!may_end && step < steps + TOO_LATE) {
        let Some((now, input)) = traffic.next(&run.pool) else { break };
        let returned = returned_by(&input);
        if let Input::CheckOutRequested { id, .. } = &input {
            run.pool.set_place(traffic.place(*id));
        }
        if let (Input::Clear { .. }, Some(step)) = (&input, cleared_by) {
            run.pool.follow(step);
        }
        let handled = run.pool.handle(now, input, &mut Watched(&mut traffic));
        handled.expect("simulated traffic is valid");
        step += 1;
        if let Some(id) = returned.filter(|_| step >= steps && !may_end) {
            may_end = check_in_again(&mut run.pool, now, id);
        }
        run.drain()?;
    }
    if !may_end {
        return Err(io::Error::other(
            "no connection was checked in at the end, so none could be twice",
        ));
    }
    run.finish()
}

fn info(address: &str) -> TraceInfo {
    TraceInfo::new(address).with_program(concat!("cenote ", env!("CARGO_PKG_VERSION")))
}

/// So many inputs without a check-in are too many.
const TOO_LATE: u64 = 10_000;

fn returned_by(input: &Input<Simulated>) -> Option<ConnId> {
    if let Input::CheckedIn { id, .. } = input { Some(*id) } else { None }
}

/// Checks in a connection again, and returns whether that was refused. Does nothing if the
/// connection is in use again, because that check-in would be valid.
fn check_in_again(pool: &mut Recorder<Simulated>, now: Instant, id: ConnId) -> bool {
    let same = pool.connections().find(|connection| connection.id == id);
    let is_used = same.is_some_and(|same| matches!(same.state, ConnectionState::InUse { .. }));
    let again = returned(id, Health::Healthy);
    !is_used && pool.handle(now, again, &mut |_: Action<Simulated>| {}).is_err()
}

/// A pool with its journal and the writer, all in one thread.
pub struct RecordedRun<S: PoolTypes, W> {
    pool: Recorder<S>,
    writer: TraceWriter<W>,
}

impl<S: PoolTypes, W: io::Write> RecordedRun<S, W>
where
    S::Cause: TraceCause,
{
    /// Begins a trace without a description.
    pub fn begin(pool: PoolState<S>, journal: JournalOptions, sink: W) -> Self {
        Self::begin_with(info(ADDRESS), pool, journal, sink)
    }

    /// With a description of the trace.
    pub fn begin_with(
        info: TraceInfo,
        pool: PoolState<S>,
        journal: JournalOptions,
        sink: W,
    ) -> Self {
        let pool = Recorder::new(pool).with_journal(journal);
        Self { pool, writer: TraceWriter::new(sink, info) }
    }

    /// Feeds the pool, and writes the journal. The actions are processed elsewhere.
    ///
    /// # Errors
    ///
    /// I/O errors of the sink, and an input that the pool refuses.
    pub fn feed(&mut self, now: Instant, input: Input<S>) -> io::Result<()> {
        self.feed_into(now, input, &mut |_: Action<S>| {})
    }

    /// Feeds the pool, passes its actions on, and writes the journal.
    ///
    /// # Errors
    ///
    /// As those of [`feed`](Self::feed).
    pub fn feed_into(
        &mut self,
        now: Instant,
        input: Input<S>,
        out: &mut impl ActionSink<S>,
    ) -> io::Result<()> {
        let fed = self.pool.handle(now, input, out);
        fed.map_err(|misuse| io::Error::other(misuse.reason.to_string()))?;
        self.drain()
    }

    /// Feeds the pool an input that it may refuse, and writes the journal. The actions are processed elsewhere.
    ///
    /// # Errors
    ///
    /// I/O errors of the sink.
    pub fn offer(&mut self, now: Instant, input: Input<S>) -> io::Result<()> {
        let _ = self.pool.handle(now, input, &mut |_: Action<S>| {});
        self.drain()
    }

    /// The pool.
    pub fn pool(&self) -> &PoolState<S> {
        &self.pool
    }

    fn drain(&mut self) -> io::Result<()> {
        while let Some(chunk) = self.pool.take_chunk() {
            self.writer.write(&chunk)?;
            self.pool.give_back(chunk);
        }
        Ok(())
    }

    /// Writes the rest, and gives the sink back.
    ///
    /// # Errors
    ///
    /// I/O errors of the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.pool.flush();
        self.drain()?;
        self.writer.finish()
    }
}
