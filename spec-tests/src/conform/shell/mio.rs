//! `cenote-mio`, whose calls block by themselves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector, ServerStatus};
use cenote_core::connect::{AccessToken, DriverInfo};
use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
use cenote_core::topology::TopologyDescription;
use cenote_mio::{Builder, MongoConnector, PooledConnection};
use cenote_shell::connection::operation::OperationOptions;

use super::{
    Cancel, Client, ClientSetup, Connection, Done, Pin, Pool, PoolSetup, Shell, address,
    check_out_on_a_thread,
};

pub(super) struct Mio;

impl Shell for Mio {
    fn pool(&self, setup: PoolSetup) -> Result<Arc<dyn Pool>, String> {
        let PoolSetup { uri, options, log, on_event, on_failure } = setup;
        let connector = MongoConnector::new(&uri).map_err(|error| error.to_string())?;
        let mut builder = Builder::new(address(&uri)?, connector)
            .replace_options(options)
            .on_event(move |told| on_event(&told.event, &told.address));
        if let Some(on_failure) = on_failure {
            builder = builder.on_failure(move |failure| on_failure(failure));
        }
        if let Some(log) = log {
            builder = builder.log_settings(log);
        }
        Ok(Arc::new(builder.build().map_err(|error| error.to_string())?))
    }

    fn client(&self, setup: ClientSetup<'_>) -> Result<Box<dyn Client>, String> {
        let ClientSetup { uri, options, token, on_event, on_heartbeat, on_topology_event } = setup;
        let mut builder = cenote_mio::Client::builder(uri).map_err(|error| error.to_string())?;
        if let Some(options) = options {
            builder = builder.replace_options(options);
        }
        if let Some(on_event) = on_event {
            builder = builder.on_event(move |told| on_event(&told.event, &told.address));
        }
        if let Some(on_heartbeat) = on_heartbeat {
            builder = builder.on_heartbeat(move |told| on_heartbeat(told));
        }
        if let Some(on_topology_event) = on_topology_event {
            builder = builder.on_topology_event(move |told| on_topology_event(told));
        }
        if let Some(token) = token {
            builder = builder.oidc_callback(move |_| Ok(AccessToken::new(token)));
        }
        Ok(Box::new(builder.build().map_err(|error| error.to_string())?))
    }
}

impl Pool for cenote_mio::Pool {
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError> {
        Ok(Box::new(self.check_out_for(purpose, deadline)?))
    }

    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel> {
        check_out_on_a_thread(self, purpose, deadline, done);
        None
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

    fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
        self.set_options(options)
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot()
    }

    fn close_within(&self, limit: Duration) -> Result<(), String> {
        self.close_before(Instant::now() + limit).map_err(|left| left.to_string())
    }

    fn flush(&self) {
        self.while_quiet(|| ());
    }
}

impl Connection for PooledConnection<MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command_with(database, command, super::options(within))
    }

    fn service_id(&self) -> Option<ServiceId> {
        self.service_id()
    }

    fn mark_errored(&mut self, error: ConnectionError) {
        self.mark_errored(error);
    }
}

impl Client for cenote_mio::Client {
    fn check_out(
        &self,
        selector: &Selector,
        options: OperationOptions,
    ) -> Result<Box<dyn Connection>, ClientError> {
        Ok(Box::new(self.check_out_with(selector, options)?))
    }

    fn pin(
        &self,
        selector: &Selector,
        purpose: Purpose,
        options: OperationOptions,
    ) -> Result<Box<dyn Pin>, ClientError> {
        Ok(Box::new(self.pin_with(selector, purpose, options)?))
    }

    fn command(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.command_with(database, command, options)
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn topology(&self) -> Arc<TopologyDescription> {
        self.topology()
    }

    fn pool(&self, address: &ServerAddress) -> Option<Arc<dyn Pool>> {
        let pool = self.pool(address)?.clone();
        Some(Arc::new(pool))
    }

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.append_metadata(driver)
    }

    fn close_within(&self, limit: Duration) -> Result<(), String> {
        self.close_before(Instant::now() + limit).map_err(|left| left.to_string())
    }
}

impl Pin for cenote_mio::Pinned {
    fn command(
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
}
