//! A server that is already there, for all scenarios.

use bson::rawdoc;
use cenote_conform::{EndpointServers, OperationError, Scenario, Server};
use cenote_core::uri::ConnectionString;

use crate::formats::place::{Foreign, Place};

/// Starts an endpoint for each scenario, or uses the server that is there.
pub(super) struct Servers<'p>(pub(super) &'p Place);

impl cenote_conform::Servers for Servers<'_> {
    fn start(&self, scenario: &Scenario) -> Result<Box<dyn Server>, OperationError> {
        match self.0 {
            Place::Endpoint => EndpointServers.start(scenario),
            Place::Server(server) => Ok(Box::new(Shared::prepare(server, scenario)?)),
        }
    }
}

struct Shared {
    server: Box<Foreign>,
    has_fail_point: bool,
}

impl Shared {
    fn prepare(server: &Foreign, scenario: &Scenario) -> Result<Self, OperationError> {
        if scenario.is_load_balanced() {
            let reason = "the server is no load balancer";
            return Err(OperationError::Unsupported(reason.to_owned()));
        }
        if !scenario.is_for(server.version()) {
            let reason = format!("not for a server of version {:?}", server.version());
            return Err(OperationError::Unsupported(reason));
        }
        let command = scenario.fail_point_command();
        let command = command.map_err(|error| OperationError::Failed(error.to_string()))?;
        if let Some(command) = &command {
            server.order(command).map_err(OperationError::Failed)?;
        }
        Ok(Self { server: Box::new(server.clone()), has_fail_point: command.is_some() })
    }
}

impl Server for Shared {
    fn uri(&self) -> &ConnectionString {
        self.server.uri()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.has_fail_point {
            // If the server is gone, so is its fail point.
            let off = rawdoc! { "configureFailPoint": "failCommand", "mode": "off" };
            let _ = self.server.order(&off);
        }
    }
}
