//! The server's fail point `failCommand`, as far as the files use it (TF-19).

use std::time::Duration;

use bson::RawDocumentBuf;
use serde::{Deserialize, Serialize};

/// What the endpoint does wrong, and how often.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct FailPoint {
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

/// The two names of the only command that is ever sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Command {
    #[serde(rename = "isMaster")]
    IsMaster,
    #[serde(rename = "hello")]
    Hello,
}

/// What becomes of a hello that hits the fail point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Nothing happens for so long.
    pub(super) blocked: Duration,
    /// Then the connection is closed without an answer,
    pub(super) close: bool,
    /// or the answer is this error; without either, all is well.
    pub(super) error_code: Option<i32>,
}

impl FailPoint {
    /// What serde cannot see.
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

    /// The command that switches it on at a real server.
    ///
    /// # Errors
    ///
    /// A number that BSON has no room for.
    pub(super) fn command(&self) -> Result<RawDocumentBuf, bson::error::Error> {
        bson::serialize_to_raw_document_buf(self)
    }

    /// A hello of this application comes in: does it hit? Only hits are counted.
    pub(super) fn hit(&mut self, app_name: Option<&str>) -> Option<Hit> {
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
