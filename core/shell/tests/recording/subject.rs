//! A pool to be recorded, on either shell. Each call blocks; on tokio in virtual time.

use std::path::Path;

use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::{PoolOptions, Snapshot};
use cenote_core::trace::Disclosure;
use cenote_tokio::{Recording, RecordingError};
use tokio::runtime::{self, Runtime};

/// How a pool is to be built. By default nothing is recorded.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    pub(crate) options: PoolOptions,
    pub(crate) record: Option<Recording>,
    pub(crate) flight_recorder: Option<usize>,
    pub(crate) folder: Option<&'a Path>,
    pub(crate) signal: Option<i32>,
    pub(crate) disclosure: Option<(Disclosure, Disclosure)>,
}

/// A pool whose connections are numbers, opened at once.
pub(crate) trait Subject: Sized {
    const PROGRAM: &'static str;
    type Held;
    fn build(setup: Setup<'_>) -> Result<Self, RecordingError>;
    fn ready(&self);
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    fn set_options(&self, options: PoolOptions);
    fn check_out(&self) -> Result<Self::Held, PoolError>;
    fn try_check_out(&self) -> Result<Option<Self::Held>, PoolError>;
    fn mark_errored(held: &mut Self::Held, error: ConnectionError);
    fn snapshot(&self) -> Snapshot;
    fn close(&self);
    fn dump_trace(&self, path: &Path) -> Result<(), RecordingError>;
    fn write_trace(&self) -> Result<Vec<u8>, RecordingError>;
    fn end_recording(&self) -> Result<(), RecordingError>;
}

const ADDRESS: &str = "db.example.com";

pub(crate) struct Numbers;

pub(crate) struct OnTokio {
    // Before the runtime that it lives in.
    pool: cenote_tokio::Pool<Numbers>,
    runtime: Runtime,
}

pub(crate) struct OnMio(cenote_mio::Pool<Numbers>);

pub(crate) fn failure() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "reset by the test")
}

pub(crate) fn at_most(connections: u32) -> PoolOptions {
    PoolOptions::default().with_max_pool_size(connections)
}

impl cenote_tokio::Connector<cenote_tokio::Tokio> for Numbers {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: cenote_tokio::Target,
        _: cenote_tokio::HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

impl cenote_mio::Connector<cenote_mio::EventLoop> for Numbers {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: cenote_mio::Target,
        _: cenote_mio::HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

/// The builders have the same methods, and are two types.
macro_rules! builder {
    ($shell:ident, $setup:expr) => {{
        let Setup { options, record, flight_recorder, folder, signal, disclosure } = $setup;
        let address = ADDRESS.parse().expect("an address");
        let mut builder = $shell::Builder::new(address, Numbers).replace_options(options);
        if let Some(recording) = record {
            builder = builder.record(recording);
        }
        if let Some(bytes) = flight_recorder {
            builder = builder.flight_recorder(bytes);
        }
        if let Some(folder) = folder {
            builder = builder.dump_traces_into(folder);
        }
        if let Some(signal) = signal {
            builder = builder.dump_on_signal(signal);
        }
        if let Some((texts, addresses)) = disclosure {
            builder = builder.trace_disclosure(texts, addresses);
        }
        match builder.build() {
            Ok(pool) => Ok(pool),
            Err($shell::BuildError::Recording(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }};
}

impl Subject for OnTokio {
    const PROGRAM: &'static str = "cenote-tokio";
    type Held = cenote_tokio::PooledConnection<Numbers>;

    fn build(setup: Setup<'_>) -> Result<Self, RecordingError> {
        let runtime =
            runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let pool = runtime.block_on(async { builder!(cenote_tokio, setup) })?;
        Ok(Self { pool, runtime })
    }

    fn ready(&self) {
        self.pool.ready();
    }

    fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.pool.clear(cause, interrupt);
    }

    fn set_options(&self, options: PoolOptions) {
        self.pool.set_options(options).expect("good options");
    }

    fn check_out(&self) -> Result<Self::Held, PoolError> {
        self.runtime.block_on(self.pool.check_out())
    }

    fn try_check_out(&self) -> Result<Option<Self::Held>, PoolError> {
        self.pool.try_check_out()
    }

    fn mark_errored(held: &mut Self::Held, error: ConnectionError) {
        held.mark_errored(error);
    }

    fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    fn close(&self) {
        self.runtime.block_on(self.pool.close());
    }

    fn dump_trace(&self, path: &Path) -> Result<(), RecordingError> {
        self.pool.dump_trace(path)
    }

    fn write_trace(&self) -> Result<Vec<u8>, RecordingError> {
        self.pool.write_trace(Vec::new())
    }

    fn end_recording(&self) -> Result<(), RecordingError> {
        self.runtime.block_on(self.pool.end_recording())
    }
}

impl Subject for OnMio {
    const PROGRAM: &'static str = "cenote-mio";
    type Held = cenote_mio::PooledConnection<Numbers>;

    fn build(setup: Setup<'_>) -> Result<Self, RecordingError> {
        builder!(cenote_mio, setup).map(Self)
    }

    fn ready(&self) {
        self.0.ready();
    }

    fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.0.clear(cause, interrupt);
    }

    fn set_options(&self, options: PoolOptions) {
        self.0.set_options(options).expect("good options");
    }

    fn check_out(&self) -> Result<Self::Held, PoolError> {
        self.0.check_out()
    }

    fn try_check_out(&self) -> Result<Option<Self::Held>, PoolError> {
        self.0.try_check_out()
    }

    fn mark_errored(held: &mut Self::Held, error: ConnectionError) {
        held.mark_errored(error);
    }

    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn close(&self) {
        self.0.close();
    }

    fn dump_trace(&self, path: &Path) -> Result<(), RecordingError> {
        self.0.dump_trace(path)
    }

    fn write_trace(&self) -> Result<Vec<u8>, RecordingError> {
        self.0.write_trace(Vec::new())
    }

    fn end_recording(&self) -> Result<(), RecordingError> {
        self.0.end_recording()
    }
}
