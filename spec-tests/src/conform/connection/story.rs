//! Has a client do what a file says, and compares what it gets with what it has to get.

use std::thread;
use std::time::{Duration, Instant};

use bson::RawDocument;
use cenote_core::connect::DriverInfo;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use serde_json::Value;

use super::client::{Client, Refusal};
use super::describe::shown;
use super::format::File;
use super::operation::{Failure, HasTold, Operation, Seen, Send};
use super::script::Flag;
use super::value;

/// # Errors
///
/// Where it went differently first, and how.
pub(super) fn play(file: &File, mut client: impl Client) -> Result<(), String> {
    let mut took = Vec::new();
    let done = file.operations.iter().enumerate().try_for_each(|(index, operation)| {
        let begin = Instant::now();
        perform(operation, &mut client, &file.secrets)
            .and_then(|()| is_fast_enough(operation, begin.elapsed(), &took))
            .map_err(|what| format!("operation {index}: {what}"))?;
        took.push(begin.elapsed());
        Ok(())
    });
    let finished = client.finish();
    done.and(finished)
}

fn is_fast_enough(
    operation: &Operation,
    took: Duration,
    before: &[Duration],
) -> Result<(), String> {
    let Operation::Connect(connect) = operation else { return Ok(()) };
    let Some(other) = connect.faster_than.and_then(|number| before.get(number)) else {
        return Ok(());
    };
    let is_fast = took < *other / 2;
    is_fast.then_some(()).ok_or_else(|| format!("it took {took:?}, and the other one {other:?}"))
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
        Operation::ClientConnect(connect) => {
            let got = client.client_connect(connect.to).map(|description| shown(&description));
            judge(got, connect.gives.as_ref(), connect.fails.as_ref())
        }
        Operation::IsSeen(Seen { server, kind }) => {
            let seen = || client.kind_of(server - 1).unwrap_or_else(|| "Unknown".to_owned());
            in_time(|| seen() == *kind)
                .ok_or_else(|| format!("expected server {server} to be {kind}, it is {}", seen()))
        }
        Operation::HasTold(told) => has_told(told, client),
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

/// Exactly so often by the time at which it has done so once or more.
fn has_told(expected: &HasTold, client: &impl Client) -> Result<(), String> {
    let HasTold { server, r#type, times, with } = expected;
    let told = || -> Vec<Value> {
        let mut told = client.told(server - 1);
        told.retain(|event| event["type"] == r#type.as_str());
        told
    };
    in_time(|| told().len() >= *times);
    let told = told();
    if told.len() != *times {
        let seen: Vec<_> = client.told(server - 1).iter().map(Value::to_string).collect();
        return Err(format!(
            "expected server {server} to have told {type} {times} times, saw it {} times in\n{}",
            told.len(),
            seen.join("\n")
        ));
    }
    let differs = told.iter().filter_map(Value::as_object);
    let differs = differs.filter_map(|event| value::difference(with, event, true)).next();
    differs.map_or(Ok(()), |what| Err(format!("{type} of server {server}: {what}")))
}

/// Waits until it is so, but not for ever.
fn in_time(is_so: impl Fn() -> bool) -> Option<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begin = Instant::now();
    loop {
        if is_so() {
            return Some(());
        }
        if begin.elapsed() > PATIENCE {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
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
