use std::sync::Arc;

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_core::client::Selector;
use cenote_core::pool::PoolOptions;
use cenote_core::uri::ConnectionString;
use cenote_endpoint::Endpoint;
use cenote_tokio::Pool;

use super::Trouble;
use super::arguments::{Plan, Target};
use super::operation;
use crate::command::signals::Signals;
use crate::proxy::FaultProxy;
use crate::soak;
use crate::soak::monitor::run_alone;

/// The server of a run.
pub(super) struct Server {
    pub(super) uri: String,
    /// The first host of the connection string.
    pub(super) address: ServerAddress,
    /// The mock server, unless the URI names another one.
    pub(super) endpoint: Option<Arc<Endpoint>>,
    /// The proxy of all connections, for faults of the network.
    pub(super) proxy: Option<Arc<FaultProxy>>,
    is_load_balanced: bool,
}

impl Server {
    pub(super) fn start(plan: &Plan) -> Result<Self, Trouble> {
        let (uri, endpoint, proxy) = match &plan.target {
            Target::Embedded { options } => {
                let endpoint = Arc::new(soak::server(None)?);
                let uri = format!("{}&{options}", endpoint.uri());
                if plan.chaos {
                    let proxy = FaultProxy::to(&endpoint.address())?;
                    (proxy.uri(&uri), Some(endpoint), Some(Arc::new(proxy)))
                } else {
                    (uri, Some(endpoint), None)
                }
            }
            Target::Elsewhere { uri } => (uri.clone(), None, None),
        };
        let read = ConnectionString::parse(&uri)?;
        let is_load_balanced = read.topology.load_balanced == Some(true);
        let address = read.hosts.into_iter().next();
        let address = address.unwrap_or_else(|| unreachable!("a connection string has a host"));
        Ok(Self { uri, address, endpoint, proxy, is_load_balanced })
    }

    pub(super) fn selector(&self) -> Selector {
        Selector::Address(self.address.clone())
    }

    /// Verifies connectivity and credentials before the run starts: monitors do not authenticate, and a
    /// client's callers wait until a server is found.
    pub(super) async fn look(&self, signals: &mut Signals) -> Result<(), Trouble> {
        if self.is_load_balanced {
            // The first check-out finds out.
            return Ok(());
        }
        let options = PoolOptions::default().with_max_pool_size(1);
        let pool = Pool::builder(&self.uri)?.replace_options(options).build()?;
        pool.ready();
        let server = self.address.to_string();
        let is_chaos = self.proxy.is_some();
        let first = if is_chaos {
            operation::documents()
        } else {
            rawdoc! { "ping": 1 }
        };
        let answer = tokio::select! {
            answer = run_alone(&pool, &first) => answer,
            () = signals.come() => return Err(Trouble::Stopped { server }),
        };
        answer.map_err(|source| Trouble::Unreachable { server, source })?;
        pool.close().await;
        Ok(())
    }
}
