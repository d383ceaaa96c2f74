//! What the client does, and what it expects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::script::Flag;

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
    /// Checks a connection out of that client, which from now on is the one that is used.
    ClientConnect(ClientConnect),
    /// Waits until that client has seen this in a server.
    IsSeen(Seen),
    /// That pools have told of so many of these by now.
    HasTold(HasTold),
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
    /// It takes less than half the time that this operation took, which is one further up.
    pub(super) faster_than: Option<usize>,
}

/// Of which server; without one, wherever there is a primary or the like.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClientConnect {
    pub(super) to: Option<ServerChoice>,
    /// As in a connect.
    pub(super) gives: Option<Value>,
    pub(super) fails: Option<Failure>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ServerChoice {
    Any,
    Primary,
    Secondary,
    /// The one of this number; the first is 1.
    Server(usize),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Seen {
    pub(super) server: usize,
    /// As servers are called, or `Unknown`.
    pub(super) kind: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct HasTold {
    /// The pool of this server.
    pub(super) server: usize,
    pub(super) r#type: String,
    pub(super) times: usize,
    /// A part of each of them.
    #[serde(default)]
    pub(super) with: Map<String, Value>,
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
    /// Words of the reason why the name is invalid.
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
    Local,
}

fn admin() -> String {
    "admin".to_owned()
}
