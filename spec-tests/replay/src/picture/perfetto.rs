//! The JSON format of Perfetto and chrome://tracing.

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::model::{MarkKind, OUTCOMES, Picture, Title, UseKind};

/// Writes the picture as trace events: a thread for each slot, counters for the counts, an
/// asynchronous slice for each wait, an instant for each mark.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn perfetto(picture: &Picture, title: &Title, out: &mut impl Write) -> io::Result<()> {
    let pool = format!("pool of {}", title.address.as_deref().unwrap_or("?"));
    let process = json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": pool } });
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[{process}")?;
    let mut put = |event: Value| write!(out, ",\n{event}");
    let thread = |tid: u32, name: &str| json!({ "ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": { "name": name } });
    put(thread(0, "marks"))?;
    let slots = picture.lives.iter().map(|life| life.slot + 1).max().unwrap_or(0);
    for slot in 0..slots {
        put(thread(slot + 1, &format!("slot {slot}")))?;
    }
    for life in &picture.lives {
        put(slice(life.slot, life.start, life.end, &format!("c{}", life.number)))?;
    }
    for usage in &picture.uses {
        let name = match (usage.kind, usage.holder) {
            (UseKind::Pending, _) => "being established".to_owned(),
            (UseKind::Draining, _) => "draining a late reply".to_owned(),
            (UseKind::InUse, 0) => "in use".to_owned(),
            (UseKind::InUse, holder) => format!("in use by w{holder}"),
        };
        put(slice(usage.slot, usage.start, usage.end, &name))?;
    }
    for wait in &picture.waits {
        let name = format!("w{} {}", wait.id, OUTCOMES[usize::from(wait.outcome)]);
        for (phase, at) in [("b", wait.start), ("e", wait.end)] {
            let ts = micros(at);
            put(
                json!({ "ph": phase, "cat": "wait", "pid": 1, "id": wait.id, "name": name, "ts": ts }),
            )?;
        }
    }
    for point in &picture.points {
        let idle = point.total.saturating_sub(point.in_use + point.pending);
        let connections = json!({ "in use": point.in_use, "pending": point.pending, "idle": idle });
        let waiting = json!({ "waiting": point.waiting });
        for (name, args) in [("connections", connections), ("waiting", waiting)] {
            put(
                json!({ "ph": "C", "pid": 1, "name": name, "ts": micros(point.at), "args": args }),
            )?;
        }
    }
    for mark in &picture.marks {
        let is_one_request = matches!(mark.kind, MarkKind::CheckOutFailed | MarkKind::Shed);
        let scope = if is_one_request { "t" } else { "p" };
        put(json!({
            "ph": "i", "pid": 1, "tid": 0, "s": scope, "name": picture.texts[mark.text as usize],
            "ts": micros(mark.at), "args": { "step": mark.step },
        }))?;
    }
    writeln!(out, "]}}")
}

/// The same, packed by gzip.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn packed_perfetto(picture: &Picture, title: &Title, out: &mut impl Write) -> io::Result<()> {
    let mut packed = BufWriter::new(GzEncoder::new(out, Compression::fast()));
    perfetto(picture, title, &mut packed)?;
    packed.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

fn slice(slot: u32, start: u64, end: u64, name: &str) -> Value {
    let (ts, dur) = (micros(start), micros(end - start));
    json!({ "ph": "X", "pid": 1, "tid": slot + 1, "name": name, "ts": ts, "dur": dur })
}

/// Microseconds.
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}
