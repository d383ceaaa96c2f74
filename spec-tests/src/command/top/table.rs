//! The table of pools: its columns, and their order.

use clap::ValueEnum;

use super::live::Pool;
use super::rates::{Rate, Rates};
use crate::command::output::milliseconds;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    /// The number of the pool, for --pool
    #[value(name = "#")]
    Pool,
    /// The address of its server
    #[value(name = "pool", alias = "address")]
    Address,
    /// Whether it is ready, paused or closed; REC while it is recorded
    Status,
    /// Connections that are checked out
    InUse,
    /// Connections that can be checked out
    Idle,
    /// Connections that are being opened
    Pending,
    /// maxPoolSize; - if it has no limit
    Max,
    /// Requests that have no connection yet
    Waiting,
    /// How long the oldest of them has waited
    LongestWait,
    /// Check-outs that succeeded, per second
    #[value(name = "outs/s", alias = "check-outs")]
    CheckOuts,
    /// Check-outs that failed, per second
    #[value(name = "fails/s", alias = "failing")]
    Failing,
    /// Check-outs that have failed so far
    Failures,
    /// How often the pool was cleared
    Clears,
}

/// The columns that leave a narrow screen, the first one first. The others, and the one by which it is sorted, stay.
const LEAVING: [Column; 10] = [
    Column::Clears,
    Column::Failures,
    Column::Pending,
    Column::Idle,
    Column::Max,
    Column::CheckOuts,
    Column::Status,
    Column::Failing,
    Column::InUse,
    Column::LongestWait,
];

/// Between two columns.
pub(super) const SPACING: u16 = 2;

/// What is left of an address before a column leaves.
const ADDRESS_MIN: usize = 16;

/// The table as it fits a width.
pub(super) struct Grid {
    pub(super) columns: Vec<Column>,
    pub(super) heads: Vec<String>,
    /// Of pools in their order, a cell for each column.
    pub(super) rows: Vec<Vec<String>>,
    pub(super) widths: Vec<usize>,
}

impl Grid {
    /// `arrow` marks the column by which it is sorted. Numbers are whole, whatever the width.
    pub(super) fn new(
        pools: &[Pool],
        rates: &Rates,
        (sorted, arrow): (Column, &str),
        width: usize,
    ) -> Self {
        let head = |column: Column| match column == sorted {
            true => format!("{}{arrow}", column.title()),
            false => column.title().to_owned(),
        };
        let cell = |column: Column, pool: &Pool| column.cell(pool, rates.of(pool.pool));
        let widest = |column: Column| {
            let cells = pools.iter().map(|pool| cell(column, pool)).chain([head(column)]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let mut columns: Vec<_> =
            Column::value_variants().iter().map(|it| (*it, widest(*it))).collect();
        let needed = |columns: &[(Column, usize)]| {
            let spaces = usize::from(SPACING) * columns.len().saturating_sub(1);
            columns.iter().map(|(_, width)| width).sum::<usize>() + spaces
        };
        let address = widest(Column::Address);
        let may_shrink = address - address.min(ADDRESS_MIN);
        for leaving in LEAVING.into_iter().filter(|it| *it != sorted) {
            if needed(&columns) > width.saturating_add(may_shrink) {
                columns.retain(|(column, _)| *column != leaving);
            }
        }
        let shrinks = needed(&columns).saturating_sub(width).min(may_shrink);
        let fitted = |column: Column, text: String| {
            if column == Column::Address { shortened(&text, address - shrinks) } else { text }
        };
        let row = |pool| columns.iter().map(|(it, _)| fitted(*it, cell(*it, pool))).collect();
        Self {
            rows: pools.iter().map(row).collect(),
            heads: columns.iter().map(|(column, _)| head(*column)).collect(),
            widths: columns
                .iter()
                .map(|(it, width)| if *it == Column::Address { width - shrinks } else { *width })
                .collect(),
            columns: columns.into_iter().map(|(column, _)| column).collect(),
        }
    }
}

/// Without its middle, if it is longer.
fn shortened(text: &str, most: usize) -> String {
    let letters: Vec<_> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let end = most.saturating_sub(1) / 2;
    let beginning = most.saturating_sub(1 + end);
    let first = letters[..beginning].iter();
    first.chain(&['…']).chain(&letters[letters.len() - end..]).collect()
}

impl Column {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Pool => "#",
            Self::Address => "pool",
            Self::Status => "status",
            Self::InUse => "in use",
            Self::Idle => "idle",
            Self::Pending => "pending",
            Self::Max => "max",
            Self::Waiting => "waiting",
            Self::LongestWait => "longest wait",
            Self::CheckOuts => "outs/s",
            Self::Failing => "fails/s",
            Self::Failures => "failures",
            Self::Clears => "clears",
        }
    }

    fn cell(self, pool: &Pool, rate: Rate) -> String {
        self.value(pool, rate).0
    }

    /// What is shown; and the number by which it is sorted, of which the largest comes first. Texts have none.
    fn value(self, pool: &Pool, rate: Rate) -> (String, Option<f64>) {
        let dash = || "-".to_owned();
        let count = |count: u64| (count.to_string(), Some(count as f64));
        match self {
            // The first pool first.
            Self::Pool => (pool.pool.to_string(), Some(-(pool.pool as f64))),
            Self::Address => (pool.address.clone(), None),
            Self::Status if pool.recorded => (format!("{} REC", pool.status), None),
            Self::Status => (pool.status.clone(), None),
            Self::InUse => count(pool.in_use),
            Self::Idle => count(pool.idle),
            Self::Pending => count(pool.pending),
            Self::Max => pool.max_pool_size.map_or_else(|| (dash(), Some(f64::INFINITY)), count),
            Self::Waiting => count(pool.waiting),
            Self::LongestWait => {
                let wait = pool.longest_wait;
                (wait.map_or_else(dash, milliseconds), Some(wait.unwrap_or(-1.0)))
            }
            Self::CheckOuts => (per_second(rate.check_outs), Some(rate.check_outs)),
            Self::Failing => (per_second(rate.failures), Some(rate.failures)),
            Self::Failures => count(pool.failed()),
            Self::Clears => count(pool.clears),
        }
    }

    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Address | Self::Status)
    }

    /// The column beside it.
    pub(super) fn neighbour(self, step: isize) -> Self {
        let all = Self::value_variants();
        let place = all.iter().position(|it| *it == self).unwrap_or_default();
        all[place.saturating_add_signed(step).min(all.len() - 1)]
    }
}

