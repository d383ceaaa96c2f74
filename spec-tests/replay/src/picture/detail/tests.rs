//! What is joined.

use super::*;

#[test]
fn what_is_joined_has_the_same_sums_and_stays_small() {
    let mut picture = Picture { end: 1 << 40, ..Picture::default() };
    let (mut whole, mut detail) = (picture.clone(), Detail::new(12_000));
    for number in 0..40_000_u64 {
        let (start, lasts) = (number << 22, 1 << (18 + number % 3));
        let end = start + lasts;
        let (slot, note) = ((number % 3) as u32, u32::from(number % 1_000 == 0));
        let usage = Use {
            slot,
            number: 1,
            kind: UseKind::InUse,
            holder: number + 1,
            start,
            end,
            note,
            place: 0,
            count: 1,
            busy: lasts,
        };
        whole.uses.push(usage);
        picture.uses.push(usage);
        let outcome = u8::from(number % 1_000 == 0);
        let wait = Wait {
            row: 0,
            id: number,
            connection: 1,
            outcome,
            start,
            end,
            limit: 0,
            ahead: None,
            why: 0,
            place: 0,
            count: 1,
            busy: lasts,
        };
        whole.waits.push(wait);
        picture.waits.push(wait);
        let waiting = if number == 20_000 { 99 } else { slot };
        let point = Point { at: start, total: 9, in_use: slot, pending: 2, waiting };
        whole.points.push(point);
        picture.points.push(point);
        detail.limit(&mut picture);
    }
    let sums = |it: &Picture| {
        let area = |of: fn(&Point) -> u32| {
            let lasts = it.points.windows(2).map(|it| (it[1].at - it[0].at, of(&it[0])));
            // Whole numbers leave out less than one for the length of what is joined.
            lasts.map(|(lasts, it)| lasts * u64::from(it)).sum::<u64>() >> 30
        };
        let largest = |of: fn(&Point) -> u32| it.points.iter().map(of).max();
        (
            it.uses.iter().map(|it| u64::from(it.count)).sum::<u64>(),
            it.uses.iter().map(|it| it.busy).sum::<u64>(),
            it.uses.iter().filter(|it| it.note != 0).count(),
            it.waits.iter().map(|it| u64::from(it.count)).sum::<u64>(),
            it.waits.iter().map(|it| it.busy).sum::<u64>(),
            it.waits.iter().filter(|it| it.outcome != 0).count(),
            [largest(|it| it.waiting), largest(|it| it.in_use)],
            [area(|it| it.in_use), area(|it| it.waiting), area(|it| it.total)],
        )
    };
    assert_eq!(sums(&picture), sums(&whole));
    let left = [picture.uses.len(), picture.waits.len(), picture.points.len()];
    assert!(left[0] <= 10_000 && left[1] <= 10_000 && left[2] <= 24_000, "{left:?}");
    assert!((FINEST..=(1 << 40) / PARTS).contains(&picture.joined_below));
    assert!(picture.points.iter().all(|it| it.total >= it.in_use + it.pending));
}
