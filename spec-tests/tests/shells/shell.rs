//! Pools of all runtimes, as these tests build them.

use std::sync::Arc;

use cenote_core::connect::{AccessToken, SaslMechanism};
use cenote_core::error::BoxError;
use cenote_core::pool::PoolOptions;
use cenote_core::uri::ConnectionString;
use cenote_shell::builder::BuildError;
use cenote_shell::connection::Lookup;
use cenote_shell::oidc::TokenRequest;
use cenote_shell::trace::Recording;
use cenote_test_runtimes::PoolSetup;
pub(crate) use cenote_test_runtimes::{
    AnyConnection, AnyPool, OnEvent as Subscriber, Shell, on_all_runtimes, on_runtime,
};

/// A pool that is paused, which reports its events to `subscriber`, and writes a trace if there is a recording.
pub(crate) fn paused_pool(
    shell: Shell,
    uri: &str,
    subscriber: Subscriber,
    recording: Option<Recording>,
) -> Arc<dyn AnyPool> {
    let setup = PoolSetup { on_event: Some(subscriber), recording, ..PoolSetup::default() };
    shell.build_pool(uri, setup).expect("good options")
}

/// A paused pool whose options are changed.
pub(crate) fn pool_with_options(
    shell: Shell,
    uri: &str,
    change: fn(PoolOptions) -> PoolOptions,
    subscriber: Subscriber,
) -> Arc<dyn AnyPool> {
    let (on_event, change) = (Some(subscriber), Some(change));
    let setup = PoolSetup { on_event, change, ..PoolSetup::default() };
    shell.build_pool(uri, setup).expect("good options")
}

/// A ready pool whose connections authenticate by a mechanism of the application's own.
pub(crate) fn pool_by(
    shell: Shell,
    uri: &str,
    mechanism: impl SaslMechanism,
) -> Result<Arc<dyn AnyPool>, BuildError> {
    let setup = PoolSetup { mechanism: Some(Arc::new(mechanism)), ..PoolSetup::default() };
    let pool = shell.build_pool(uri, setup)?;
    pool.ready();
    Ok(pool)
}

/// A ready pool that takes access tokens from a callback, and writes a trace if there is a recording.
pub(crate) fn pool_with_tokens(
    shell: Shell,
    uri: &str,
    callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
    recording: Option<Recording>,
) -> Arc<dyn AnyPool> {
    let setup = PoolSetup { tokens: Some(Box::new(callback)), recording, ..PoolSetup::default() };
    let pool = shell.build_pool(uri, setup).expect("good options");
    pool.ready();
    pool
}

/// A ready pool of the first host, whose name `resolver` resolves.
pub(crate) fn pool_with_resolver(
    shell: Shell,
    uri: &str,
    resolver: impl Fn(Lookup) + Send + Sync + 'static,
) -> Arc<dyn AnyPool> {
    let uri: ConnectionString = uri.parse().expect("a connection string");
    let setup = PoolSetup { resolver: Some(Box::new(resolver)), ..PoolSetup::default() };
    let pool = shell.build_pool(uri, setup).expect("good options");
    pool.ready();
    pool
}
