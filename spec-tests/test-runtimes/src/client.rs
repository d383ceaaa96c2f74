//! Clients of one or more servers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, OverloadRetries, Selector, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{Purpose, ServiceId};
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::Credential;
use cenote_shell::client::{Client, Pinned};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::error::CloseTimeout;
use cenote_shell::trace::RecordingError;

use crate::pool::done;
use crate::runtime::AsyncRuntime;
use crate::{AnyConnection, AnyPool, Cancel};

/// A client of any runtime: what its methods do, those of [`Client`] with the same name say.
#[expect(missing_docs, reason = "those of the clients themselves")]
pub trait AnyClient: Send + Sync {
    fn command(&self, database: &str, command: &RawDocument)
    -> Result<RawDocumentBuf, ClientError>;
    fn command_with(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError>;
    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError>;
    fn check_out_with(
        &self,
        selector: &Selector,
        options: OperationOptions,
    ) -> Result<Box<dyn AnyConnection>, ClientError>;
    /// Cancels a check-out that waits; without effect once it has ended. `None` where no call can be cancelled.
    fn start_check_out(&self, selector: Selector) -> Option<Cancel>;
    fn with_connection(
        &self,
        selector: &Selector,
        operation: &mut dyn FnMut(&mut dyn AnyConnection),
    ) -> Result<(), ClientError>;
    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError>;
    fn pin_with(
        &self,
        selector: &Selector,
        purpose: Purpose,
        options: OperationOptions,
    ) -> Result<Box<dyn AnyPin>, ClientError>;
    fn pool(&self, address: &ServerAddress) -> Option<Arc<dyn AnyPool>>;
    fn servers(&self) -> Vec<ServerStatus>;
    fn topology(&self) -> Arc<TopologyDescription>;
    fn dropped_events(&self) -> u64;
    fn append_metadata(&self, driver: DriverInfo) -> bool;
    fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError>;
    fn release_idle(&self);
    fn request_checks(&self);
    fn overload_retries(&self) -> OverloadRetries;
    fn end_recording(&self) -> Result<(), RecordingError>;
    fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError>;
    fn close(&self);
    /// Waits for connections that are checked out, at most this long.
    fn close_within(&self, limit: Duration) -> Result<(), CloseTimeout>;
    /// The same client.
    fn again(&self) -> Box<dyn AnyClient>;
}

/// The server of a cursor or a transaction. Dropping it unpins it.
pub trait AnyPin: Send {
    /// Runs a command on the connection that is pinned, or on one to the same server. `begin` is told before that
    /// which service it goes to.
    ///
    /// # Errors
    ///
    /// As the command of a client.
    fn command_on(
        &mut self,
        database: &str,
        command: &RawDocument,
        begin: &mut dyn FnMut(Option<ServiceId>),
    ) -> Result<RawDocumentBuf, ClientError>;

    /// The same, whatever the service.
    ///
    /// # Errors
    ///
    /// As the command of a client.
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.command_on(database, command, &mut |_| ())
    }

    /// Whether a connection is pinned.
    fn is_pinned(&self) -> bool;

    /// Releases it.
    fn unpin(&mut self);
}

