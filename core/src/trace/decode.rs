//! Decoding the documents of a trace; `encode.rs` encodes them.

use alloc::boxed::Box;
use core::time::Duration;

use bson::RawBsonRef;

use crate::error::Stage;
use crate::pool::{
    ConnectionCheckpoint, ConnectionStateCheckpoint, Demand, Health, Input, Maintenance,
    OptionValue, Pacing, PoolCheckpoint, PoolOptions, RequestCheckpoint, ReuseOrder,
    ServiceCheckpoint, Status, WaiterId,
};

use super::action::{ActionName, ActionRecord};
use super::cause::{Cause, CauseKind, CauseLabels, CauseSummary, stage_name};
use super::encode::status_name;
use super::error::TraceProblem;
use super::fields::{Fields, Found, absent, shown, wrong};
use super::traced::Traced;

/// An input: the key behind its time says which. `cause` finds a cause by its number.
pub(super) fn input(
    fields: &Fields<'_>,
    cause: impl Fn(u64) -> Option<Cause>,
) -> Found<Input<Traced>> {
    let key = fields.key(1).ok_or_else(|| absent("out, in, up or the like"))?;
    let told = || {
        let number = fields.number("e")?;
        cause(number).ok_or_else(|| wrong("e", "names a cause that was not told"))
    };
    Ok(match key {
        b"out" => {
            let id = WaiterId(fields.number("out")?);
            let (deadline, purpose) = (fields.time_if("d")?, fields.purpose()?);
            Input::CheckOutRequested { id, waiter: id, deadline, purpose }
        }
        b"cancel" => Input::CheckOutCancelled { id: WaiterId(fields.number("cancel")?) },
        b"in" => {
            let health = match (fields.get("e"), fields.request_id_if("r")?) {
                (None, _) => Health::Healthy,
                (Some(_), None) => Health::Errored(told()?),
                (Some(_), Some(request_id)) => {
                    Health::PendingResponse { request_id, cause: told()? }
                }
            };
            Input::CheckedIn { id: fields.connection("in")?, conn: (), health }
        }
        b"use" => Input::Repurposed { id: fields.connection("use")?, purpose: fields.purpose()? },
        b"hello" => {
            let (id, service) = (fields.connection("hello")?, fields.service_if("v")?);
            Input::Handshaken { id, service, clears_at_hello: fields.number_if("seen")? }
        }
        b"up" => Input::EstablishSucceeded { id: fields.connection("up")?, conn: () },
        b"fail" => {
            let (id, overloaded) = (fields.connection("fail")?, fields.flag("overloaded")?);
            Input::EstablishFailed { id, cause: told()?, overloaded }
        }
        b"gone" => Input::IdleClosedByPeer { id: fields.connection("gone")?, cause: told()? },
        b"drained" => Input::DrainSucceeded { id: fields.connection("drained")?, conn: () },
        b"drainFail" => Input::DrainFailed { id: fields.connection("drainFail")?, cause: told()? },
        b"drainRead" => Input::DrainProgress { id: fields.connection("drainRead")? },
        b"retire" => Input::RetireConnections,
        b"release" => Input::ReleaseIdle,
        b"ready" => Input::Ready,
        b"close" => Input::Close,
        b"timer" => Input::Timer,
        b"fork" => Input::ResetAfterFork,
        b"clear" => Input::Clear {
            cause: told()?,
            interrupt: fields.flag("clear")?,
            service: fields.service_if("v")?,
        },
        b"set" => {
            let nested = fields.document_if("set")?.ok_or_else(|| absent("set"))?;
            Input::SetOptions { options: Box::new(options(&nested)?) }
        }
        _ => return Err(TraceProblem::Field { key: shown(key), problem: "is no input" }),
    })
}

/// A cause and its number.
pub(super) fn cause(fields: &Fields<'_>) -> Found<(u64, Cause)> {
    let mut labels = CauseLabels::default();
    match fields.get("labels") {
        None => {}
        Some(RawBsonRef::Array(array)) => {
            for label in array.into_iter().filter_map(Result::ok) {
                label.as_str().into_iter().for_each(|label| labels.add(label));
            }
        }
        Some(_) => return Err(wrong("labels", "is not an array")),
    }
    let summary = CauseSummary {
        stage: fields.choice_if("stage", &Stage::ALL, stage_name)?,
        kind: fields.choice_if("kind", &CauseKind::ALL, CauseKind::as_str)?,
        labels,
    };
    let text = fields.text_if("text")?.map(Into::into);
    Ok((fields.number("cause")?, Cause { summary, text }))
}

