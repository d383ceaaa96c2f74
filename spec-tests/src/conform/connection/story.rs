//! Has a client do what a file says, and compares what it gets with what it has to get.

use std::thread;
use std::time::{Duration, Instant};

use bson::RawDocument;
use cenote_core::connect::{ConnectionDescription, DriverInfo};
use cenote_core::error::{self, ConnectionError};
use cenote_core::uri::{Compressor, Mechanism};
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use serde_json::{Value, json};

use super::client::{Client, Refusal};
use super::format::File;
use super::operation::{Failure, Kind, Operation, Send, Stage};
use super::script::Flag;
use super::value;

/// # Errors
///
/// Where it went differently first, and how.
pub(super) fn play(file: &File, mut client: impl Client) -> Result<(), String> {
    let done = file.operations.iter().enumerate().try_for_each(|(index, operation)| {
        perform(operation, &mut client, &file.secrets)
            .map_err(|what| format!("operation {index}: {what}"))
    });
    let finished = client.finish();
    done.and(finished)
}

fn perform(
    operation: &Operation,
    client: &mut impl Client,
    secrets: &[String],
) -> Result<(), String> {
    let begin = Instant::now();
    let judge = |got, gives, fails: Option<&Failure>| {
        judge(got, gives, fails, secrets)?;
        let limit = fails.and_then(|fails| fails.sooner_than_ms).map(Duration::from_millis);
        let took = begin.elapsed();
        let is_late = limit.is_some_and(|limit| took >= limit);
        if is_late { Err(format!("it failed only after {took:?}")) } else { Ok(()) }
    };
    match operation {
        Operation::Connect(connect) => {
            let within = connect.deadline_ms.map(Duration::from_millis);
            let got = client.connect(within).map(|description| shown(&description));
            judge(got, connect.gives.as_ref(), connect.fails.as_ref())
        }
        Operation::Command(command) => {
            let body = value::command(command.name.as_deref(), &command.body)?;
            let within = command.deadline_ms.map(Duration::from_millis);
            let got = client.command(&command.database, &body, within);
            judge(
                got.and_then(|reply| seen(&reply)),
                command.gives.as_ref(),
                command.fails.as_ref(),
            )
        }
        Operation::Unacknowledged(command) => {
            let body = value::command(command.name.as_deref(), &command.body)?;
            let got = client.unacknowledged(&command.database, &body).map(|()| Value::Null);
            judge(got, command.gives.as_ref(), command.fails.as_ref())
        }
        Operation::Send(send) => {
            let got = message(send, client).map(|()| Value::Null);
            judge(got, None, send.fails.as_ref())
        }
        Operation::Receive(receive) => {
            let got = client.receive();
            if let Ok(message) = &got {
                let (expected, flags) = (Flag::bits(&receive.flags), message.flags().bits());
                if flags != expected {
                    return Err(format!("expected the flags {expected:#b}, got {flags:#b}"));
                }
            }
            let got = got.and_then(|message| seen(message.body()));
            judge(got, receive.gives.as_ref(), receive.fails.as_ref())
        }
        Operation::IsReusable(expected) => {
            let is_reusable = client.is_reusable().map_err(text)?;
            let differs = format!("expected it to be reusable: {expected}, got {is_reusable}");
            if is_reusable == *expected { Ok(()) } else { Err(differs) }
        }
        Operation::CheckIn => client.check_in().map_err(text),
        Operation::AppendMetadata(driver) => {
            let (version, platform) = (driver.version.as_deref(), driver.platform.as_deref());
            let info = DriverInfo::new(&driver.name, version, platform);
            match (info, &driver.is_refused) {
                (Ok(info), None) => {
                    let is_new = client.append_metadata(info);
                    let differs =
                        format!("expected it to be new: {:?}, got {is_new}", driver.is_new);
                    if Some(is_new) == driver.is_new { Ok(()) } else { Err(differs) }
                }
                (Err(error), Some(words)) if error.to_string().contains(words) => Ok(()),
                (Err(error), _) => Err(error.to_string()),
                (Ok(_), Some(words)) => Err(format!("expected it to be refused: {words}")),
            }
        }
        Operation::Monitor => client.monitor(),
        Operation::IsHeard(connections) => client.wait_until_heard(*connections),
        Operation::Watch => client.watch(),
        Operation::ClientCommand(command) => {
            let body = value::command(command.name.as_deref(), &command.body)?;
            let got = client.client_command(&command.database, &body);
            judge(
                got.and_then(|reply| seen(&reply)),
                command.gives.as_ref(),
                command.fails.as_ref(),
            )
        }
        Operation::WaitMs(time) => {
            thread::sleep(Duration::from_millis(*time));
            Ok(())
        }
    }
}

