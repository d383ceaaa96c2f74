//! Finds ids in texts, and those among them that there are not.

use std::collections::BTreeSet;

/// What is cited without being in the list, with the last number that there is.
const WITHOUT_RULES: [(&str, u32); 8] =
    [("T", 74), ("SI", 23), ("CF", 52), ("X", 43), ("TF", 21), ("PT", 5), ("LT", 8), ("UT", 5)];

/// What looks like a citation and is none.
const NO_CITATIONS: [&str; 2] = ["UTF", "SHA"];

/// Citations of what there is not, each with its line.
pub(super) fn trouble_with_citations(text: &str, rules: &BTreeSet<&str>) -> Vec<String> {
    let lines = (1..).zip(text.lines());
    let wrong = lines.flat_map(|(number, line)| {
        ids(line).into_iter().filter(|id| !is_there(id, rules)).map(move |id| (number, id))
    });
    wrong.map(|(line, id)| format!("{line}: there is no {id}")).collect()
}

fn is_there(id: &str, rules: &BTreeSet<&str>) -> bool {
    let (family, number) = id.split_once('-').unwrap_or((id, ""));
    let last = WITHOUT_RULES.iter().find(|(own, _)| *own == family).map(|&(_, last)| last);
    let is_number = |last| number.parse().is_ok_and(|number| (1..=last).contains(&number));
    NO_CITATIONS.contains(&family)
        || rules.contains(id)
        || last.is_some_and(|last| number.len() == 2 && is_number(last))
}

/// What looks like an id in a line: one to three capitals, a hyphen, one or two digits. `AU-20 to AU-22` are three.
pub(super) fn ids(line: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut end = 0;
    for (hyphen, _) in line.match_indices('-') {
        let (before, after) = (&line[..hyphen], &line[hyphen + 1..]);
        let family = &before[before.trim_end_matches(|c: char| c.is_ascii_uppercase()).len()..];
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, rest) = after.split_at(digits);
        let begin = hyphen - family.len();
        let stands_alone =
            !line[..begin].ends_with(is_part_of_a_word) && !rest.starts_with(is_part_of_a_word);
        if stands_alone && (1..=3).contains(&family.len()) && (1..=2).contains(&number.len()) {
            if line.get(end..begin) == Some(" to ") {
                let first = ids.last().and_then(|id| id.split_once('-')?.1.parse().ok());
                let between = first.unwrap_or(0) + 1..number.parse::<u32>().unwrap_or(0);
                ids.extend(between.map(|number| format!("{family}-{number:02}")));
            }
            ids.push(format!("{family}-{number}"));
            end = hyphen + 1 + digits;
        }
    }
    ids
}

fn is_part_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || "_-".contains(character)
}

#[test]
fn a_citation_of_what_there_is_not_is_told_with_its_line() {
    let rules = BTreeSet::from(["OP-54", "OP-55"]);
    let right = "OP-55, (T-74) … SI-01: CF-52 X-43, UTF-8, SCRAM-SHA-256, X-5090, a-1, INTER-1";
    assert_eq!(trouble_with_citations(right, &rules), [""; 0]);
    let wrong = "x\n/// OP-54 to OP-56, OP-2, T-75.\n// OTU-05 (SI-00) LG-39\n";
    assert_eq!(
        trouble_with_citations(wrong, &rules),
        ["OP-56", "OP-2", "T-75", "OTU-05", "SI-00", "LG-39"].map(|id| {
            let line = if ["OP-56", "OP-2", "T-75"].contains(&id) { 2 } else { 3 };
            format!("{line}: there is no {id}")
        })
    );
    assert_eq!(ids("AU-20 to AU-22, HS-01"), ["AU-20", "AU-21", "AU-22", "HS-01"]);
}
