//! Fuzzing of traces.

use cenote_core::trace::{JournalOptions, Replay, TraceError, TraceInfo, format_of, topology};

use cenote_replay::history::{Discard, History};

/// Replays arbitrary bytes as a trace, as far as possible. An error has to be a message of one line
/// with byte and step. The readable part has to be a valid trace when it is written again.
///
/// # Panics
///
/// If a check fails.
pub fn trace(data: &[u8]) {
    if format_of(data) == Some(topology::FORMAT) { topology(data) } else { pool(data) }
}

fn pool(data: &[u8]) {
    let mut replay = match Replay::new(data) {
        Ok(replay) => replay,
        Err(error) => return judge(&error, 0),
    };
    loop {
        replay.pool().check_invariants();
        match replay.step(&mut Discard) {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                judge(&error, replay.steps());
                break;
            }
        }
    }
    let (history, _) = History::read(data).expect("its beginning is valid");
    let again = history.write(Vec::new()).expect("writing to memory succeeds");
    let (same, problem) = History::read(again.as_slice()).expect("a trace");
    assert!(problem.is_none(), "{problem:?}");
    assert_eq!(same.inputs.len(), history.inputs.len());
}

fn topology(data: &[u8]) {
    let mut replay = match topology::Replay::new(data) {
        Ok(replay) => replay,
        Err(error) => return judge(&error, 0),
    };
    let recorder = topology::Recorder::new(replay.topology().clone());
    let mut recorder = recorder.with_journal(replay.header().start, JournalOptions::default());
    loop {
        match replay.step(&mut |_| {}) {
            // After a gap the topology is another one.
            Ok(Some(step)) if step.lost_before.is_some() => return,
            Ok(Some(step)) => match step.input {
                topology::StepInput::Topology(input) => {
                    recorder.handle(step.at, input, &mut |_| {});
                }
                topology::StepInput::Selection(selection) => recorder.selected(step.at, selection),
            },
            Ok(None) => break,
            Err(error) => {
                judge(&error, replay.steps());
                break;
            }
        }
    }
    recorder.flush();
    if !recorder.has_full_chunk() {
        // What is too large is not recorded.
        return;
    }
    let mut writer = topology::TraceWriter::new(Vec::new(), TraceInfo::default());
    while let Some(chunk) = recorder.take_chunk() {
        writer.write(&chunk).expect("writing to memory succeeds");
    }
    let again = writer.finish().expect("writing to memory succeeds");
    if let Err(error) = topology::Replay::new(&*again).and_then(|mut again| again.verify()) {
        panic!("written again it is no trace: {error}");
    }
}

fn judge(error: &TraceError, steps: u64) {
    let shown = error.to_string();
    assert_eq!(error.step, steps, "{shown}");
    assert!(shown.starts_with(&format!("byte {}, step {steps}: ", error.byte)), "{shown}");
    assert!(!shown.contains('\n'), "{shown}");
}
