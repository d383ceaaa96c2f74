//! The shape of a file about discovery.

use bson::{Document, RawDocumentBuf};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) description: String,
    pub(super) uri: String,
    pub(super) phases: Vec<Phase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Phase {
    pub(super) description: Option<String>,
    /// What the servers answer, one check after the other; an empty document is a network error. Applied first.
    #[serde(default)]
    pub(super) responses: Vec<(String, Map<String, Value>)>,
    #[serde(default)]
    pub(super) application_errors: Vec<ApplicationError>,
    pub(super) outcome: Map<String, Value>,
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
    /// The server's reply, whatever it holds.
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

/// The document that a file has as extended JSON.
pub(super) fn document(json: &Map<String, Value>) -> Result<RawDocumentBuf, String> {
    let document = Document::try_from(json.clone()).map_err(|error| error.to_string())?;
    RawDocumentBuf::try_from(document).map_err(|error| error.to_string())
}

fn reply<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawDocumentBuf>, D::Error> {
    let json = Option::<Map<String, Value>>::deserialize(deserializer)?;
    json.map(|json| document(&json).map_err(D::Error::custom)).transpose()
}
