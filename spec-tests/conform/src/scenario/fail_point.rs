//! The server's fail point `failCommand`, as far as scenarios use it.
// TF-19

use std::time::Duration;

use bson::RawDocumentBuf;
use serde::{Deserialize, Serialize};

/// How the server fails, and how often.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FailPoint {
    configure_fail_point: Name,
    mode: Mode,
    data: Data,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum Name {
    FailCommand,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    AlwaysOn,
    Times(u64),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Data {
    fail_commands: Vec<Command>,
    #[serde(default)]
    close_connection: bool,
    #[serde(default)]
    block_connection: bool,
    #[serde(rename = "blockTimeMS", skip_serializing_if = "Option::is_none")]
    block_time_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_name: Option<String>,
}

/// The two names of the only command that pools send during a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Command {
    #[serde(rename = "isMaster")]
    IsMaster,
    #[serde(rename = "hello")]
    Hello,
}

/// What the server does with a hello that hits the fail point.
pub(crate) struct Hit {
    /// How long the server waits first.
    pub(crate) blocked: Duration,
    /// Whether it then closes the connection without a reply.
    pub(crate) close: bool,
    /// The error code of the reply; without it the hello succeeds.
    pub(crate) error_code: Option<i32>,
}

impl FailPoint {
    /// What serde cannot check.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { configure_fail_point: Name::FailCommand, mode: _, data } = self;
        if data.fail_commands.is_empty() {
            return Err("failPoint: failCommands is empty".to_owned());
        }
        if data.block_connection != data.block_time_ms.is_some() {
            return Err("failPoint: blockConnection and blockTimeMS need each other".to_owned());
        }
        Ok(())
    }

    /// The command that sets it on a server.
    pub(super) fn command(&self) -> Result<RawDocumentBuf, bson::error::Error> {
        bson::serialize_to_raw_document_buf(self)
    }

    /// A connection with this application name says hello. Returns what happens if it hits the fail
    /// point; a fail point with `times` counts its hits.
    pub(crate) fn hit(&mut self, app_name: Option<&str>) -> Option<Hit> {
        let data = &self.data;
        if data.app_name.is_some() && data.app_name.as_deref() != app_name {
            return None;
        }
        if let Mode::Times(times) = &mut self.mode {
            *times = times.checked_sub(1)?;
        }
        Some(Hit {
            blocked: Duration::from_millis(data.block_time_ms.unwrap_or(0)),
            close: data.close_connection,
            error_code: data.error_code,
        })
    }
}
