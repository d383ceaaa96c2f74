//! The shape of a test file. A key that is not named here makes the file unreadable: a test that
//! is understood in part only would pass for the wrong reason.

use std::collections::BTreeMap;

use bson::{Document, RawDocumentBuf};
use cenote_core::sdam::TopologyVersion;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestFile {
    pub(super) description: String,
    pub(super) uri: String,
    pub(super) phases: Vec<Phase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Phase {
    #[serde(default)]
    pub(super) description: String,
    /// Replies to monitors, with the address that sent them; applied first.
    #[serde(default)]
    pub(super) responses: Vec<(String, Hello)>,
    #[serde(default)]
    pub(super) application_errors: Vec<ApplicationError>,
    pub(super) outcome: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Hello {
    pub(super) ok: f64,
    #[serde(default, rename = "helloOk")]
    _hello_ok: bool,
    #[serde(default)]
    pub(super) is_writable_primary: bool,
    pub(super) hosts: Vec<String>,
    pub(super) set_name: Option<String>,
    #[serde(rename = "minWireVersion")]
    _wire_version_min: i32,
    #[serde(rename = "maxWireVersion")]
    _wire_version_max: i32,
    pub(super) logical_session_timeout_minutes: Option<i64>,
    #[serde(default, deserialize_with = "topology_version")]
    pub(super) topology_version: Option<TopologyVersion>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ApplicationError {
    pub(super) address: String,
    /// The generation of the failed connection; when absent, the pool's own.
    pub(super) generation: Option<u64>,
    #[serde(rename = "maxWireVersion")]
    pub(super) wire_version_max: i32,
    pub(super) when: When,
    pub(super) r#type: ErrorType,
    /// The server's reply, whatever it holds: reading it is the business of the core.
    #[serde(default, deserialize_with = "reply")]
    pub(super) response: Option<RawDocumentBuf>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum When {
    BeforeHandshakeCompletes,
    AfterHandshakeCompletes,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ErrorType {
    Command,
    Network,
    Timeout,
}

/// What the topology has to look like after a phase; `null` and absent both mean "none".
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Expected {
    pub(super) servers: BTreeMap<String, ExpectedServer>,
    pub(super) topology_type: TopologyType,
    pub(super) set_name: Option<String>,
    pub(super) logical_session_timeout_minutes: Option<i64>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectedServer {
    pub(super) r#type: ServerType,
    pub(super) set_name: Option<String>,
    #[serde(default, deserialize_with = "topology_version")]
    pub(super) topology_version: Option<TopologyVersion>,
    pub(super) pool: ExpectedPool,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedPool {
    pub(super) generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum ServerType {
    Unknown,
    #[serde(rename = "RSPrimary")]
    RsPrimary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum TopologyType {
    ReplicaSetNoPrimary,
    ReplicaSetWithPrimary,
}

fn topology_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TopologyVersion>, D::Error> {
    let Some(document) = reply(deserializer)? else { return Ok(None) };
    let version = TopologyVersion::from_document(&document)
        .ok_or_else(|| D::Error::custom(format!("not a topologyVersion: {document:?}")))?;
    Ok(Some(version))
}

fn reply<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawDocumentBuf>, D::Error> {
    let json = Option::<serde_json::Map<String, serde_json::Value>>::deserialize(deserializer)?;
    let Some(json) = json else { return Ok(None) };
    let document = Document::try_from(json).map_err(D::Error::custom)?;
    RawDocumentBuf::try_from(document).map(Some).map_err(D::Error::custom)
}
