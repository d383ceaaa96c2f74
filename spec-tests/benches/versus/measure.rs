//! Rounds that take turns, and their medians.

use std::time::Duration;

/// What one round of one contestant came to, a number for each column of its row.
pub(crate) type Sample = Vec<f64>;

/// A contestant: its name, and one measured round.
pub(crate) type Contestant = (&'static str, Box<dyn FnMut() -> Sample>);

/// One comparison. The first contestant is the measure of the others.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    title: &'static str,
    columns: Vec<Column>,
    /// How many units a round is made of, where it takes one thread and its instructions can be
    /// [counted](crate::counted).
    pub(crate) units: Option<u32>,
    contestants: Box<dyn FnOnce() -> Vec<Contestant>>,
}

pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Whether it is compared with the first contestant of the same round.
    pub(crate) is_compared: bool,
}

impl Row {
    /// With the time for one unit as its only column, in nanoseconds.
    pub(crate) fn new(
        name: &'static str,
        title: &'static str,
        contestants: impl FnOnce() -> Vec<Contestant> + 'static,
    ) -> Self {
        let columns = vec![Column { name: "ns", is_compared: true }];
        Self { name, title, columns, units: None, contestants: Box::new(contestants) }
    }

    pub(crate) fn with_columns(self, columns: Vec<Column>) -> Self {
        Self { columns, ..self }
    }

    pub(crate) fn counted_in(self, units: u32) -> Self {
        Self { units: Some(units), ..self }
    }

    pub(crate) fn title(&self) -> &'static str {
        self.title
    }

    pub(crate) fn contestants(self) -> Vec<Contestant> {
        (self.contestants)()
    }

    /// Lets them take turns. The first round warms up, and does not count.
    pub(crate) fn report(self, rounds: usize) {
        let Self { name, title, columns, contestants, units: _ } = self;
        let mut contestants = contestants();
        let mut samples = vec![Vec::with_capacity(rounds); contestants.len()];
        for round in 0..=rounds {
            for ((_, run), samples) in contestants.iter_mut().zip(&mut samples) {
                // The second time it finds the heap as it leaves it itself, and not as the contestant
                // before does: with many tasks that makes a difference of up to a half.
                run();
                let sample = run();
                assert_eq!(sample.len(), columns.len(), "a number for each column");
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
        println!("{title} ({name}): medians of {rounds} rounds");
        print!("  {:<44}", "");
        for column in &columns {
            print!(" {:>12}{}", column.name, if column.is_compared { "   ÷ bare" } else { "" });
        }
        println!();
        for ((name, _), own) in contestants.iter().zip(&samples) {
            print!("  {name:<44}");
            for (index, column) in columns.iter().enumerate() {
                print!(" {:>12.2}", median(own.iter().map(|sample| sample[index])));
                if column.is_compared {
                    let ratios = own.iter().zip(&samples[0]).map(|(a, b)| a[index] / b[index]);
                    print!("{:>9.2}", median(ratios));
                }
            }
            println!();
        }
        println!();
    }
}

pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of this thread, as Linux counts it.
pub(crate) fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first number is the time on a CPU"))
}
