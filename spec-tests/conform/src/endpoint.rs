//! The mock server of `cenote-endpoint` for each scenario.

use std::error::Error;

use cenote_core::uri::ConnectionString;
use cenote_endpoint::{
    Certificates, Endpoint, ListenOptions, LoadBalanced, Settings, Topology, User,
};

use crate::error::OperationError;
use crate::scenario::Scenario;
use crate::server::{Server, Servers};

/// Starts a mock server for each scenario: on a free port of the loopback interface, with TLS and X.509
/// authentication, behind a load balancer if the scenario wants one.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointServers;

impl Servers for EndpointServers {
    fn start(&self, scenario: &Scenario) -> Result<Box<dyn Server>, OperationError> {
        match EndpointServer::start(scenario) {
            Ok(server) => Ok(Box::new(server)),
            Err(error) => Err(OperationError::Failed(format!("the endpoint: {error}"))),
        }
    }
}

struct EndpointServer {
    endpoint: Endpoint,
    uri: ConnectionString,
}

impl EndpointServer {
    fn start(scenario: &Scenario) -> Result<Self, Box<dyn Error>> {
        // By certificate: SCRAM is slow on purpose, which is not what scenarios are about.
        let users = vec![User::x509(Certificates::CLIENT_SUBJECT)];
        let topology = if scenario.is_load_balanced() {
            Topology::LoadBalanced(LoadBalanced { services: Scenario::SERVICES })
        } else {
            Topology::Standalone
        };
        let settings = Settings { auth: true, users, topology, ..Settings::default() };
        let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;
        if let Some(command) = scenario.fail_point_command()? {
            endpoint.with(|server, _now| server.set_fail_point(&command))?;
        }
        let uri = ConnectionString::parse(&endpoint.uri())?;
        Ok(Self { endpoint, uri })
    }
}

impl Server for EndpointServer {
    fn uri(&self) -> &ConnectionString {
        &self.uri
    }

    fn open_connections(&self) -> Option<u64> {
        Some(self.endpoint.with(|server, _now| server.statistics()).open)
    }
}
