//! Pools and their connections.

use std::fmt::Debug;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
use cenote_core::uri::Credential;
use cenote_core::wire::{MessageBuf, MessageLimit};
use cenote_shell::connection::MongoConnector;
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::error::CloseTimeout;
use cenote_shell::pool::{Pool, PooledConnection};
use cenote_shell::trace::RecordingError;

use crate::runtime::AsyncRuntime;

/// An asynchronous pool.
pub(crate) type PoolOf<R> = Pool<R, MongoConnector<R>>;

/// What a check-out comes to.
type CheckedOut = Result<Box<dyn AnyConnection>, PoolError>;

/// Takes the outcome of a check-out.
pub type Done = Box<dyn FnOnce(CheckedOut) + Send>;
/// Cancels a check-out.
pub type Cancel = Box<dyn FnOnce() + Send>;

/// A pool of any runtime: what its methods do, those of [`Pool`] with the same name say.
#[expect(missing_docs, reason = "those of the pools themselves")]
pub trait AnyPool: Send + Sync {
    fn check_out(&self) -> CheckedOut;
    fn check_out_before(&self, deadline: Instant) -> CheckedOut;
    fn check_out_for(&self, purpose: Purpose, deadline: Option<Instant>) -> CheckedOut;
    fn warm_up(&self, connections: u32) -> Result<u32, PoolError>;
    fn set_min_round_trip(&self, time: Duration);
    fn ready(&self);
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    fn clear_service(&self, cause: ConnectionError, service: ServiceId);
    fn snapshot(&self) -> Snapshot;
    fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions>;
    fn options(&self) -> PoolOptions;
    fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError>;
    fn release_idle(&self);
    fn end_recording(&self) -> Result<(), RecordingError>;
    fn close(&self);
    /// Waits for connections that are checked out, at most this long.
    fn close_within(&self, limit: Duration) -> Result<(), CloseTimeout>;

    /// Starts to wait for a connection; returns how to cancel that, if it can be cancelled: a thread that waits
    /// cannot.
    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel>;

    /// Returns once other threads have emitted the events of everything that has happened.
    fn flush(&self);
}

/// A connection that is checked out: what its methods do, those of
/// [`PooledConnection`] and of [`Connection`](cenote_shell::connection::Connection) with the same name say.
#[expect(missing_docs, reason = "those of the connections themselves")]
pub trait AnyConnection: Debug + Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError>;
    fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, OperationError>;
    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError>;
    fn reauthenticate(&mut self) -> Result<(), OperationError>;
    fn send(&mut self, message: &[u8]) -> Result<(), OperationError>;
    fn receive(&mut self) -> Result<MessageBuf, OperationError>;
    /// Whether there is a raw stream of it.
    fn raw_stream(&mut self) -> Result<(), OperationError>;
    fn description(&self) -> &ConnectionDescription;
    fn is_reusable(&self) -> bool;
    fn message_limit(&self) -> MessageLimit;
    fn next_request_id(&mut self) -> i32;
    fn id(&self) -> u64;
    fn service_id(&self) -> Option<ServiceId>;
    fn is_stale(&self) -> bool;
    fn set_purpose(&mut self, purpose: Purpose);
    fn mark_errored(&mut self, error: ConnectionError);
}

/// A pool whose calls `$wait` makes block, with what is different on each runtime.
macro_rules! any_pool {
    ([$($runtime:tt)*] $pool:ty, $wait:path, $($own:item)*) => {
        impl<$($runtime)*> AnyPool for $pool {
            fn check_out(&self) -> CheckedOut {
                Ok(Box::new($wait(self.check_out())?))
            }

            fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
                $wait(self.warm_up(connections))
            }

            fn set_min_round_trip(&self, time: Duration) {
                self.set_min_round_trip(time);
            }

            fn ready(&self) {
                self.ready();
            }

            fn clear(&self, cause: ConnectionError, interrupt: bool) {
                self.clear(cause, interrupt);
            }

            fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
                self.clear_service(cause, service);
            }

            fn snapshot(&self) -> Snapshot {
                self.snapshot()
            }

            fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
                self.set_options(options)
            }

            fn options(&self) -> PoolOptions {
                self.options()
            }

            fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
                self.replace_credential(credential)
            }

            fn release_idle(&self) {
                self.release_idle();
            }

            fn end_recording(&self) -> Result<(), RecordingError> {
                $wait(self.end_recording())
            }

            fn close(&self) {
                $wait(self.close());
            }

            $($own)*
        }
    };
}

