//! The JSON format of Perfetto and chrome://tracing.

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::model::{MarkKind, Picture, Title, UseKind};

/// Writes the picture as trace events: a thread for each slot, counters for the counts, an
/// asynchronous slice for each wait, an instant for each mark.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn perfetto(picture: &Picture, title: &Title, out: &mut impl Write) -> io::Result<()> {
    let pool = format!("pool of {}", title.address.as_deref().unwrap_or("?"));
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let name = json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": pool } });
    write!(out, "{name}")?;
    let marks = json!({
        "ph": "M", "pid": 1, "tid": 0, "name": "thread_name", "args": { "name": "marks" },
    });
    write!(out, ",\n{marks}")?;
    let slots = picture.lives.iter().map(|life| life.slot + 1).max().unwrap_or(0);
    for slot in 0..slots {
        let args = json!({ "name": format!("slot {slot}") });
        let thread = json!({
            "ph": "M", "pid": 1, "tid": slot + 1, "name": "thread_name", "args": args,
        });
        write!(out, ",\n{thread}")?;
    }
    slices(picture, out)?;
    waits(picture, out)?;
    for point in &picture.points {
        let ts = micros(point.at);
        write!(
            out,
            ",\n{{\"ph\":\"C\",\"pid\":1,\"name\":\"connections\",\"ts\":{ts},\"args\":{{\
             \"in use\":{},\"pending\":{},\"idle\":{}}}}}",
            point.in_use,
            point.pending,
            point.total.saturating_sub(point.in_use + point.pending)
        )?;
        write!(
            out,
            ",\n{{\"ph\":\"C\",\"pid\":1,\"name\":\"waiting\",\"ts\":{ts},\"args\":{{\
             \"waiting\":{}}}}}",
            point.waiting
        )?;
    }
    for mark in &picture.marks {
        let text = picture.texts.get(mark.text as usize).map_or("", String::as_str);
        let scope = if mark.kind == MarkKind::CheckOutFailed { "t" } else { "p" };
        let (ts, name) = (micros(mark.at), json!(text));
        write!(
            out,
            ",\n{{\"ph\":\"i\",\"pid\":1,\"tid\":0,\"s\":\"{scope}\",\"name\":{name},\"ts\":{ts},\
             \"args\":{{\"step\":{}}}}}",
            mark.step
        )?;
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

fn slices(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    for life in &picture.lives {
        slice(out, life.slot, life.start, life.end, &format!("c{}", life.number))?;
    }
    for usage in &picture.uses {
        let name = match (usage.kind, usage.holder) {
            (UseKind::Pending, _) => "being established".to_owned(),
            (UseKind::Draining, _) => "draining a late reply".to_owned(),
            (UseKind::InUse, 0) => "in use".to_owned(),
            (UseKind::InUse, holder) => format!("in use by w{holder}"),
        };
        slice(out, usage.slot, usage.start, usage.end, &name)?;
    }
    Ok(())
}

fn slice(out: &mut impl Write, slot: u32, start: u64, end: u64, name: &str) -> io::Result<()> {
    write!(
        out,
        ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":\"{name}\",\"ts\":{},\"dur\":{}}}",
        slot + 1,
        micros(start),
        micros(end - start)
    )
}

fn waits(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    const OUTCOMES: [&str; 9] = [
        "served",
        "timed out",
        "cleared",
        "not established",
        "closed",
        "cancelled",
        "still waiting",
        "queue full",
        "shed",
    ];
    for wait in &picture.waits {
        let outcome = OUTCOMES.get(usize::from(wait.outcome)).copied().unwrap_or_default();
        let id = wait.id;
        for (phase, at) in [("b", wait.start), ("e", wait.end)] {
            write!(
                out,
                ",\n{{\"ph\":\"{phase}\",\"cat\":\"wait\",\"pid\":1,\"id\":{id},\
                 \"name\":\"w{id} {outcome}\",\"ts\":{}}}",
                micros(at)
            )?;
        }
    }
    Ok(())
}

/// Microseconds with decimals.
fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1_000, nanos % 1_000)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn packed_is_the_same() {
        let picture = Picture { end: 9, ..Picture::default() };
        let title = Title::default();
        let (mut plain, mut packed, mut unpacked) = (Vec::new(), Vec::new(), Vec::new());
        perfetto(&picture, &title, &mut plain).expect("no I/O");
        packed_perfetto(&picture, &title, &mut packed).expect("no I/O");
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, plain);
    }
}
