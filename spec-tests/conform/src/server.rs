//! Servers for pools with real sockets.

use cenote_core::uri::ConnectionString;

use crate::error::OperationError;
use crate::scenario::Scenario;

/// Starts a server for each scenario.
///
/// A server has to support the fail point `failCommand` with `blockConnection`, `closeConnection`,
/// `errorCode` and `appName`, as MongoDB does.
pub trait Servers: Sync {
    /// Starts a server with the scenario's [fail point](Scenario::fail_point_command), or sets it on a
    /// running one.
    ///
    /// # Errors
    ///
    /// [`OperationError::Unsupported`] if the scenario is not for this server: it is for
    /// [another version](Scenario::is_for), or for a
    /// [load balancer](Scenario::is_load_balanced).
    fn start(&self, scenario: &Scenario) -> Result<Box<dyn Server>, OperationError>;
}

/// A server for one scenario. Dropping it stops it, or removes its fail point.
pub trait Server {
    /// How to connect to it: one host, TLS options and credentials, but no options of the pool.
    fn uri(&self) -> &ConnectionString;

    /// How many connections it has, if that is known without opening one. Once the pool is closed,
    /// there must be none.
    fn open_connections(&self) -> Option<u64> {
        None
    }
}
