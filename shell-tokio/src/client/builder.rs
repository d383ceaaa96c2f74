use std::sync::{Arc, OnceLock};

use cenote_shell::client::{self, BuiltClient, ClientPlan, Server, Servers, Watching};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Client, Inner, watch};
use crate::pool::Pool;

pub use cenote_shell::client::ClientBuildError;

/// Makes a [`Client`].
///
/// Its `build` panics outside of a tokio runtime, or in one without time and I/O: pools and monitors
/// live in that one.
pub type ClientBuilder = client::ClientBuilder<Client>;

impl BuiltClient for Client {
    type Pool = Pool;

    fn build(mut plan: ClientPlan<Pool>) -> Result<Self, ClientBuildError> {
        let settings = plan.settings()?;
        let subscribers = plan.take_server_subscribers();
        let establish = plan.connector.monitor_options();
        let origin = Instant::now();
        let news = Arc::new(Notify::new());
        let mut servers = Vec::new();
        for address in settings.hosts() {
            let watch = Arc::new(OnceLock::new());
            let watched = Arc::clone(&watch);
            let builder = plan.pool(address)?;
            let pool = builder.on_failure(move |it| client::failed(it, watched.get())).build()?;
            let watching = if settings.is_watched {
                let started = watch::start(
                    (plan.connector.clone(), pool.clone()),
                    (plan.monitoring.clone(), Arc::clone(&establish)),
                    (Arc::clone(&subscribers), Arc::clone(&news)),
                    origin,
                )?;
                let _ = watch.set(Arc::downgrade(&started));
                watch::begin(&started);
                Watching::Monitor(started)
            } else {
                pool.ready();
                Watching::LoadBalancer
            };
            servers.push(Arc::new(Server { pool, watching }));
        }
        let (servers, connector) = (Servers::new(servers, settings), plan.connector);
        Ok(Self { inner: Arc::new(Inner { servers, connector, news }) })
    }
}
