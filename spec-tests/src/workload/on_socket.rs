//! Connections with sockets, which the pool looks at before it hands them out, or does not.

use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_shell::connection::{
    Connector, HandshakeReporter, MongoConnector, OpenedConnection, Target,
};
use cenote_shell::runtime::Network;

/// A [`MongoConnector`] whose idle connections are looked at if `LOOKS`.
#[derive(Debug)]
pub struct OnSocket<R, const LOOKS: bool>(pub MongoConnector<R>);

impl<R: Network, const LOOKS: bool> Connector<R> for OnSocket<R, LOOKS> {
    type Connection = R::Connection;
    type Error = ConnectionError;

    const LOOKS_AT_IDLE: bool = LOOKS;

    async fn connect(
        &self,
        target: Target<R>,
        reporter: HandshakeReporter,
    ) -> Result<R::Connection, ConnectionError> {
        self.0.connect(target, reporter).await
    }

    fn connect_timeout(&self) -> Option<Duration> {
        self.0.connect_timeout()
    }

    fn fault(&self, connection: &R::Connection) -> Option<ConnectionError> {
        self.0.fault(connection)
    }

    fn idle_fault(&self, connection: &mut R::Connection) -> Option<ConnectionError> {
        connection.idle_fault()
    }
}
