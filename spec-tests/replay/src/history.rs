//! A complete trace in memory, for access in both directions and for shrinking.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::pool::{
    Action, ActionSink, ConnId, Input, Instant, Misuse, PayloadSource, PoolCheckpoint, PoolState,
    ServiceId, WaiterId,
};
use cenote_core::trace::{
    Cause, Replay, Step, TraceError, TraceHeader, TraceInfo, TraceWriter, Traced,
};

/// The initial state of a trace, and all of its inputs.
#[derive(Clone, Debug)]
pub struct History {
    /// The trace's header.
    pub header: TraceHeader,
    /// The initial state.
    pub start: PoolCheckpoint,
    /// The inputs.
    pub inputs: Vec<Entry>,
}

/// One input.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The time.
    pub at: Instant,
    /// The input.
    pub input: Input<Traced>,
    /// Whether the input was refused.
    pub refused: bool,
    /// Where in the program a check-out was called, if that is known.
    pub place: Option<Arc<str>>,
    /// The step of the client that it follows, if that is known.
    pub follows: Option<u64>,
}

impl History {
    /// Reads and verifies a trace. Also returns the error that ends it early, if there is one.
    ///
    /// # Errors
    ///
    /// If the beginning of the trace is invalid.
    pub fn read(source: impl Read) -> Result<(Self, Option<TraceError>), TraceError> {
        let mut replay = Replay::new(source)?;
        let (header, mut start) = (replay.header().clone(), replay.pool().checkpoint());
        let mut inputs = Vec::new();
        let problem = loop {
            match replay.step(&mut cenote_core::pool::WithoutEvents(&mut Discard)) {
                Ok(Some(step)) => {
                    if step.lost_before.is_some() {
                        // A history cannot span a gap in the recording: it starts again with the
                        // state after the gap, which includes this step.
                        inputs.clear();
                        start = replay.pool().checkpoint();
                        continue;
                    }
                    let Step { at, input, refused, place, follows, .. } = step;
                    inputs.push(Entry { at, input, refused, place, follows });
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        Ok((Self { header, start, inputs }, problem))
    }

    /// The pool in its initial state.
    ///
    /// # Panics
    ///
    /// Never, because the state was that of a pool.
    pub fn pool(&self) -> PoolState<Traced> {
        PoolState::restore(&self.start, &mut Restored).expect("the checkpoint of a pool")
    }

    /// The number of inputs that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.inputs.iter().map(|entry| u64::from(entry.refused)).sum()
    }

    /// Writes the history as a trace, with a fingerprint after every input, up to the input at
    /// which the machine panics.
    ///
    /// # Errors
    ///
    /// I/O errors of the sink.
    pub fn write<W: io::Write>(&self, sink: W) -> io::Result<W> {
        let mut info = TraceInfo::new(self.header.address.as_deref().unwrap_or_default());
        info = info.with_program(concat!("cenote ", env!("CARGO_PKG_VERSION")));
        info = info.with_origin(self.header.origin);
        let mut writer = TraceWriter::new(sink, info);
        writer.begin(&self.start, 0)?;
        let mut pool = self.pool();
        for Entry { at, input, place, follows, .. } in &self.inputs {
            if let Some(step) = follows {
                writer.follow(*step)?;
            }
            let handled =
                AssertUnwindSafe(|| pool.handle(*at, input.clone(), &mut Discard).is_err());
            let handled = catch_unwind(handled);
            let refused = *handled.as_ref().unwrap_or(&false);
            match place {
                Some(place) => writer.input_at(place, *at, input, refused)?,
                None => writer.input(*at, input, refused)?,
            }
            if handled.is_err() {
                break;
            }
            writer.fingerprint(pool.fingerprint())?;
        }
        writer.finish()
    }
}

/// Feeds one entry to a pool.
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

/// A sink that ignores all actions.
#[derive(Clone, Copy, Debug)]
pub struct Discard;

impl ActionSink<Traced> for Discard {
    fn act(&mut self, _: Action<Traced>) {}

    fn wants_events(&self) -> bool {
        false
    }
}

/// Payloads of a state whose past is unknown.
#[derive(Clone, Copy, Debug)]
pub struct Restored;

impl PayloadSource<Traced> for Restored {
    fn conn(&mut self, _: ConnId) {}

    fn waiter(&mut self, id: WaiterId) -> WaiterId {
        id
    }

    fn cause(&mut self, _: Option<ServiceId>) -> Cause {
        Cause { text: Some("before the trace begins".into()), ..Cause::default() }
    }

    fn timeout(&mut self, _: ConnId) -> Cause {
        self.cause(None)
    }
}
