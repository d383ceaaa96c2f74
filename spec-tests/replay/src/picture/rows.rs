//! Assigns waits to rows: waits in a row do not overlap, and there are as few rows as possible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::Wait;

/// Gives each wait the lowest row that is free when it begins.
pub(super) fn assign(waits: &mut [Wait]) {
    let mut by_start: Vec<&mut Wait> = waits.iter_mut().collect();
    by_start.sort_unstable_by_key(|wait| (wait.start, wait.id));
    let mut taken = BinaryHeap::<Reverse<(u64, u32)>>::new();
    let mut free = BinaryHeap::<Reverse<u32>>::new();
    for wait in by_start {
        while let Some(&Reverse((end, row))) = taken.peek() {
            if end > wait.start {
                break;
            }
            taken.pop();
            free.push(Reverse(row));
        }
        // If no lower row is free, the wait goes above all rows that are in use.
        wait.row = free.pop().map_or(taken.len() as u32, |Reverse(row)| row);
        taken.push(Reverse((wait.end, wait.row)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_few_rows_as_possible() {
        let times = [(0, 5), (1, 9), (2, 3), (3, 4), (5, 5), (5, 8), (9, 12), (8, 9)];
        let wait = Wait {
            row: 99,
            id: 0,
            connection: 0,
            outcome: 0,
            start: 0,
            end: 0,
            limit: 0,
            ahead: None,
            why: 0,
            place: 0,
            count: 1,
            busy: 0,
        };
        let mut id = 0;
        let mut waits = times.map(|(start, end)| {
            id += 1;
            Wait { id, start, end, ..wait }
        });
        assign(&mut waits);
        assert_eq!(waits.map(|wait| wait.row), [0, 1, 2, 2, 0, 0, 0, 0]);
    }
}
