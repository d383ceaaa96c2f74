//! Fuzzing of traces.

use cenote_core::trace::{Replay, TraceError};

use crate::replay::history::{Discard, History};

/// Replays arbitrary bytes as a trace, as far as possible. An error has to be a message of one line
/// with byte and step. The readable part has to be a valid trace when it is written again.
///
/// # Panics
///
/// If a check fails.
pub fn trace(data: &[u8]) {
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

fn judge(error: &TraceError, steps: u64) {
    let shown = error.to_string();
    assert_eq!(error.step, steps, "{shown}");
    assert!(shown.starts_with(&format!("byte {}, step {steps}: ", error.byte)), "{shown}");
    assert!(!shown.contains('\n'), "{shown}");
}
