//! The results of a study.

use std::fmt;
use std::time::Duration;

/// The outcome of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The tables, in the order of the page.
    pub tables: Vec<Table>,
    /// The plots, each of which becomes a picture.
    pub plots: Vec<Plot>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// # Panics
    ///
    /// If the number of cells is not that of the columns.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.head.len(), "a cell for each column");
        self.rows.push(cells.into());
    }
}

/// As Markdown.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// A plot of lines with common axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The picture is `docs/studies/NAME.svg`.
    pub name: String,
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub across: Axis,
    /// The vertical axis.
    pub up: Axis,
    /// The corner of the legend, away from the lines.
    pub legend: Corner,
    /// The lines.
    pub series: Vec<Series>,
}

/// A corner of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// On the left.
    UpperLeft,
    /// On the right.
    UpperRight,
    /// On the right, half way up.
    Right,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The quantity, with its unit.
    pub name: String,
    /// The scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic; numbers below 0.001 count as that.
    Logarithmic,
    /// 0, 1, 2, … with these names.
    Steps(Vec<String>),
}

impl Axis {
    pub(super) fn linear(name: &str) -> Self {
        Self { name: name.to_owned(), scale: Scale::Linear }
    }

    pub(super) fn logarithmic(name: &str) -> Self {
        Self { name: name.to_owned(), scale: Scale::Logarithmic }
    }

    pub(super) fn steps(name: &str, steps: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.to_owned(), scale: Scale::Steps(steps.into_iter().collect()) }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The horizontal axis.
    pub points: Vec<(f64, f64)>,
}

/// The percentile of the values; zero if there are none.
pub(super) fn percentile(values: &mut [Duration], hundredths: usize) -> Duration {
    values.sort_unstable();
    let place = (values.len() * hundredths).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}

/// A duration with at most three digits.
pub(super) fn time(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0 => "0".to_owned(),
        1..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..100_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => format!("{} s", micros / 1_000_000),
    }
}

/// A number with commas between thousands.
pub(super) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The rate of events in each interval, as points in seconds and events per second.
pub(super) fn rate(
    times: impl Iterator<Item = Duration>,
    stretch: Duration,
    end: Duration,
) -> Vec<(f64, f64)> {
    let places = usize::try_from(end.as_nanos().div_ceil(stretch.as_nanos())).unwrap_or(0);
    let mut counts = vec![0_u32; places];
    for time in times {
        let place = usize::try_from(time.as_nanos() / stretch.as_nanos()).unwrap_or(usize::MAX);
        if let Some(count) = counts.get_mut(place) {
            *count += 1;
        }
    }
    let seconds = stretch.as_secs_f64();
    let points = counts.iter().enumerate();
    points.map(|(place, &count)| (place as f64 * seconds, f64::from(count) / seconds)).collect()
}
