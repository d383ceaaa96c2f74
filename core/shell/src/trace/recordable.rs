//! What is recorded: a pool, or the topology of a client. Each has its recorder and its writer in the core.

use std::io::{self, Write};

#[cfg(feature = "tls")]
use cenote_core::client::machine::ClientState;
use cenote_core::pool::{Instant, PoolTypes};
use cenote_core::trace::{
    Chunk, FlightRecording, JournalOptions, Recorder, TraceCause, TraceInfo, TraceWriter, topology,
};

use super::sink::Sink;

/// A machine with its recorder.
pub trait Recordable: Sized {
    /// Makes a file of what it records.
    type Writer: ChunkWriter;

    /// Keeps the last inputs in so many bytes.
    #[must_use]
    fn with_flight_recorder(self, now: Instant, bytes: usize) -> Self;

    /// Records everything from now on.
    #[must_use]
    fn with_journal(self, now: Instant, options: JournalOptions) -> Self;

    /// Whether everything is recorded.
    fn is_journaled(&self) -> bool;

    /// Whether there is a full chunk to take.
    fn has_full_chunk(&self) -> bool;

    /// Completes the present chunk.
    fn flush(&mut self);

    /// The oldest full chunk.
    fn take_chunk(&mut self) -> Option<<Self::Writer as ChunkWriter>::Chunk>;

    /// Takes the memory of a written chunk back.
    fn give_back(&mut self, chunk: <Self::Writer as ChunkWriter>::Chunk);

    /// Ends the journal, and drops what it holds.
    fn end_journal(&mut self);

    /// What the flight recorder holds, if there is one.
    fn flight_recording(&self) -> Option<<Self::Writer as ChunkWriter>::Flight>;
}

/// Makes a file of chunks.
pub trait ChunkWriter: Sized + Send + 'static {
    /// A stretch of inputs.
    type Chunk: Send;
    /// What a flight recorder holds.
    type Flight: Send;

    /// Writes nothing before the first chunk.
    fn new(sink: Sink, info: TraceInfo) -> Self;

    /// Writes a chunk.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    fn write(&mut self, chunk: &Self::Chunk) -> io::Result<()>;

    /// Writes what is buffered.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    fn flush(&mut self) -> io::Result<()>;

    /// Writes the end.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    fn finish(self) -> io::Result<()>;

    /// Writes what a flight recorder holds as a whole trace.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    fn write_flight<W: Write>(flight: &Self::Flight, info: &TraceInfo, sink: W) -> io::Result<W>;
}

impl<S: PoolTypes<Cause: TraceCause>> Recordable for Recorder<S> {
    type Writer = TraceWriter<Sink>;

    fn with_flight_recorder(self, _: Instant, bytes: usize) -> Self {
        self.with_flight_recorder(bytes)
    }

    fn with_journal(self, _: Instant, options: JournalOptions) -> Self {
        self.with_journal(options)
    }

    fn is_journaled(&self) -> bool {
        self.is_journaled()
    }

    fn has_full_chunk(&self) -> bool {
        self.has_full_chunk()
    }

    fn flush(&mut self) {
        self.flush();
    }

    fn take_chunk(&mut self) -> Option<Chunk> {
        self.take_chunk()
    }

    fn give_back(&mut self, chunk: Chunk) {
        self.give_back(chunk);
    }

    fn end_journal(&mut self) {
        self.end_journal();
    }

    fn flight_recording(&self) -> Option<FlightRecording> {
        self.flight_recording()
    }
}

/// The topology of a client.
#[cfg(feature = "tls")]
impl<W> Recordable for ClientState<W> {
    type Writer = topology::TraceWriter<Sink>;

    fn with_flight_recorder(self, now: Instant, bytes: usize) -> Self {
        self.map_recorder(|recorder| recorder.with_flight_recorder(now, bytes))
    }

    fn with_journal(self, now: Instant, options: JournalOptions) -> Self {
        self.map_recorder(|recorder| recorder.with_journal(now, options))
    }

    fn is_journaled(&self) -> bool {
        self.recorder().is_journaled()
    }

    fn has_full_chunk(&self) -> bool {
        self.recorder().has_full_chunk()
    }

    fn flush(&mut self) {
        self.recorder_mut().flush();
    }

    fn take_chunk(&mut self) -> Option<topology::Chunk> {
        self.recorder_mut().take_chunk()
    }

    /// It shares what it holds, so that there is no memory to use again.
    fn give_back(&mut self, _: topology::Chunk) {}

    fn end_journal(&mut self) {
        self.recorder_mut().end_journal();
    }

    fn flight_recording(&self) -> Option<topology::FlightRecording> {
        self.recorder().flight_recording()
    }
}

macro_rules! writer {
    ($writer:ty, $chunk:ty, $flight:ty) => {
        impl ChunkWriter for $writer {
            type Chunk = $chunk;
            type Flight = $flight;

            fn new(sink: Sink, info: TraceInfo) -> Self {
                Self::new(sink, info)
            }

            fn write(&mut self, chunk: &$chunk) -> io::Result<()> {
                self.write(chunk)
            }

            fn flush(&mut self) -> io::Result<()> {
                self.flush()
            }

            fn finish(self) -> io::Result<()> {
                self.finish().map(drop)
            }

            fn write_flight<W: Write>(
                flight: &$flight,
                info: &TraceInfo,
                sink: W,
            ) -> io::Result<W> {
                flight.write_to(info, sink)
            }
        }
    };
}

writer!(TraceWriter<Sink>, Chunk, FlightRecording);
writer!(topology::TraceWriter<Sink>, topology::Chunk, topology::FlightRecording);
