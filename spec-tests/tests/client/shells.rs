//! Clients of all runtimes, as these tests build them.

use std::sync::Arc;

use cenote_core::connect::{AccessToken, SaslMechanism};
use cenote_core::error::BoxError;
use cenote_core::pool::PoolOptions;
use cenote_shell::client::ClientBuildError;
use cenote_shell::oidc::TokenRequest;
pub(crate) use cenote_test_runtimes::{
    AnyClient, AnyConnection, ClientSetup, NameService, Recordings, Shell, Subscribers,
    on_all_runtimes,
};

/// `options` of pools, if they are not in the connection string.
pub(crate) fn client(
    shell: Shell,
    uri: &str,
    options: Option<PoolOptions>,
    subscribers: Subscribers,
) -> Box<dyn AnyClient> {
    let setup = ClientSetup { options, subscribers, ..ClientSetup::default() };
    shell.build_client(uri, setup).expect("good options")
}

/// One that takes access tokens from a callback.
pub(crate) fn client_with_tokens(
    shell: Shell,
    uri: &str,
    callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
) -> Result<Box<dyn AnyClient>, ClientBuildError> {
    let setup = ClientSetup { tokens: Some(Box::new(callback)), ..ClientSetup::default() };
    shell.build_client(uri, setup)
}

/// One that authenticates by a mechanism of its own.
pub(crate) fn client_by(
    shell: Shell,
    uri: &str,
    mechanism: impl SaslMechanism,
) -> Result<Box<dyn AnyClient>, ClientBuildError> {
    let setup = ClientSetup { mechanism: Some(Arc::new(mechanism)), ..ClientSetup::default() };
    shell.build_client(uri, setup)
}
