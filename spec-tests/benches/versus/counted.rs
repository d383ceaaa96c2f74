//! What a unit of a row takes in instructions and system calls: the same numbers on every run,
//! however busy the machine is.
//!
//! Each contestant has processes of its own under callgrind and strace, one with one round and one
//! with three; half of the difference is a round, free of set-up.

use std::process::Command;

use cenote::workload::instructions_of;

use crate::measure::Row;

/// How a process of ours is told what to do.
const SCENE: &str = "--scene";

/// Plays a contestant of a row for so many rounds, if this process is to do that and no more.
pub(crate) fn is_asked_for_one_scene(rows: impl Fn() -> Vec<Row>) -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, scene, row, contestant, rounds] = &arguments[..] else { return false };
    if scene != SCENE {
        return false;
    }
    let row = rows().into_iter().find(|it| it.name == row).expect("a row of this program");
    let number: usize = contestant.parse().expect("the number of a contestant");
    let (_, mut play) = row.contestants().swap_remove(number);
    for _ in 0..rounds.parse().expect("a number of rounds") {
        play();
    }
    true
}

/// Counts for all contestants of a row. A row that takes several threads or a clock says so instead.
pub(crate) fn report(row: Row) {
    let (name, title) = (row.name, row.title());
    let Some(units) = row.units else {
        println!("{title} ({name}): is timed only\n");
        return;
    };
    println!("{title} ({name}): {:>21} {:>14}", "instructions", "system calls");
    for (number, (contestant, _)) in row.contestants().into_iter().enumerate() {
        let each = [instructions_of, system_calls_of].map(|count| {
            let of = |rounds: u32| count(&[SCENE, name, &number.to_string(), &rounds.to_string()]);
            of(3).saturating_sub(of(1)) as f64 / f64::from(2 * units)
        });
        println!("  {contestant:<44} {:>12.0} {:>14.2}", each[0], each[1]);
    }
    println!();
}

/// All system calls of the main thread of a process that is this program with these arguments.
fn system_calls_of(arguments: &[&str]) -> u64 {
    let summary = tempfile::NamedTempFile::new().expect("a temporary file");
    let this = std::env::current_exe().expect("the path of this program");
    let mut strace = Command::new("strace");
    strace.args(["-c", "-o"]).args([summary.path(), &this]).args(arguments);
    let status = strace.status().expect("strace, which this needs, could not be started");
    assert!(status.success(), "strace failed: {status}");
    let summary = std::fs::read_to_string(summary.path()).expect("a summary");
    // % time, seconds, usecs/call, calls
    let total = summary.lines().find(|line| line.ends_with("total")).expect("a total");
    total.split_whitespace().nth(3).and_then(|calls| calls.parse().ok()).expect("a number")
}
