//! The shells as targets of `cenote-conform`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_conform::{
    CheckOutRequest, Counts, Log, LogMessage, OperationError, Pool, Reply, Setup,
};
use cenote_core::error::ConnectionError;
use cenote_core::pool::{PoolOptions, ServiceId};
use cenote_core::sdam;
use cenote_test_runtimes::{AnyConnection, AnyPool, Cancel, PoolSetup};

use crate::formats::CLOSE_LIMIT;
use crate::formats::logs::LogListener;
use crate::formats::target::Target;

/// A target with real sockets.
pub(super) struct OnSockets(pub(super) Target);

/// A pool of a shell.
pub(super) struct SocketPool {
    pool: Arc<dyn AnyPool>,
    log: Option<(Log, LogListener)>,
}

impl cenote_conform::Target for OnSockets {
    type Pool = SocketPool;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn open(&self, setup: Setup) -> Result<SocketPool, String> {
        let listen = |log: &Log| {
            log.require_levels_of_tracing()?;
            let port = setup.address().port().ok_or("a server without a port")?;
            Ok::<_, String>((
                log.clone(),
                LogListener::start(vec![port], vec!["connection".to_owned()])?,
            ))
        };
        let log = setup.log.as_ref().map(listen).transpose()?;
        let recorder = setup.recorder;
        let plan = PoolSetup {
            options: Some(setup.options),
            log: log.as_ref().map(|(log, _)| log.settings()),
            on_event: Some(Box::new(move |event, address| recorder.record(event, address))),
            on_failure: Some(Box::new(|failure| {
                failure.clear(sdam::verdict(&failure.context(None), failure.error()).pool);
            })),
            ..PoolSetup::default()
        };
        let pool = self.0.shell()?.build_pool(setup.uri, plan);
        Ok(SocketPool { pool: pool.map_err(|error| error.to_string())?, log })
    }
}

impl Pool for SocketPool {
    type Connection = Box<dyn AnyConnection>;
    type Waiter = Option<Cancel>;

    fn check_out(
        &mut self,
        request: CheckOutRequest,
        reply: Reply<Box<dyn AnyConnection>>,
    ) -> Option<Cancel> {
        let deadline = request.timeout.map(|timeout| Instant::now() + timeout);
        let done = Box::new(move |outcome| reply.send(outcome));
        Arc::clone(&self.pool).start_check_out(request.purpose, deadline, done)
    }

    fn check_in(&mut self, mut connection: Box<dyn AnyConnection>, error: Option<ConnectionError>) {
        if let Some(error) = error {
            connection.mark_errored(error);
        }
    }

    fn ready(&mut self) {
        self.pool.ready();
    }

    fn clear(&mut self, cause: ConnectionError, interrupt: bool) {
        self.pool.clear(cause, interrupt);
    }

    fn close(&mut self) {
        // Connections in use are not waited for.
        let _ = self.pool.close_within(Duration::ZERO);
    }

    fn counts(&mut self) -> Result<Counts, OperationError> {
        Ok(self.pool.snapshot().into())
    }

    fn cancel(&mut self, cancel: Option<Cancel>) -> Result<(), OperationError> {
        let blocks = || OperationError::Unsupported("the thread cannot be cancelled".to_owned());
        cancel.ok_or_else(blocks)?();
        Ok(())
    }

    fn service_id(
        &mut self,
        connection: &Box<dyn AnyConnection>,
    ) -> Result<Option<ServiceId>, OperationError> {
        Ok(connection.service_id())
    }

    fn clear_service(
        &mut self,
        cause: ConnectionError,
        service: ServiceId,
    ) -> Result<(), OperationError> {
        self.pool.clear_service(cause, service);
        Ok(())
    }

    fn set_options(&mut self, options: PoolOptions) -> Result<(), OperationError> {
        let set = self.pool.set_options(options);
        set.map_err(|error| OperationError::Failed(error.to_string()))
    }

    fn check_in_foreign(
        &mut self,
        connection: Box<dyn AnyConnection>,
    ) -> Result<Option<Box<dyn AnyConnection>>, OperationError> {
        drop(connection); // It knows its pool.
        Ok(None)
    }

    fn log_messages(&mut self) -> Result<Vec<LogMessage>, OperationError> {
        Ok(self.log.as_ref().map(|(log, heard)| log.filter(heard.messages())).unwrap_or_default())
    }

    fn flush(&mut self) {
        self.pool.flush();
    }

    fn finish(&mut self) -> Result<(), String> {
        self.pool.close_within(CLOSE_LIMIT).map_err(|left| left.to_string())
    }
}