/// The pools in the order of a column; those that are equal in the order of their numbers.
pub(super) fn sorted(
    pools: &[Pool],
    rates: &Rates,
    column: Column,
    is_reversed: bool,
) -> Vec<Pool> {
    let mut pools = pools.to_vec();
    pools.sort_by(|one, other| {
        let value = |pool: &Pool| column.value(pool, rates.of(pool.pool));
        let order = match (value(one), value(other)) {
            ((_, Some(one)), (_, Some(other))) => other.total_cmp(&one),
            ((one, _), (other, _)) => one.cmp(&other),
        };
        let order = if is_reversed { order.reverse() } else { order };
        order.then(one.pool.cmp(&other.pool))
    });
    pools
}

fn per_second(rate: f64) -> String {
    if rate == 0.0 || rate >= 9.95 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(number: usize, address: &str, waiting: u64, longest: Option<f64>) -> Pool {
        let pool = json!({
            "pool": number, "address": address, "status": "ready", "generation": 0, "total": 3,
            "inUse": 2, "idle": 1, "pending": 0, "waiting": waiting, "longestWaitMS": longest,
            "maxPoolSize": 3, "maxConnecting": 2, "checkOuts": 7, "created": 3, "clears": 0,
            "failures": { "timeout": 1, "connectionError": 2, "cleared": 3, "closed": 4 },
            "flightRecorder": false, "recorded": false, "aFieldOfTomorrow": true,
        });
        serde_json::from_value(pool).expect("a pool")
    }

    #[test]
    fn the_largest_number_comes_first_and_equal_pools_keep_their_order() {
        let pools = [pool(1, "b", 0, None), pool(2, "a", 9, Some(3.0)), pool(3, "c", 0, Some(4.0))];
        let order = |column, is_reversed| {
            let sorted = sorted(&pools, &Rates::default(), column, is_reversed);
            sorted.iter().map(|pool| pool.pool).collect::<Vec<_>>()
        };
        assert_eq!(order(Column::Waiting, false), [2, 1, 3]);
        assert_eq!(order(Column::Waiting, true), [1, 3, 2]);
        assert_eq!(order(Column::LongestWait, false), [3, 2, 1]);
        assert_eq!(order(Column::Address, false), [2, 1, 3]);
        assert_eq!(order(Column::Pool, false), [1, 2, 3]);
        assert_eq!(order(Column::Clears, false), [1, 2, 3]);
    }

    #[test]
    fn every_number_is_whole_whatever_the_width() {
        let longest = Some(47.4);
        let pools = [
            pool(1, "cluster0-shard-00-02.ab1cd.example.net:27017", 123, longest),
            pool(2, "[2001:db8::1]:27017", 0, None),
        ];
        let grid = |width| Grid::new(&pools, &Rates::default(), (Column::Clears, "v"), width);
        let whole = grid(usize::MAX);
        assert_eq!(whole.columns.len(), Column::value_variants().len());
        assert_eq!(whole.rows[0][1], "cluster0-shard-00-02.ab1cd.example.net:27017");
        for width in 60..200 {
            let grid = grid(width);
            let taken: usize = grid.widths.iter().map(|width| width + usize::from(SPACING)).sum();
            assert!(taken <= width + usize::from(SPACING), "{width}: {taken}");
            assert!(grid.columns.contains(&Column::Clears), "it is sorted by it");
            for (row, of_whole) in grid.rows.iter().zip(&whole.rows) {
                for ((column, cell), width) in grid.columns.iter().zip(row).zip(&grid.widths) {
                    let place =
                        whole.columns.iter().position(|it| it == column).expect("it is there");
                    assert!(cell.chars().count() <= *width, "{cell}");
                    assert!(*column == Column::Address || *cell == of_whole[place], "{cell}");
                }
            }
        }
        let [narrow, wide] = [grid(80), grid(100)];
        assert_eq!(
            narrow.heads.join(" "),
            "# pool status in use waiting longest wait fails/s clearsv"
        );
        assert_eq!(narrow.rows[0][1], "cluster0-s…net:27017");
        assert_eq!(narrow.rows[0][4..6], ["123", "47.4 ms"]);
        assert_eq!(wide.columns.len(), narrow.columns.len() + 3);
    }

    #[test]
    fn cells_are_short() {
        let pool = pool(1, "a", 9, Some(1234.5));
        let rate = Rate { check_outs: 12_345.6, failures: 0.25 };
        let cells = Column::value_variants().iter().map(|column| column.cell(&pool, rate));
        let cells: Vec<_> = cells.collect();
        assert_eq!(
            cells,
            ["1", "a", "ready", "2", "1", "0", "3", "9", "1.23 s", "12346", "0.2", "10", "0"]
        );
    }

    #[test]
    fn the_first_and_the_last_column_have_no_further_neighbour() {
        assert_eq!(Column::Pool.neighbour(-1), Column::Pool);
        assert_eq!(Column::Pool.neighbour(1), Column::Address);
        assert_eq!(Column::Clears.neighbour(1), Column::Clears);
    }
}
