//! What a study found.

use std::fmt;
use std::time::Duration;

/// The outcome of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// In the order in which the page has them.
    pub tables: Vec<Table>,
    /// Each becomes a picture.
    pub plots: Vec<Plot>,
}

/// Numbers side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// One for each column.
    pub head: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// # Panics
    ///
    /// When there are not as many cells as columns.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.head.len(), "a cell for each column");
        self.rows.push(cells.into());
    }
}

/// As Markdown has it.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// Lines over a common axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The picture is `docs/studies/NAME.svg`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// From left to right.
    pub across: Axis,
    /// Upwards.
    pub up: Axis,
    /// Where the names of the lines are, out of their way.
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

/// What goes in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it is, with its unit.
    pub name: String,
    /// How numbers lie on it.
    pub scale: Scale,
}

/// How numbers lie on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances are equal differences, from zero.
    Linear,
    /// Equal distances are equal factors; what is below a thousandth counts as that.
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
    /// What the legend calls it.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// The value that so many hundredths of all are not above; zero of none.
pub(super) fn percentile(values: &mut [Duration], hundredths: usize) -> Duration {
    values.sort_unstable();
    let place = (values.len() * hundredths).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}

/// As people write it, with three digits at most.
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

/// With a comma between thousands.
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

/// How often something happened in each stretch of time, as points in seconds and times a second.
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
