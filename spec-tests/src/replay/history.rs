//! A whole trace in memory: for whoever goes back and forth in it, or takes it apart.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::pool::{
    Action, ActionSink, ConnId, Input, Instant, Misuse, PayloadSource, PoolCheckpoint, PoolState,
    ServiceId, WaiterId,
};
use cenote_core::trace::{Cause, Replay, TraceError, TraceHeader, TraceInfo, TraceWriter, Traced};

/// The state in which a trace begins, and all of its inputs.
#[derive(Clone, Debug)]
pub struct History {
    /// What it says of itself.
    pub header: TraceHeader,
    /// Where it begins.
    pub start: PoolCheckpoint,
    /// What happened.
    pub inputs: Vec<Entry>,
}

/// One input.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// What.
    pub input: Input<Traced>,
    /// Whether it was refused.
    pub refused: bool,
}

impl History {
    /// Reads and verifies a trace. Also gives the problem that ends it early, if there is one.
    ///
    /// # Errors
    ///
    /// When it cannot even be begun.
    pub fn read(source: impl Read) -> Result<(Self, Option<TraceError>), TraceError> {
        let mut replay = Replay::new(source)?;
        let (header, mut start) = (replay.header().clone(), replay.pool().checkpoint());
        let mut inputs = Vec::new();
        let problem = loop {
            match replay.step(&mut cenote_core::pool::WithoutEvents(&mut Nobody)) {
                Ok(Some(step)) => {
                    if step.lost_before.is_some() {
                        // What comes before a gap cannot be put together with what comes after it.
                        // A gap has its state behind it, in which the step has been taken already.
                        inputs.clear();
                        start = replay.pool().checkpoint();
                        continue;
                    }
                    inputs.push(Entry { at: step.at, input: step.input, refused: step.refused });
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        Ok((Self { header, start, inputs }, problem))
    }

    /// The pool as it was at first.
    ///
    /// # Panics
    ///
    /// Never: the state was that of a pool.
    pub fn pool(&self) -> PoolState<Traced> {
        PoolState::restore(&self.start, &mut Restored).expect("the checkpoint of a pool")
    }

    /// Writes it as a trace, with a fingerprint after every input; up to the one at which the machine
    /// panics, if it does.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn write<W: io::Write>(&self, sink: W) -> io::Result<W> {
        let mut info = TraceInfo::new(self.header.address.as_deref().unwrap_or_default());
        info = info.with_program(concat!("cenote ", env!("CARGO_PKG_VERSION")));
        info = info.with_origin(self.header.origin);
        let mut writer = TraceWriter::new(sink, info);
        writer.begin(&self.start, 0)?;
        let mut pool = self.pool();
        for Entry { at, input, .. } in &self.inputs {
            let handled =
                AssertUnwindSafe(|| pool.handle(*at, input.clone(), &mut Nobody).is_err());
            let Ok(refused) = catch_unwind(handled) else {
                writer.input(*at, input, false)?;
                break;
            };
            writer.input(*at, input, refused)?;
            writer.fingerprint(pool.fingerprint())?;
        }
        writer.finish()
    }
}

/// Feeds one entry. `Err` when it is refused.
///
/// # Errors
///
/// As [`PoolState::handle`].
pub fn feed(
    pool: &mut PoolState<Traced>,
    entry: &Entry,
    out: &mut impl ActionSink<Traced>,
) -> Result<(), Misuse<Traced>> {
    pool.handle(entry.at, entry.input.clone(), out)
}

/// Looks at no action.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl ActionSink<Traced> for Nobody {
    fn act(&mut self, _: Action<Traced>) {}

    fn wants_events(&self) -> bool {
        false
    }
}

/// PayloadSource of a state whose past is not told.
#[derive(Clone, Copy, Debug)]
pub struct Restored;

impl PayloadSource<Traced> for Restored {
    fn conn(&mut self, _: ConnId) {}

    fn waiter(&mut self, id: WaiterId) -> WaiterId {
        id
    }

    fn cause(&mut self, _: Option<ServiceId>) -> Cause {
        Cause { text: Some("before this trace begins".into()), ..Cause::default() }
    }
}
