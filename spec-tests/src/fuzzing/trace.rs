//! Traces.

use cenote_core::trace::{Replay, TraceError};

use crate::replay::history::{History, Nobody};

/// Any bytes as a trace: replayed as far as they go, and if not to the end, with a message of one line
/// that names byte and step. What could be read is a good trace when it is written again.
///
/// # Panics
///
/// When something is wrong.
pub fn trace(data: &[u8]) {
    let mut replay = match Replay::new(data) {
        Ok(replay) => replay,
        Err(error) => return judge(&error, 0),
    };
    loop {
        replay.pool().check_invariants();
        match replay.step(&mut Nobody) {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                judge(&error, replay.steps());
                break;
            }
        }
    }
    let (history, _) = History::read(data).expect("it could be begun");
    let again = history.write(Vec::new()).expect("memory can be written to");
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
