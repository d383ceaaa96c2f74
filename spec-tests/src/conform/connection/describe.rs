//! What a client got: an error, and what it knows of a connection.

use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{self, ConnectionError, RetryWrites};
use cenote_core::uri::{Compressor, Mechanism};
use serde_json::{Value, json};

use super::operation::{Failure, Kind, Stage};

impl Failure {
    pub(super) fn compare(&self, error: &ConnectionError) -> Result<(), String> {
        let labels: Vec<_> = error.labels(RetryWrites::Enabled).map(str::to_owned).collect();
        let got = (stage(error.stage()), kind(error.kind()));
        let code = error.command_error().and_then(|error| error.code).map(i64::from);
        let message = error.to_string();
        let complaint = if got != (self.stage, self.kind) {
            format!("expected {:?} at {:?}, got {:?} at {:?}", self.kind, self.stage, got.1, got.0)
        } else if self.code.is_some() && self.code != code {
            format!("expected the code {:?}, got {code:?}", self.code)
        } else if self.labels.as_ref().is_some_and(|expected| !same(expected, &labels)) {
            format!("expected the labels {:?}, got {labels:?}", self.labels)
        } else if let Some(words) = self.says.iter().find(|words| !message.contains(*words)) {
            format!("expected the words {words:?}")
        } else {
            return Ok(());
        };
        Err(format!("{complaint}: {message}"))
    }
}

fn same(expected: &[String], labels: &[String]) -> bool {
    expected.len() == labels.len() && expected.iter().all(|label| labels.contains(label))
}

fn stage(stage: error::Stage) -> Stage {
    match stage {
        error::Stage::Dns => Stage::Dns,
        error::Stage::Tcp => Stage::Tcp,
        error::Stage::Proxy => Stage::Proxy,
        error::Stage::TlsIo => Stage::TlsIo,
        error::Stage::TlsCertificate => Stage::TlsCertificate,
        error::Stage::Hello => Stage::Hello,
        error::Stage::Authentication => Stage::Authentication,
        error::Stage::Operation | _ => Stage::Operation,
    }
}

fn kind(kind: &error::Kind) -> Kind {
    match kind {
        error::Kind::Network => Kind::Network,
        error::Kind::NetworkTimeout { .. } | error::Kind::NotSent { .. } => Kind::Timeout,
        error::Kind::Command(_) => Kind::Command,
        error::Kind::Protocol => Kind::Protocol,
        error::Kind::Configuration => Kind::Configuration,
        error::Kind::Local | _ => Kind::Local,
    }
}

/// What a client knows of a connection, under the names that servers use.
pub(super) fn shown(description: &ConnectionDescription) -> Value {
    let limits = description.limits;
    json!({
        "kind": description.kind.name(),
        "helloOk": description.hello_ok,
        "minWireVersion": description.min_wire_version,
        "maxWireVersion": description.max_wire_version,
        "maxBsonObjectSize": limits.max_bson_object_size,
        "maxMessageSizeBytes": limits.max_message_size,
        "maxWriteBatchSize": limits.max_write_batch_size,
        "setName": description.set_name,
        "logicalSessionTimeoutMinutes": description.session_timeout_minutes,
        "connectionId": description.connection_id,
        "serviceId": description.service_id.map(|id| id.to_string()),
        "knowsTopologyVersion": description.topology_version.is_some(),
        "compressor": description.compressor.map(Compressor::name),
        "mechanism": description.mechanism.map(Mechanism::name),
    })
}