pub(super) fn action(fields: &Fields<'_>) -> Found<ActionRecord> {
    let name = fields.choice_if("a", &ActionName::ALL, ActionName::as_str)?;
    Ok(ActionRecord {
        name: name.ok_or_else(|| absent("a"))?,
        connection: fields.get("c").map(|_| fields.connection("c")).transpose()?,
        nanos: fields.number_if("n")?,
        detail: fields.choice_if("x", &ActionRecord::DETAILS, |detail| detail)?,
    })
}

pub(super) fn options(fields: &Fields<'_>) -> Found<PoolOptions> {
    let mut options = PoolOptions::default();
    for (spec, value) in options.each() {
        let key = [spec.trace_key, spec.key].into_iter().find(|key| fields.get(key).is_some());
        let key = key.unwrap_or(spec.key);
        match value {
            OptionValue::Count(value) => *value = fields.small_if(key)?,
            OptionValue::Number(value) => *value = fields.number_if(key)?,
            OptionValue::Time(value) => *value = duration_if(fields, key)?,
            OptionValue::Flag(value) => *value = fields.boolean_if(key)?,
            OptionValue::Maintenance(value) => {
                let pause = duration_if(fields, key)?.map(Maintenance::PauseAfterFailure);
                let never = fields.boolean_if(spec.name)? == Some(false);
                *value = pause.or(never.then_some(Maintenance::Never));
            }
            OptionValue::ReuseOrder(value) => {
                *value = fields.choice_if(key, &ReuseOrder::ALL, ReuseOrder::as_str)?;
            }
        }
    }
    Ok(options)
}

fn duration_if(fields: &Fields<'_>, key: &str) -> Found<Option<Duration>> {
    if let Some(RawBsonRef::Document(_)) = fields.get(key) {
        let nested = fields.document_if(key)?.ok_or_else(|| absent(key))?;
        let nanos = nested.small_if("n")?.filter(|&nanos| nanos < 1_000_000_000);
        let nanos = nanos.ok_or_else(|| wrong(key, "has no nanoseconds below a second"))?;
        return Ok(Some(Duration::new(nested.number("s")?, nanos)));
    }
    Ok(fields.number_if(key)?.map(Duration::from_nanos))
}

fn pacing_if(fields: &Fields<'_>) -> Found<Option<Pacing>> {
    let Some(fields) = fields.document_if("pacing")? else { return Ok(None) };
    Ok(Some(Pacing {
        establishment: fields.number_if("establishment")?,
        use_time: fields.number_if("useTime")?,
        gained: fields.time_if("gained")?,
        not_before: fields.time_if("notBefore")?,
        overloads: fields.small_if("overloads")?.unwrap_or(0),
    }))
}

fn demand_if(fields: &Fields<'_>) -> Found<Option<Demand>> {
    let Some(fields) = fields.document_if("demand")? else { return Ok(None) };
    let predicted = fields.small_if("predicted")?.ok_or_else(|| absent("predicted"))?;
    Ok(Some(Demand { since: fields.time("since")?, sum: fields.number("sum")?, predicted }))
}

/// The counts of a state, and how many parts of each kind follow.
pub(super) fn state(fields: &Fields<'_>, checkpoint: &mut PoolCheckpoint) -> Found<Parts> {
    let statuses = [Status::Paused, Status::Ready, Status::Closed];
    let status = fields.choice_if("status", &statuses, status_name)?;
    checkpoint.status = status.ok_or_else(|| absent("status"))?;
    checkpoint.generation = fields.number("generation")?;
    checkpoint.was_cleared = fields.flag("cleared")?;
    checkpoint.populate_after = fields.time_if("populateAfter")?;
    checkpoint.standing_since = fields.time_if("standingSince")?;
    checkpoint.pacing = pacing_if(fields)?.unwrap_or_default();
    checkpoint.demand = demand_if(fields)?;
    checkpoint.inherited = fields.number("inherited")?;
    checkpoint.reported = fields.number_if("reported")?.unwrap_or(0);
    checkpoint.last_waiter = fields.number_if("lastRequest")?.map(WaiterId);
    checkpoint.last_connection = fields.number("lastConnection")?;
    checkpoint.clock_regressions = fields.number("clockRegressions")?;
    checkpoint.service_clears = fields.number_if("serviceClears")?.unwrap_or(0);
    Ok(Parts {
        services: fields.number("services")?,
        connections: fields.number("connections")?,
        free_slots: fields.number("freeSlots")?,
        requests: fields.number("requests")?,
    })
}

/// How many documents with parts of a state follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    services: u64,
    connections: u64,
    free_slots: u64,
    requests: u64,
}

impl Parts {
    pub(super) const fn total(self) -> u64 {
        let Self { services, connections, free_slots, requests } = self;
        services.saturating_add(connections).saturating_add(free_slots).saturating_add(requests)
    }
}

