//! Why a server that answers is not used: each says what to do.

use super::replica_set::MEMBERS_MAX;
use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::error::{ConnectionError, Stage};

fn refused(reason: &str) -> ConnectionError {
    ConnectionError::configuration(Stage::Hello, reason)
}

/// One of several hosts is a standalone server.
pub(super) fn standalone_among_several() -> ConnectionError {
    refused(
        "the server is a standalone server, and the connection string has several hosts: name it \
         alone, or leave it out",
    )
}

/// A server of another kind among routers.
pub(super) fn not_a_router(kind: ServerKind) -> ConnectionError {
    refused(&format!("the server is of type {kind}, and others are routers: name routers only"))
}

/// A reply that would make a topology of more servers than a replica set can have.
pub(super) fn too_many_members() -> ConnectionError {
    refused(&format!(
        "the server names members of its replica set that would make more than {MEMBERS_MAX} servers, and a \
         replica set has 50 at most: correct the host, or set directConnection=true"
    ))
}

/// A router or a standalone server in a replica set.
pub(super) fn not_a_member(kind: ServerKind, set_name: Option<&str>) -> ConnectionError {
    let set = set_name.map_or(String::new(), |name| format!(" `{name}`"));
    refused(&format!(
        "the server is of type {kind}, and no member of the replica set{set}: leave it out"
    ))
}

/// A member has another address in the configuration of the set.
// ST-12
pub(super) fn other_name(me: &ServerAddress) -> ConnectionError {
    refused(&format!("the server is {me} in the configuration of its replica set: name it so"))
}

/// A primary contradicts itself.
pub(super) fn not_its_own_member(me: &ServerAddress) -> ConnectionError {
    refused(&format!(
        "the server is {me} and the primary of its replica set, and does not list {me} as a member: correct the \
         configuration of the set"
    ))
}

/// The primary does not have it among the members.
pub(super) fn not_listed(primary: &ServerAddress) -> ConnectionError {
    refused(&format!(
        "the primary, {primary}, does not list this address as a member: name members as `rs.conf()` has them, or set \
         directConnection=true"
    ))
}
