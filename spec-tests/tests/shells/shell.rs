//! What a pool can be asked to do, whichever shell it is of: every call blocks.

use std::sync::{Arc, LazyLock};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::pool::{Event, Purpose, ServiceId, Snapshot};
use cenote_core::wire::{MessageBuf, MessageLimit};
use tokio::runtime::{Builder, Runtime};

/// Tells each of these stories on each shell.
macro_rules! on_both_shells {
    ($($story:ident),* $(,)?) => {
        mod on_tokio {
            $(#[test]
            fn $story() {
                super::$story(crate::shell::Shell::Tokio);
            })*
        }

        mod on_mio {
            $(#[test]
            fn $story() {
                super::$story(crate::shell::Shell::Mio);
            })*
        }
    };
}

pub(crate) use on_both_shells;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Tokio,
    Mio,
}

pub(crate) trait AnyPool: Send + Sync {
    fn check_out(&self) -> Result<Box<dyn AnyConnection>, PoolError>;
    fn ready(&self);
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    fn clear_service(&self, cause: ConnectionError, service: ServiceId);
    fn snapshot(&self) -> Snapshot;
    fn close(&self);
}

pub(crate) trait AnyConnection: Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError>;
    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError>;
    fn send(&mut self, message: &[u8]) -> Result<(), OperationError>;
    fn receive(&mut self) -> Result<MessageBuf, OperationError>;
    /// Whether its bytes can be had.
    fn raw_stream(&mut self) -> Result<(), OperationError>;
    fn description(&self) -> &ConnectionDescription;
    fn is_reusable(&self) -> bool;
    fn message_limit(&self) -> MessageLimit;
    fn next_request_id(&mut self) -> i32;
    fn id(&self) -> u64;
    fn service_id(&self) -> Option<ServiceId>;
    fn is_stale(&self) -> bool;
    fn set_purpose(&mut self, purpose: Purpose);
}

pub(crate) type Ear = Box<dyn Fn(&Event<ConnectionError>, &ServerAddress) + Send + Sync>;

impl Shell {
    /// A pool that is paused, and tells `ear` everything.
    pub(crate) fn pool(self, uri: &str, ear: Ear) -> Arc<dyn AnyPool> {
        match self {
            Self::Tokio => {
                let _inside = RUNTIME.enter();
                let builder = cenote_tokio::Pool::builder(uri).expect("a connection string");
                let builder = builder.on_event(move |told| ear(&told.event, &told.address));
                Arc::new(builder.build().expect("good options"))
            }
            Self::Mio => {
                let builder = cenote_mio::Pool::builder(uri).expect("a connection string");
                let builder = builder.on_event(move |told| ear(&told.event, &told.address));
                Arc::new(builder.build().expect("good options"))
            }
        }
    }
}

/// One for all tests: what they make on it they close on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});

/// What waits for nothing has the same name in both.
macro_rules! what_waits_for_nothing {
    (pool) => {
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
    };
    (connection) => {
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
    };
}

impl AnyPool for cenote_tokio::Pool {
    fn check_out(&self) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(RUNTIME.block_on(self.check_out())?))
    }

    fn close(&self) {
        RUNTIME.block_on(self.close());
    }

    what_waits_for_nothing!(pool);
}

impl AnyConnection for cenote_tokio::PooledConnection<cenote_tokio::MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        RUNTIME.block_on(self.command(database, command))
    }

    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        RUNTIME.block_on(self.command_unacknowledged(database, command))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        RUNTIME.block_on(self.send(message))
    }

    fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        RUNTIME.block_on(self.receive())
    }

    what_waits_for_nothing!(connection);
}

impl AnyPool for cenote_mio::Pool {
    fn check_out(&self) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(self.check_out()?))
    }

    fn close(&self) {
        self.close();
    }

    what_waits_for_nothing!(pool);
}

impl AnyConnection for cenote_mio::PooledConnection<cenote_mio::MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command(database, command)
    }

    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        self.command_unacknowledged(database, command)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        self.send(message)
    }

    fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        self.receive()
    }

    what_waits_for_nothing!(connection);
}
