//! What there was of troubles, as people read it: each of a few, or of many what each kind came to.

use std::fmt;
use std::time::Duration;

use cenote_replay::text::span;

use super::timeline::Incident;

/// So many lines can be read; the others are in `--json`.
const EACH: usize = 24;

/// See the module.
pub(super) struct Troubles<'a>(pub(super) &'a [Incident]);

impl fmt::Display for Troubles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => Ok(()),
            1..=EACH => self.each(f),
            _ => self.kinds(f),
        }
    }
}

impl Troubles<'_> {
    fn each(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<10}{:<30}{:>8}{:>6}{:>8}{:>9}{:>8}{:>10}{:>10}{:>12}",
            "at",
            "trouble",
            "lasted",
            "hit",
            "closed",
            "refused",
            "failed",
            "cleared",
            "ready",
            "good again"
        )?;
        for incident in self.0 {
            let Incident { trouble, at, lasted, cleared, ready, good_again, .. } = incident;
            let Incident { hits, closed, refused, failed, .. } = incident;
            let [lasted, cleared, ready, good] =
                [*lasted, *cleared, *ready, *good_again].map(or_dash);
            let at = format!("{:.2} s", at.as_secs_f64());
            writeln!(
                f,
                "{at:<10}{trouble:<30}{lasted:>8}{hits:>6}{closed:>8}{refused:>9}{failed:>8}\
                 {cleared:>10}{ready:>10}{good:>12}"
            )?;
        }
        writeln!(f)
    }

    /// In the order in which each kind came first.
    fn kinds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<30}{:>6}{:>8}{:>8}{:>9}{:>8}{:>9}{:>10}{:>12}{:>10}",
            "trouble",
            "times",
            "hit",
            "closed",
            "refused",
            "failed",
            "cleared",
            "not well",
            "good again",
            "longest"
        )?;
        let mut seen = Vec::new();
        for Incident { trouble, .. } in self.0 {
            if seen.contains(trouble) {
                continue;
            }
            seen.push(*trouble);
            let those: Vec<_> = self.0.iter().filter(|it| it.trouble == *trouble).collect();
            let mut good: Vec<_> = those.iter().filter_map(|it| it.good_again).collect();
            good.sort_unstable();
            let cleared = those.iter().filter(|it| it.cleared.is_some()).count();
            let sum = |count: fn(&Incident) -> u64| those.iter().map(|it| count(it)).sum::<u64>();
            let [hits, closed, refused, failed] =
                [sum(|it| it.hits), sum(|it| it.closed), sum(|it| it.refused), sum(|it| it.failed)];
            let is_not_well = |it: &&&Incident| it.failed != 0 && it.good_again.is_none();
            let not_well = those.iter().filter(is_not_well).count();
            let [middle, longest] =
                [good.get(good.len() / 2), good.last()].map(Option::<&_>::copied);
            let (middle, longest) = (or_dash(middle), or_dash(longest));
            writeln!(
                f,
                "{trouble:<30}{:>6}{hits:>8}{closed:>8}{refused:>9}{failed:>8}{cleared:>9}\
                 {not_well:>10}{middle:>12}{longest:>10}",
                those.len()
            )?;
        }
        writeln!(f)
    }
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
            incident.trouble = if index % 2 == 0 { "restart" } else { "slow drip" };
            incident.at = Duration::from_secs(index as u64);
            incident.cleared = (index % 4 == 0).then(|| Duration::from_millis(1));
            if index % 2 == 0 {
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
        assert!(told.contains("\n3600.00 s restart "), "{told}");
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
