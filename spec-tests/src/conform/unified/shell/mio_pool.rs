//! The pool of `cenote-mio`.

use std::time::Instant;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{Purpose, ServiceId};
use cenote_core::uri::ConnectionString;
use cenote_mio::{Builder, MongoConnector, PooledConnection};

use super::{Connection, OnEvent, OnFailure, PATIENCE, Pool, Trouble, address};

pub(super) struct MioPool(cenote_mio::Pool);

impl MioPool {
    pub(super) fn open(
        uri: &ConnectionString,
        on_event: OnEvent,
        on_failure: OnFailure,
    ) -> Result<Self, String> {
        let connector = MongoConnector::new(uri).map_err(|error| error.to_string())?;
        let builder = Builder::new(address(uri)?, connector)
            .options(uri.pool.clone())
            .on_event(move |told| on_event(&told.event, &told.address))
            .on_failure(move |failure| on_failure(failure));
        builder.build().map(Self).map_err(|error| error.to_string())
    }
}

impl Pool for MioPool {
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError> {
        Ok(Box::new(self.0.check_out_for(purpose, deadline)?))
    }

    fn ready(&self) {
        self.0.ready();
    }

    fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.0.clear(cause, interrupt);
    }

    fn append_metadata(&self, driver: DriverInfo) {
        self.0.append_metadata(driver);
    }

    fn close(&self) -> Result<(), String> {
        self.0.close_before(Instant::now() + PATIENCE).map_err(|left| left.to_string())
    }

    fn catch_up(&self) {
        self.0.while_quiet(|| ());
    }

    fn available(&self) -> u32 {
        self.0.snapshot().available
    }
}

impl Connection for PooledConnection<MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Option<Instant>,
    ) -> Result<RawDocumentBuf, Trouble> {
        let reply = match deadline {
            Some(deadline) => self.command_before(database, command, deadline),
            None => self.command(database, command),
        };
        reply.map_err(Trouble::from)
    }

    fn service_id(&self) -> Option<ServiceId> {
        self.service_id()
    }
}
