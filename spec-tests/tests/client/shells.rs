//! What a client can be asked to do, whichever shell it is of: every call blocks.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector, ServerEvent, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::pool::{Event, PoolOptions, Purpose};
use tokio::runtime::{Builder, Runtime};

/// Tells each of these stories on each shell.
macro_rules! on_both_shells {
    ($($story:ident),* $(,)?) => {
        mod on_tokio {
            $(#[test]
            fn $story() {
                super::$story(crate::shells::Shell::Tokio);
            })*
        }

        mod on_mio {
            $(#[test]
            fn $story() {
                super::$story(crate::shells::Shell::Mio);
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

/// The subscribers to events of pools and servers.
pub(crate) struct Ears {
    pub(crate) pools: PoolEar,
    pub(crate) servers: Box<dyn Fn(&ServerEvent) + Send + Sync>,
}

type PoolEar = Box<dyn Fn(&Arc<ServerAddress>, &Event<ConnectionError>) + Send + Sync>;

pub(crate) trait AnyClient: Send + Sync {
    fn command(&self, database: &str, command: &RawDocument)
    -> Result<RawDocumentBuf, ClientError>;
    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError>;
    /// Of the pool of that host.
    fn check_out_of(&self, address: &ServerAddress) -> Result<Box<dyn AnyConnection>, PoolError>;
    fn options_of(&self, address: &ServerAddress) -> PoolOptions;
    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError>;
    fn servers(&self) -> Vec<ServerStatus>;
    fn append_metadata(&self, driver: DriverInfo) -> bool;
    fn close(&self);
    /// How many are still out after that time.
    fn close_within(&self, time: Duration) -> Result<(), u32>;
    fn again(&self) -> Box<dyn AnyClient>;
}

pub(crate) trait AnyConnection: Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError>;
    /// As it is shown to people.
    fn shown(&self) -> String;
}

pub(crate) trait AnyPin: Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError>;
    fn is_pinned(&self) -> bool;
    fn unpin(&mut self);
}

impl Shell {
    /// `options` of pools, if they are not in the connection string.
    pub(crate) fn client(
        self,
        uri: &str,
        options: Option<PoolOptions>,
        ears: Ears,
    ) -> Box<dyn AnyClient> {
        let Ears { pools, servers } = ears;
        match self {
            Self::Tokio => {
                let _inside = RUNTIME.enter();
                let mut builder = cenote_tokio::Client::builder(uri).expect("a connection string");
                if let Some(options) = options {
                    builder = builder.options(options);
                }
                let builder = builder.on_event(move |event| pools(&event.address, &event.event));
                Box::new(builder.on_server_event(servers).build().expect("good options"))
            }
            Self::Mio => {
                let mut builder = cenote_mio::Client::builder(uri).expect("a connection string");
                if let Some(options) = options {
                    builder = builder.options(options);
                }
                let builder = builder.on_event(move |event| pools(&event.address, &event.event));
                Box::new(builder.on_server_event(servers).build().expect("good options"))
            }
        }
    }
}

/// One for all tests: what they make on it they close on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});

impl AnyClient for cenote_tokio::Client {
    fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        RUNTIME.block_on(self.command(database, command))
    }

    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError> {
        Ok(Box::new(RUNTIME.block_on(self.check_out(selector))?))
    }

    fn check_out_of(&self, address: &ServerAddress) -> Result<Box<dyn AnyConnection>, PoolError> {
        let pool = self.pool(address).expect("of this client");
        Ok(Box::new(RUNTIME.block_on(pool.check_out())?))
    }

    fn options_of(&self, address: &ServerAddress) -> PoolOptions {
        self.pool(address).expect("of this client").options()
    }

    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError> {
        Ok(Box::new(RUNTIME.block_on(self.pin(selector, purpose))?))
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.append_metadata(driver)
    }

    fn close(&self) {
        RUNTIME.block_on(self.close());
    }

    fn close_within(&self, time: Duration) -> Result<(), u32> {
        let closed = RUNTIME.block_on(self.close_before((Instant::now() + time).into()));
        closed.map_err(|error| error.in_use)
    }

    fn again(&self) -> Box<dyn AnyClient> {
        Box::new(self.clone())
    }
}

impl AnyConnection for cenote_tokio::PooledConnection<cenote_tokio::MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        RUNTIME.block_on(self.command(database, command))
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl AnyPin for cenote_tokio::Pinned {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        RUNTIME.block_on(
            self.with_connection(async |connection| {
                Ok(connection.command(database, command).await?)
            }),
        )
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned()
    }

    fn unpin(&mut self) {
        self.unpin();
    }
}

impl AnyClient for cenote_mio::Client {
    fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.command(database, command)
    }

    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError> {
        Ok(Box::new(self.check_out(selector)?))
    }

    fn check_out_of(&self, address: &ServerAddress) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(self.pool(address).expect("of this client").check_out()?))
    }

    fn options_of(&self, address: &ServerAddress) -> PoolOptions {
        self.pool(address).expect("of this client").options()
    }

    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError> {
        Ok(Box::new(self.pin(selector, purpose)?))
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.append_metadata(driver)
    }

    fn close(&self) {
        self.close();
    }

    fn close_within(&self, time: Duration) -> Result<(), u32> {
        self.close_before(Instant::now() + time).map_err(|error| error.in_use)
    }

    fn again(&self) -> Box<dyn AnyClient> {
        Box::new(self.clone())
    }
}

impl AnyConnection for cenote_mio::PooledConnection<cenote_mio::MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command(database, command)
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl AnyPin for cenote_mio::Pinned {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.with_connection(|connection| Ok(connection.command(database, command)?))
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned()
    }

    fn unpin(&mut self) {
        self.unpin();
    }
}