/// A client and its pins, whose calls `$wait` makes block, with what is different on each runtime.
macro_rules! any_client {
    ([$($runtime:tt)*] $client:ty, $wait:path, $($own:item)*) => {
        impl<$($runtime)*> AnyClient for $client {
            fn command(
                &self,
                database: &str,
                command: &RawDocument,
            ) -> Result<RawDocumentBuf, ClientError> {
                $wait(self.command(database, command))
            }

            fn command_with(
                &self,
                database: &str,
                command: &RawDocument,
                options: OperationOptions,
            ) -> Result<RawDocumentBuf, ClientError> {
                $wait(self.command_with(database, command, options))
            }

            fn check_out(
                &self,
                selector: &Selector,
            ) -> Result<Box<dyn AnyConnection>, ClientError> {
                Ok(Box::new($wait(self.check_out(selector))?))
            }

            fn check_out_with(
                &self,
                selector: &Selector,
                options: OperationOptions,
            ) -> Result<Box<dyn AnyConnection>, ClientError> {
                Ok(Box::new($wait(self.check_out_with(selector, options))?))
            }

            fn pin(
                &self,
                selector: &Selector,
                purpose: Purpose,
            ) -> Result<Box<dyn AnyPin>, ClientError> {
                Ok(Box::new($wait(self.pin(selector, purpose))?))
            }

            fn pin_with(
                &self,
                selector: &Selector,
                purpose: Purpose,
                options: OperationOptions,
            ) -> Result<Box<dyn AnyPin>, ClientError> {
                Ok(Box::new($wait(self.pin_with(selector, purpose, options))?))
            }

            fn pool(&self, address: &ServerAddress) -> Option<Arc<dyn AnyPool>> {
                Some(Arc::new(self.pool(address)?.clone()))
            }

            fn servers(&self) -> Vec<ServerStatus> {
                self.servers()
            }

            fn topology(&self) -> Arc<TopologyDescription> {
                self.topology()
            }

            fn dropped_events(&self) -> u64 {
                self.dropped_events()
            }

            fn append_metadata(&self, driver: DriverInfo) -> bool {
                self.append_metadata(driver)
            }

            fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
                self.replace_credential(credential)
            }

            fn release_idle(&self) {
                self.release_idle();
            }

            fn request_checks(&self) {
                self.request_checks();
            }

            fn overload_retries(&self) -> OverloadRetries {
                self.overload_retries()
            }

            fn end_recording(&self) -> Result<(), RecordingError> {
                $wait(self.end_recording())
            }

            fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError> {
                self.dump_traces(folder)
            }

            fn close(&self) {
                $wait(self.close());
            }

            fn again(&self) -> Box<dyn AnyClient> {
                Box::new(self.clone())
            }

            $($own)*
        }
    };
}

any_client! {
    [R: AsyncRuntime] Client<R>, R::block_on,

    fn start_check_out(&self, selector: Selector) -> Option<Cancel> {
        let client = self.clone();
        Some(R::start(async move { drop(client.check_out(&selector).await) }))
    }

    fn with_connection(
        &self,
        selector: &Selector,
        operation: &mut dyn FnMut(&mut dyn AnyConnection),
    ) -> Result<(), ClientError> {
        R::block_on(self.with_connection(selector, async |it| {
            operation(it);
            Ok(())
        }))
    }

    fn close_within(&self, limit: Duration) -> Result<(), CloseTimeout> {
        R::block_on(self.close_before((Instant::now() + limit).into()))
    }
}

any_client! {
    [] cenote_mio::Client, done,

    fn start_check_out(&self, _: Selector) -> Option<Cancel> {
        None
    }

    fn with_connection(
        &self,
        selector: &Selector,
        operation: &mut dyn FnMut(&mut dyn AnyConnection),
    ) -> Result<(), ClientError> {
        self.with_connection(selector, |it| {
            operation(it);
            Ok(())
        })
    }

    fn close_within(&self, limit: Duration) -> Result<(), CloseTimeout> {
        self.close_before(Instant::now() + limit)
    }
}

impl<R: AsyncRuntime> AnyPin for Pinned<R> {
    fn command_on(
        &mut self,
        database: &str,
        command: &RawDocument,
        begin: &mut dyn FnMut(Option<ServiceId>),
    ) -> Result<RawDocumentBuf, ClientError> {
        R::block_on(self.with_connection(async |connection| {
            begin(connection.service_id());
            Ok(connection.command(database, command).await?)
        }))
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned()
    }

    fn unpin(&mut self) {
        self.unpin();
    }
}

impl AnyPin for cenote_mio::Pinned {
    fn command_on(
        &mut self,
        database: &str,
        command: &RawDocument,
        begin: &mut dyn FnMut(Option<ServiceId>),
    ) -> Result<RawDocumentBuf, ClientError> {
        self.with_connection(|connection| {
            begin(connection.service_id());
            Ok(connection.command(database, command)?)
        })
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned()
    }

    fn unpin(&mut self) {
        self.unpin();
    }
}
