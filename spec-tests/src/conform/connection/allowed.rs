//! What an operation may expect. What could never come to pass is refused: a file that expects it would
//! fail for ever, and not say why.

use serde_json::{Map, Value};

use super::operation::{Failure, Operation, ServerChoice};
use super::value;
use crate::event_json::TYPES;
use cenote_conform::document::nested::wrong_at;

/// What a client knows of a connection.
const KNOWN: [&str; 14] = [
    "kind",
    "helloOk",
    "minWireVersion",
    "maxWireVersion",
    "maxBsonObjectSize",
    "maxMessageSizeBytes",
    "maxWriteBatchSize",
    "setName",
    "logicalSessionTimeoutMinutes",
    "connectionId",
    "serviceId",
    "knowsTopologyVersion",
    "compressor",
    "mechanism",
];

/// What a server may be seen as.
const KINDS: [&str; 6] =
    ["Unknown", "Standalone", "Mongos", "RSPrimary", "RSSecondary", "LoadBalancer"];

impl Operation {
    /// Whether it has to come to its end before some time is over.
    pub(super) fn is_timed(&self) -> bool {
        let has_limit = |fails: &Option<Failure>| {
            fails.as_ref().is_some_and(|fails| fails.sooner_than_ms.is_some())
        };
        match self {
            Self::Connect(connect) => connect.faster_than.is_some() || has_limit(&connect.fails),
            Self::ClientConnect(connect) => has_limit(&connect.fails),
            Self::Command(command)
            | Self::Unacknowledged(command)
            | Self::ClientCommand(command) => has_limit(&command.fails),
            Self::Send(send) => has_limit(&send.fails),
            Self::Receive(receive) => has_limit(&receive.fails),
            Self::IsReusable(_)
            | Self::CheckIn
            | Self::AppendMetadata(_)
            | Self::Monitor
            | Self::Watch
            | Self::IsSeen(_)
            | Self::HasTold(_)
            | Self::WaitMs(_)
            | Self::IsHeard(_) => false,
        }
    }

    /// Of so many `servers`, and behind so many operations.
    ///
    /// # Errors
    ///
    /// What can never come to pass, and where in the operation.
    pub(super) fn check(&self, servers: usize, before: &[Self]) -> Result<(), String> {
        let is_there = |place: &str, server: usize| {
            let what = || format!("there is no server {server}; the first is 1");
            let is_there = (1..=servers).contains(&server);
            is_there.then_some(()).ok_or_else(|| wrong_at(place, what()))
        };
        let expected = |place: &str, gives: &Option<Value>, fails: &Option<Failure>| {
            if gives.is_some() && fails.is_some() {
                return Err(wrong_at(place, "it cannot give anything and fail, too"));
            }
            let place = format!("{place}/gives");
            gives.as_ref().map_or(Ok(()), value::check).map_err(|what| wrong_at(&place, what))
        };
        let body = |place: &str, name: &Option<String>, body: &Map<String, Value>| {
            let written = value::command(name.as_deref(), body).map(drop);
            written.map_err(|what| wrong_at(&format!("{place}/body"), what))
        };
        let known = |place: &str, gives: &Option<Value>| {
            let gives = gives.as_ref().and_then(Value::as_object);
            let is_unknown = |key: &&String| !KNOWN.contains(&key.as_str());
            let Some(key) = gives.and_then(|gives| gives.keys().find(is_unknown)) else {
                return Ok(());
            };
            let what = format!("unknown key, known are {}", KNOWN.join(", "));
            Err(wrong_at(&format!("{place}/gives/{key}"), what))
        };
        match self {
            Self::Connect(connect) => {
                known("connect", &connect.gives)?;
                if let Some(number) = connect.faster_than {
                    if !matches!(before.get(number), Some(Self::Connect(_))) {
                        let what = format!("operation {number} is no connect further up");
                        return Err(wrong_at("connect/fasterThan", what));
                    }
                }
                expected("connect", &connect.gives, &connect.fails)
            }
            Self::ClientConnect(connect) => {
                known("clientConnect", &connect.gives)?;
                if let Some(ServerChoice::Server(server)) = connect.to {
                    is_there("clientConnect/to/server", server)?;
                }
                expected("clientConnect", &connect.gives, &connect.fails)
            }
            Self::IsSeen(seen) => {
                is_there("isSeen/server", seen.server)?;
                if !KINDS.contains(&seen.kind.as_str()) {
                    let what = format!("unknown kind, known are {}", KINDS.join(", "));
                    return Err(wrong_at("isSeen/kind", what));
                }
                Ok(())
            }
            Self::HasTold(told) => {
                is_there("hasTold/server", told.server)?;
                if !TYPES.contains(&told.r#type.as_str()) {
                    let what = format!("unknown event, known are {}", TYPES.join(", "));
                    return Err(wrong_at("hasTold/type", what));
                }
                let with = Value::Object(told.with.clone());
                value::check(&with).map_err(|what| wrong_at("hasTold/with", what))
            }
            Self::Command(command) => {
                body("command", &command.name, &command.body)?;
                expected("command", &command.gives, &command.fails)
            }
            Self::ClientCommand(command) => {
                if command.deadline_ms.is_some() {
                    return Err(wrong_at("clientCommand", "it has the client's own time"));
                }
                body("clientCommand", &command.name, &command.body)?;
                expected("clientCommand", &command.gives, &command.fails)
            }
            Self::Unacknowledged(command) => {
                if command.gives.is_some() || command.deadline_ms.is_some() {
                    return Err(wrong_at("unacknowledged", "it awaits nothing"));
                }
                body("unacknowledged", &command.name, &command.body)
            }
            Self::Send(send) => body("send", &send.name, &send.body),
            Self::Receive(receive) => expected("receive", &receive.gives, &receive.fails),
            Self::AppendMetadata(driver) => {
                if driver.is_new.is_some() == driver.is_refused.is_some() {
                    return Err(wrong_at("appendMetadata", "it is new or not, or refused"));
                }
                Ok(())
            }
            Self::IsReusable(_)
            | Self::CheckIn
            | Self::Monitor
            | Self::Watch
            | Self::WaitMs(_)
            | Self::IsHeard(_) => Ok(()),
        }
    }
}
