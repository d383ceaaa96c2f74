//! What the client does, and what it expects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::script::Flag;
use super::value;
use crate::conform::document::inner::wrong_at;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Operation {
    /// Checks a connection out, which from now on is the one that is used. Those before it stay out.
    Connect(Connect),
    /// Sends a command and awaits the reply.
    Command(Command),
    /// Sends a command to which no reply comes.
    Unacknowledged(Command),
    /// Sends a message, and does not wait.
    Send(Send),
    /// Awaits a message.
    Receive(Receive),
    /// Whether the connection could go back to its pool now, to be used again.
    IsReusable(bool),
    /// Gives the connection back.
    CheckIn,
    /// Tells servers of one more driver, on connections that are opened later.
    AppendMetadata(Driver),
    /// Watches the server, until all that it has to hear was heard.
    Monitor,
    /// Watches the server from now on, as a whole client does, with a pool of that client's own.
    Watch,
    /// Has that client run a command wherever there is a primary or the like.
    ClientCommand(Command),
    /// Lets time pass in which nothing may happen.
    #[serde(rename = "waitMS")]
    WaitMs(u64),
    /// Waits until the server has heard all that it has to hear on so many connections.
    IsHeard(usize),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Connect {
    /// The caller's own time for it.
    #[serde(rename = "deadlineMS")]
    pub(super) deadline_ms: Option<u64>,
    /// A part of what the client then knows of the connection.
    pub(super) gives: Option<Value>,
    pub(super) fails: Option<Failure>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Command {
    #[serde(default = "admin")]
    pub(super) database: String,
    /// Which key of the body is the first one, if there are more.
    pub(super) name: Option<String>,
    pub(super) body: Map<String, Value>,
    /// A time limit of the caller's own for it.
    #[serde(rename = "deadlineMS")]
    pub(super) deadline_ms: Option<u64>,
    /// A part of the reply.
    pub(super) gives: Option<Value>,
    pub(super) fails: Option<Failure>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Send {
    #[serde(default = "admin")]
    pub(super) database: String,
    /// As in a command.
    pub(super) name: Option<String>,
    pub(super) body: Map<String, Value>,
    #[serde(default)]
    pub(super) flags: Vec<Flag>,
    #[serde(default)]
    pub(super) sequences: BTreeMap<String, Vec<Map<String, Value>>>,
    pub(super) fails: Option<Failure>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Receive {
    /// A part of the message's body.
    pub(super) gives: Option<Value>,
    /// All flags that are set.
    #[serde(default)]
    pub(super) flags: Vec<Flag>,
    pub(super) fails: Option<Failure>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) platform: Option<String>,
    /// Whether it was not told of before.
    pub(super) is_new: Option<bool>,
    /// Words of the reason why nobody can be called so.
    pub(super) is_refused: Option<String>,
}

/// What an error is like. What is left out is not asked about.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) kind: Kind,
    /// The code that the server gave.
    pub(super) code: Option<i64>,
    /// All labels, with `retryWrites`.
    pub(super) labels: Option<Vec<String>>,
    /// Words that are in its text.
    #[serde(default)]
    pub(super) says: Vec<String>,
    /// It comes before so much time is over: far less than another limit that there is.
    #[serde(rename = "soonerThanMS")]
    pub(super) sooner_than_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum Stage {
    Dns,
    Tcp,
    Proxy,
    TlsIo,
    TlsCertificate,
    Hello,
    Authentication,
    Operation,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    Network,
    Timeout,
    Command,
    Protocol,
    Configuration,
}

/// What a client knows of a connection.
pub(super) const KNOWN: [&str; 14] = [
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

impl Operation {
    /// # Errors
    ///
    /// What can never come to pass, and where in the operation.
    pub(super) fn check(&self) -> Result<(), String> {
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
        match self {
            Self::Connect(connect) => {
                let gives = connect.gives.as_ref().and_then(Value::as_object);
                let is_unknown = |key: &&String| !KNOWN.contains(&key.as_str());
                if let Some(key) = gives.and_then(|gives| gives.keys().find(is_unknown)) {
                    let what = format!("unknown key, known are {}", KNOWN.join(", "));
                    return Err(wrong_at(&format!("connect/gives/{key}"), what));
                }
                expected("connect", &connect.gives, &connect.fails)
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

fn admin() -> String {
    "admin".to_owned()
}