/// Takes the next part of a state in; `None` if this document is none.
pub(super) fn part(fields: &Fields<'_>, checkpoint: &mut PoolCheckpoint) -> Found<Option<()>> {
    match fields.key(0) {
        Some(b"service") => checkpoint.services.push(ServiceCheckpoint {
            id: fields.service_if("service")?.ok_or_else(|| absent("service"))?,
            generation: fields.number("g")?,
            was_cleared: fields.flag("cleared")?,
            clears: fields.number_if("clears")?.unwrap_or(0),
        }),
        Some(b"connection") => checkpoint.connections.push(connection_checkpoint(fields)?),
        Some(b"free") => {
            checkpoint.free_slots.push(fields.small_if("free")?.ok_or_else(|| absent("free"))?);
        }
        Some(b"request") => checkpoint.requests.push(request(fields)?),
        Some(_) | None => return Ok(None),
    }
    Ok(Some(()))
}

fn connection_checkpoint(fields: &Fields<'_>) -> Found<ConnectionCheckpoint> {
    let state = if let Some(handshaken) = fields.boolean_if("pending")? {
        ConnectionStateCheckpoint::Pending { handshaken }
    } else if let Some(since) = fields.time_if("idle")? {
        match fields.request_id_if("r")? {
            None => ConnectionStateCheckpoint::Available { since },
            Some(request_id) => {
                let last_read = fields.time("read")?;
                ConnectionStateCheckpoint::PendingResponse { since, request_id, last_read }
            }
        }
    } else if let Some(since) = fields.time_if("drains")? {
        ConnectionStateCheckpoint::Draining {
            since,
            announced: fields.time_if("announced")?,
            request_id: fields.request_id_if("r")?.ok_or_else(|| absent("r"))?,
            last_read: fields.time("read")?,
        }
    } else {
        ConnectionStateCheckpoint::InUse {
            since: fields.time("used")?,
            purpose: fields.purpose()?,
            interrupted: fields.flag("interrupted")?,
            reported: fields.flag("reported")?,
        }
    };
    Ok(ConnectionCheckpoint {
        id: fields.connection("connection")?,
        generation: fields.number("g")?,
        service: fields.service_if("v")?,
        created: fields.time("made")?,
        expires: fields.time_if("ends")?,
        expiry_met: fields.flag("met")?,
        state,
    })
}

fn request(fields: &Fields<'_>) -> Found<RequestCheckpoint> {
    Ok(RequestCheckpoint {
        id: WaiterId(fields.number("request")?),
        started: fields.time("since")?,
        deadline: fields.time_if("d")?,
        deadline_is_callers: fields.flag("callers")?,
        purpose: fields.purpose()?,
        owns: fields.get("owns").map(|_| fields.connection("owns")).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use std::prelude::v1::*;

    use super::super::document::Document;
    use super::*;

    /// Sets every option that there is.
    fn all_options() -> PoolOptions {
        let mut options = PoolOptions::default();
        for (number, (_, value)) in (1..).zip(options.each()) {
            match value {
                OptionValue::Count(value) => *value = Some(number),
                OptionValue::Number(value) => *value = Some(u64::MAX),
                OptionValue::Time(value) => *value = Some(Duration::from_nanos(number.into())),
                OptionValue::Flag(value) => *value = Some(number % 2 == 0),
                OptionValue::Maintenance(value) => *value = Some(Maintenance::Never),
                OptionValue::ReuseOrder(value) => *value = Some(ReuseOrder::LeastRecentlyUsed),
            }
        }
        options
    }

    fn decoded(write: impl FnOnce(&mut Document<'_>)) -> Found<PoolOptions> {
        let mut buffer = Vec::new();
        let mut document = Document::new(&mut buffer);
        write(&mut document);
        document.end();
        options(&Fields::of(bson::RawDocument::from_bytes(&buffer).expect("a document"))?)
    }

    #[test]
    fn options_are_decoded_as_they_were_encoded() {
        for options in [all_options(), PoolOptions::default()] {
            let encoded = |it: &mut Document<'_>| super::super::encode::options(it, &options);
            assert_eq!(decoded(encoded).expect("options"), options);
        }
    }

    /// As the next version of traces has them.
    #[test]
    fn options_are_decoded_under_their_own_names() {
        let encoded = |it: &mut Document<'_>| {
            it.number("leakDetectionThreshold", 5).number("unansweredThreshold", 6);
        };
        let options = PoolOptions::default()
            .with_leak_detection_threshold(Duration::from_nanos(5))
            .with_unanswered_threshold(Duration::from_nanos(6));
        assert_eq!(decoded(encoded).expect("options"), options);
    }
}
