use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cenote_core::client::ClientSettings;
use cenote_shell::client::{self, BuiltClient, ClientPlan, Servers, Watching};

use super::news::News;
use super::{Client, Inner, Server, end_loop, watch};
use crate::builder::{BuildError, build_on};
use crate::event_loop::EventLoop;
use crate::pool::Pool;
use crate::thread::{self, LoopThread};

pub use cenote_shell::client::ClientBuildError;

/// Makes a [`Client`], and the thread that turns the event loop of all its pools.
pub type ClientBuilder = client::ClientBuilder<Client>;

impl BuiltClient for Client {
    type Pool = Pool;

    fn build(mut plan: ClientPlan<Pool>) -> Result<Self, ClientBuildError> {
        let settings = plan.settings()?;
        let (event_loop, poll) = thread::event_loop().map_err(BuildError::from)?;
        let news = Arc::new(News::default());
        // What was begun for others goes with the loop.
        let servers = servers(&mut plan, &settings, &news, &event_loop);
        let servers = servers.inspect_err(|_| event_loop.end())?;
        let turned = servers.clone();
        let (servers, connector) = (Servers::new(servers, settings), plan.connector);
        let inner = Inner { servers, connector, news, thread: LoopThread::default() };
        let started = inner.thread.start(event_loop, poll, move |event_loop| {
            turned.iter().for_each(|server| end_loop(server, event_loop));
        });
        // If there is no thread, all goes as it came.
        started.map_err(BuildError::from)?;
        Ok(Self { inner: Arc::new(inner) })
    }
}

fn servers(
    plan: &mut ClientPlan<Pool>,
    settings: &ClientSettings,
    news: &Arc<News>,
    event_loop: &EventLoop,
) -> Result<Vec<Arc<Server>>, ClientBuildError> {
    let subscribers = plan.take_server_subscribers();
    let establish = plan.connector.monitor_options();
    let origin = Instant::now();
    let mut servers = Vec::with_capacity(settings.hosts().len());
    for address in settings.hosts() {
        let watch = Arc::new(OnceLock::new());
        let watched = Arc::clone(&watch);
        let builder = plan.pool(address)?;
        let builder = builder.on_failure(move |it| client::failed(it, watched.get()));
        let pool = Pool::new(build_on(&event_loop.share(), builder.into_plan())?);
        let watching = if settings.is_watched {
            let started = watch::start(
                (plan.connector.clone(), pool.clone()),
                (plan.monitoring.clone(), Arc::clone(&establish)),
                (Arc::clone(&subscribers), Arc::clone(news)),
                (event_loop.share(), origin),
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
    Ok(servers)
}
