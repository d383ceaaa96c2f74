use bson::raw::{RawArrayBuf, cstr};

use super::{
    EstablishOptions,
    command::{Command, Draft},
};
use crate::uri::Credential;

/// The first command on every connection, `speculative` with it.
///
/// It is called `hello` where the server is known to know that: behind a load balancer, or when an
/// API version was declared.
// HS-03, HS-10
pub(super) fn hello(options: &EstablishOptions, speculative: Option<&Command>) -> Command {
    let user = options.credential.as_ref().and_then(asked_for);
    let compression = compression(options);
    let room = options.client.as_bytes().len()
        + speculative.map_or(0, |command| command.body().as_bytes().len())
        + user.as_ref().map_or(0, String::len)
        + compression.as_bytes().len();
    let mut draft = if options.speaks_hello() {
        Draft::new(cstr!("hello"), room)
    } else {
        // HS-06
        Draft::new(cstr!("isMaster"), room).with(cstr!("helloOk"), true)
    };
    draft = draft
        // HS-04
        .with(cstr!("backpressure"), "2")
        .with(cstr!("client"), &options.client)
        .with(cstr!("compression"), compression);
    if options.load_balanced {
        // LB-10
        draft = draft.with(cstr!("loadBalanced"), true);
    }
    if let Some(user) = user {
        draft = draft.with(cstr!("saslSupportedMechs"), user.as_str());
    }
    if let Some(speculative) = speculative {
        draft = draft.with(cstr!("speculativeAuthenticate"), speculative.body());
    }
    // HS-05
    draft.send_to("admin", options.server_api)
}

// HS-40, CM-01, CM-02
fn compression(options: &EstablishOptions) -> RawArrayBuf {
    options.compressors.iter().map(|compressor| compressor.name()).collect()
}

/// Whose mechanisms to ask for, if none was given.
// HS-41, AU-10
fn asked_for(credential: &Credential) -> Option<String> {
    match (credential.mechanism, credential.username.as_deref()) {
        (None, Some(username)) => Some(format!("{}.{username}", credential.source)),
        (None, None) | (Some(_), _) => None,
    }
}
