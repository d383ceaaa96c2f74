//! What one server selection logs: its start and its end, and between them once that it waits.

use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use cenote_core::client::{SelectionError, Selector};
use cenote_core::log::{LogRecord, Selection};
use cenote_core::topology::TopologyDescription;

use super::{ClientInner, Server};
use crate::connection::operation::OperationOptions;
use crate::log::selection as log;
use crate::runtime::Network;

/// What a server is selected for, as the log names it, unless the [options](OperationOptions::with_name) of the call do.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SelectedFor<'a> {
    /// A command, whose name it is.
    Command(&'a RawDocument),
    /// A method of the client by this name, which does not know the commands that follow.
    Method(&'static str),
}

/// Dropped before its [end](Self::end), it says that the caller has given up.
pub(super) struct SelectionLog<'a, R: Network> {
    client: &'a ClientInner<R>,
    selector: &'a Selector,
    purpose: SelectedFor<'a>,
    options: &'a OperationOptions,
    /// The start was logged, and the end was not.
    is_open: bool,
    waits: bool,
}

impl<'a, R: Network> SelectionLog<'a, R> {
    #[inline]
    pub(super) fn start(
        client: &'a ClientInner<R>,
        selector: &'a Selector,
        purpose: SelectedFor<'a>,
        options: &'a OperationOptions,
    ) -> Self {
        // In a forked child a thread of the parent may hold the lock for ever.
        let is_open = log::is_wanted() && !client.is_inherited();
        let log = Self { client, selector, purpose, options, is_open, waits: false };
        if is_open {
            log.record(|selection, topology| selection.started(topology));
        }
        log
    }

    /// A server is waited for, for this time at most.
    pub(super) fn wait(&mut self, remaining: impl FnOnce() -> Option<Duration>) {
        if !self.waits && log::is_waiting_wanted() {
            self.record(|selection, topology| selection.waiting(topology, remaining()));
        }
        self.waits = true;
    }

    #[inline]
    pub(super) fn end(mut self, outcome: &Result<Arc<Server<R>>, SelectionError>) {
        if !self.is_open {
            return;
        }
        self.is_open = false;
        match outcome {
            Ok(server) => {
                self.record(|selection, topology| selection.succeeded(topology, server.address()));
            }
            Err(error) => self.fail(&error.reason()),
        }
    }

    fn fail(&self, reason: &str) {
        let settings = self.client.driver.teller.log_settings();
        self.record(|selection, topology| selection.failed(topology, reason, settings));
    }

    #[cold]
    fn record<'r>(
        &'r self,
        make: impl FnOnce(Selection<'r>, &TopologyDescription) -> LogRecord<'r>,
    ) {
        let topology = self.client.topology();
        log::record(|| make(self.selection(), &topology));
    }

    fn selection(&self) -> Selection<'_> {
        let operation = self.options.name.unwrap_or_else(|| self.purpose.name());
        let topology_id = self.client.driver.teller.topology_id();
        let selection = Selection::new(self.selector, operation).with_topology_id(topology_id);
        match self.options.id {
            Some(id) => selection.with_operation_id(id),
            None => selection,
        }
    }
}

impl<R: Network> Drop for SelectionLog<'_, R> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            self.fail("its caller gave up");
        }
    }
}

impl<'a> SelectedFor<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Command(command) => {
                let first = command.iter().next().and_then(Result::ok);
                first.map(|(name, _)| name.as_str()).unwrap_or_default()
            }
            Self::Method(name) => name,
        }
    }
}