/// A connection whose calls `$wait` makes block.
macro_rules! any_connection {
    ([$($runtime:tt)*] $connection:ty, $wait:path) => {
        impl<$($runtime)*> AnyConnection for $connection {
            fn command(
                &mut self,
                database: &str,
                command: &RawDocument,
            ) -> Result<RawDocumentBuf, OperationError> {
                $wait(self.command(database, command))
            }

            fn command_with(
                &mut self,
                database: &str,
                command: &RawDocument,
                options: OperationOptions,
            ) -> Result<RawDocumentBuf, OperationError> {
                $wait(self.command_with(database, command, options))
            }

            fn command_unacknowledged(
                &mut self,
                database: &str,
                command: &RawDocument,
            ) -> Result<(), OperationError> {
                $wait(self.command_unacknowledged(database, command))
            }

            fn reauthenticate(&mut self) -> Result<(), OperationError> {
                $wait(self.reauthenticate())
            }

            fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
                $wait(self.send(message))
            }

            fn receive(&mut self) -> Result<MessageBuf, OperationError> {
                $wait(self.receive())
            }

            fn raw_stream(&mut self) -> Result<(), OperationError> {
                self.raw_stream().map(drop)
            }

            fn description(&self) -> &ConnectionDescription {
                (**self).description()
            }

            fn is_reusable(&self) -> bool {
                (**self).is_reusable()
            }

            fn message_limit(&self) -> MessageLimit {
                (**self).message_limit()
            }

            fn next_request_id(&mut self) -> i32 {
                (**self).next_request_id()
            }

            fn id(&self) -> u64 {
                self.id()
            }

            fn service_id(&self) -> Option<ServiceId> {
                self.service_id()
            }

            fn is_stale(&self) -> bool {
                self.is_stale()
            }

            fn set_purpose(&mut self, purpose: Purpose) {
                self.set_purpose(purpose);
            }

            fn mark_errored(&mut self, error: ConnectionError) {
                self.mark_errored(error);
            }
        }
    };
}

/// For calls that block by themselves.
pub(crate) const fn done<T>(outcome: T) -> T {
    outcome
}

any_pool! {
    [R: AsyncRuntime] PoolOf<R>, R::block_on,

    fn check_out_before(&self, deadline: Instant) -> CheckedOut {
        Ok(Box::new(R::block_on(self.check_out_before(deadline.into()))?))
    }

    fn check_out_for(&self, purpose: Purpose, deadline: Option<Instant>) -> CheckedOut {
        Ok(Box::new(R::block_on(self.check_out_for(purpose, deadline.map(Into::into)))?))
    }

    fn close_within(&self, limit: Duration) -> Result<(), CloseTimeout> {
        R::block_on(self.close_before((Instant::now() + limit).into()))
    }

    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel> {
        Some(R::start(async move {
            let outcome = Self::check_out_for(&self, purpose, deadline.map(Into::into)).await;
            done(outcome.map(|connection| Box::new(connection) as Box<_>));
        }))
    }

    fn flush(&self) {
        R::flush();
    }
}

any_pool! {
    [] cenote_mio::Pool, done,

    fn check_out_before(&self, deadline: Instant) -> CheckedOut {
        Ok(Box::new(self.check_out_before(deadline)?))
    }

    fn check_out_for(&self, purpose: Purpose, deadline: Option<Instant>) -> CheckedOut {
        Ok(Box::new(self.check_out_for(purpose, deadline)?))
    }

    fn close_within(&self, limit: Duration) -> Result<(), CloseTimeout> {
        self.close_before(Instant::now() + limit)
    }

    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel> {
        thread::spawn(move || done(AnyPool::check_out_for(&*self, purpose, deadline)));
        None
    }

    fn flush(&self) {
        self.while_quiet(|| ());
    }
}

any_connection!([R: AsyncRuntime] PooledConnection<R, MongoConnector<R>>, R::block_on);
any_connection!([] cenote_mio::PooledConnection, done);
