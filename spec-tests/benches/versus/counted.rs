//! What a unit of a row takes in instructions: the same numbers on every run, however busy the
//! machine is.
//!
//! Each contestant has processes of its own under callgrind, one with one round and one with three;
//! half of the difference is a round, free of set-up.

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

/// Counts for all contestants of a row. A row that takes several threads, a clock or a server says
/// so instead.
pub(crate) fn report(row: Row) {
    let (name, title) = (row.name, row.title());
    let Some(units) = row.units else {
        println!("{title} ({name}): is timed only\n");
        return;
    };
    println!("{title} ({name}): instructions");
    for (number, (contestant, _)) in row.contestants().into_iter().enumerate() {
        let round = (count(name, number, 3) - count(name, number, 1)) / 2;
        println!("  {contestant:<44} {:>12}", round / u64::from(units));
    }
    println!();
}

/// All instructions of a process that plays so many rounds.
fn count(row: &str, contestant: usize, rounds: u32) -> u64 {
    instructions_of(&[SCENE, row, &contestant.to_string(), &rounds.to_string()])
}