/// Writes the message that a file describes.
fn message(send: &Send, client: &mut impl Client) -> Result<(), Refusal> {
    let body = value::command(send.name.as_deref(), &send.body).map_err(Refusal::Other)?;
    let flags = Flags::from_bits(Flag::bits(&send.flags));
    let flags = flags.map_err(|error| Refusal::Other(error.to_string()))?;
    let ids = Ids::request(client.next_request_id()?);
    let mut bytes = Vec::new();
    let mut write = || {
        let mut writer = MessageWriter::command(&mut bytes, ids, flags, &body, &send.database)?;
        for (name, documents) in &send.sequences {
            // What a file writes was looked at before.
            let documents: Vec<_> = documents.iter().flat_map(value::written).collect();
            writer.sequence(name, &documents)?;
        }
        writer.finish(MessageLimit::DEFAULT)
    };
    write().map_err(|error| Refusal::Other(error.to_string()))?;
    client.send(&bytes)
}

fn seen(document: &RawDocument) -> Result<Value, Refusal> {
    value::seen(document).map(Value::Object).map_err(Refusal::Other)
}

fn text(refusal: Refusal) -> String {
    match refusal {
        Refusal::Connection(error) => error.to_string(),
        Refusal::Other(reason) => reason,
    }
}

fn judge(
    got: Result<Value, Refusal>,
    gives: Option<&Value>,
    fails: Option<&Failure>,
    secrets: &[String],
) -> Result<(), String> {
    if let Err(Refusal::Connection(error)) = &got {
        let shown = format!("{error} {error:?}");
        if secrets.iter().any(|secret| shown.contains(secret)) {
            return Err(format!("a secret is shown: {shown}"));
        }
    }
    match (got, fails) {
        (Ok(got), None) => match (gives, got) {
            (Some(Value::Object(gives)), Value::Object(got)) => {
                value::difference(gives, &got, true).map_or(Ok(()), |what| {
                    Err(format!("{what}; got {}", Value::Object(got.clone())))
                })
            }
            (None, _) => Ok(()),
            (Some(gives), got) => Err(format!("expected {gives}, got {got}")),
        },
        (Ok(got), Some(_)) => Err(format!("expected an error, got {got}")),
        (Err(Refusal::Connection(error)), Some(expected)) => expected.compare(&error),
        (Err(refusal), _) => Err(text(refusal)),
    }
}

impl Failure {
    fn compare(&self, error: &ConnectionError) -> Result<(), String> {
        let labels: Vec<_> = error.labels(true).map(str::to_owned).collect();
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
        error::Stage::Operation => Stage::Operation,
    }
}

fn kind(kind: &error::Kind) -> Kind {
    match kind {
        error::Kind::Network => Kind::Network,
        error::Kind::NetworkTimeout { .. } => Kind::Timeout,
        error::Kind::Command(_) => Kind::Command,
        error::Kind::Protocol => Kind::Protocol,
        error::Kind::Configuration => Kind::Configuration,
    }
}

/// What a client knows of a connection (HS-11), under the names that servers use.
fn shown(description: &ConnectionDescription) -> Value {
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
