//! Rounds that take turns, and their medians.

use std::time::Duration;

/// What one round of one contestant came to, a number for each column of its row.
pub(crate) type Sample = Vec<f64>;

/// A contestant: its name, and one measured round.
pub(crate) type Contestant = (&'static str, Box<dyn FnMut() -> Sample>);

/// One comparison, with the pool made by hand, or with the first contestant if there is none.
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
    /// Whether it is compared.
    pub(crate) is_compared: bool,
}

/// What a row came to: for each contestant its least and its median, both ÷ those of the measure.
pub(crate) struct Outcome {
    pub(crate) row: &'static str,
    pub(crate) ratios: Vec<(&'static str, [f64; 2])>,
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

    /// Lets them take turns. The first round warms up, and does not count. The outcome is that of the
    /// last column that is compared.
    pub(crate) fn report(self, rounds: usize) -> Option<Outcome> {
        let Self { name: row, title, columns, contestants, units: _ } = self;
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
        let by_hand = contestants.iter().position(|(name, _)| name.contains("by hand"));
        let measure = &samples[by_hand.unwrap_or(0)];
        println!("{title} ({row}): {rounds} rounds, ÷ {}", contestants[by_hand.unwrap_or(0)].0);
        let mut outcome = None;
        for (index, column) in columns.iter().enumerate() {
            println!("  {:<36} {:>12}     median    ÷ least   ÷ median", column.name, "least");
            let of = |samples: &[Sample]| samples.iter().map(|it| it[index]).collect::<Vec<_>>();
            let least = |samples: &[Sample]| of(samples).into_iter().fold(f64::INFINITY, f64::min);
            let mut all = Vec::new();
            for ((name, _), own) in contestants.iter().zip(&samples) {
                print!("  {name:<36} {:>12.2} {:>10.2}", least(own), median(of(own).into_iter()));
                if column.is_compared {
                    let pairs = of(own).into_iter().zip(of(measure));
                    let ratios = [least(own) / least(measure), median(pairs.map(|(a, b)| a / b))];
                    print!(" {:>10.2} {:>10.2}", ratios[0], ratios[1]);
                    all.push((*name, ratios));
                }
                println!();
            }
            if column.is_compared {
                outcome = Some(Outcome { row, ratios: all });
            }
        }
        println!();
        outcome
    }
}

/// All rows as one table in Markdown: least · median.
pub(crate) fn print_table(outcomes: &[Outcome]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in outcomes.iter().flat_map(|outcome| &outcome.ratios) {
        if !names.contains(&short(name)) {
            names.push(short(name));
        }
    }
    println!("| |{}", names.iter().map(|name| format!(" {name} |")).collect::<String>());
    println!("|---|{}", "---|".repeat(names.len()));
    for Outcome { row, ratios } in outcomes {
        let cell = |name: &&str| {
            let own = ratios.iter().find(|(other, _)| short(other) == *name);
            own.map_or(" – |".to_owned(), |(_, [least, median])| {
                format!(" {least:.2} · {median:.2} |")
            })
        };
        println!("| `{row}` |{}", names.iter().map(cell).collect::<String>());
    }
}

/// What a contestant is called in a table of several rows.
fn short(name: &str) -> &str {
    match name {
        _ if name.starts_with("bare:") => "bare",
        _ if name.ends_with("by hand") => "by hand",
        _ => name,
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
