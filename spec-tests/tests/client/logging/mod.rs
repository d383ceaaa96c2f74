//! What clients on all runtimes log, through `tracing`.

mod messages;
mod selection;
mod topology;

use crate::shells::{AnyClient, Shell, Subscribers, client};

/// A client without subscribers.
fn unobserved(shell: Shell, uri: &str) -> Box<dyn AnyClient> {
    client(shell, uri, None, Subscribers::default())
}
