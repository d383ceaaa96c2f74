//! What the server knows of one connection.

use super::ConnectionId;
use super::auth::Conversation;
use super::fault::ScramFault;
use super::faults::{Seen, Suspect};
use super::output::Peer;
use super::topology::Service;
use super::user::AccessToken;

/// What the server knows of one connection, as far as commands are concerned.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: ConnectionId,
    pub(super) peer: Peer,
    pub(super) service: Service,
    /// A hello was understood.
    pub(super) said_hello: bool,
    /// Client metadata came, and may not come again.
    pub(super) introduced: bool,
    pub(super) app_name: Option<String>,
    /// A login under way.
    pub(super) conversation: Option<Conversation>,
    pub(super) conversations: i32,
    /// The users that have logged in, with their databases.
    pub(super) authenticated: Vec<(String, String)>,
    /// The access token by which the last of them did.
    pub(super) token: Option<AccessToken>,
    pub(super) seen: Seen,
    /// The next conversation goes wrong.
    pub(super) scram_fault: Option<ScramFault>,
}

impl Session {
    pub(super) fn new(id: ConnectionId, peer: Peer, service: Service) -> Self {
        Self {
            id,
            peer,
            service,
            said_hello: false,
            introduced: false,
            app_name: None,
            conversation: None,
            conversations: 0,
            authenticated: Vec::new(),
            token: None,
            seen: Seen::new(),
            scram_fault: None,
        }
    }

    pub(super) fn suspect(&self) -> Suspect<'_> {
        Suspect { connection: self.id.0, app_name: self.app_name.as_deref() }
    }
}
