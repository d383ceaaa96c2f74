//! What there was of troubles, as people read it: each of a few, or of many what each kind came to.

use std::fmt;
use std::time::Duration;

use cenote_replay::text::span;

use super::timeline::Incident;
use crate::command::output::table;

/// So many lines can be read; the others are in `--json`.
const EACH: usize = 24;

/// See the module.
pub(super) struct Troubles<'a>(pub(super) &'a [Incident]);

impl fmt::Display for Troubles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, rows) = match self.0.len() {
            0 => return Ok(()),
            1..=EACH => (EACH_HEAD, self.0.iter().map(each).collect()),
            _ => (KIND_HEAD, self.kinds()),
        };
        writeln!(f, "{}", table(head, rows, |name| name == "trouble"))
    }
}

const EACH_HEAD: &str = "at|trouble|lasted|hit|closed|refused|failed|cleared|ready|good again";

const KIND_HEAD: &str =
    "trouble|times|hit|closed|refused|failed|cleared|not well|good again|longest";

fn each(incident: &Incident) -> Vec<String> {
    let Incident { trouble, at, hits, closed, refused, failed, .. } = incident;
    let Incident { lasted, cleared, ready, good_again, .. } = incident;
    let mut row =
        vec![format!("{:.2} s", at.as_secs_f64()), (*trouble).to_owned(), or_dash(*lasted)];
    row.extend([hits, closed, refused, failed].map(ToString::to_string));
    row.extend([*cleared, *ready, *good_again].map(or_dash));
    row
}

impl Troubles<'_> {
    /// In the order in which each kind came first.
    fn kinds(&self) -> Vec<Vec<String>> {
        let mut kinds: Vec<(&str, Vec<&Incident>)> = Vec::new();
        for incident in self.0 {
            match kinds.iter_mut().find(|(kind, _)| *kind == incident.trouble) {
                Some((_, those)) => those.push(incident),
                None => kinds.push((incident.trouble, vec![incident])),
            }
        }
        kinds.into_iter().map(|(trouble, those)| kind(trouble, &those)).collect()
    }
}

fn kind(trouble: &str, those: &[&Incident]) -> Vec<String> {
    let mut good: Vec<_> = those.iter().filter_map(|it| it.good_again).collect();
    good.sort_unstable();
    let sum = |count: fn(&Incident) -> u64| those.iter().map(|it| count(it)).sum::<u64>();
    let count = |is: fn(&&&Incident) -> bool| those.iter().filter(is).count() as u64;
    let counts = [
        those.len() as u64,
        sum(|it| it.hits),
        sum(|it| it.closed),
        sum(|it| it.refused),
        sum(|it| it.failed),
        count(|it| it.cleared.is_some()),
        count(|it| it.failed != 0 && it.good_again.is_none()),
    ];
    let mut row = vec![trouble.to_owned()];
    row.extend(counts.map(|count| count.to_string()));
    row.extend([good.get(good.len() / 2), good.last()].map(|time| or_dash(time.copied())));
    row
}

fn or_dash(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incidents(count: usize) -> Vec<Incident> {
        let milliseconds = |number| Some(Duration::from_millis(number));
        let incident = |index: usize| {
            let mut incident = Incident::default();
            incident.trouble = if index.is_multiple_of(2) { "restart" } else { "slow drip" };
            incident.at = Duration::from_secs(index as u64);
            incident.cleared = index.is_multiple_of(4).then(|| Duration::from_millis(1));
            if index.is_multiple_of(2) {
                (incident.hits, incident.closed, incident.failed) = (10, 1, 3);
                incident.good_again = milliseconds(index as u64);
            }
            incident
        };
        (0..count).map(incident).collect()
    }

    #[test]
    fn a_few_have_a_line_each() {
        let told = Troubles(&incidents(3)).to_string();
        assert_eq!(told.lines().count(), 5, "{told}");
        let mut late = incidents(1);
        late[0].at = Duration::from_secs(3600);
        let told = Troubles(&late).to_string();
        assert!(told.contains("\n3600.00 s  restart "), "{told}");
    }

    #[test]
    fn of_many_it_says_what_each_kind_came_to() {
        let told = Troubles(&incidents(100)).to_string();
        let lines: Vec<_> = told.lines().collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words(lines[1]),
            ["restart", "50", "500", "50", "0", "150", "25", "0", "50", "ms", "98", "ms"]
        );
        assert_eq!(words(lines[2]), ["slow", "drip", "50", "0", "0", "0", "0", "0", "0", "-", "-"]);
        assert_eq!(lines.len(), 4, "{told}");
    }
}
