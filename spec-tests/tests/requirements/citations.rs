//! Finds ids in texts, and those among them that there are not.

use super::is_rule;

/// What else is cited, with the last number that there is.
const WITHOUT_ROWS: [(&str, u32); 8] =
    [("T", 74), ("SI", 23), ("CF", 52), ("X", 43), ("TF", 21), ("PT", 5), ("LT", 8), ("UT", 5)];

/// What looks like a citation and is none.
const NO_CITATIONS: [&str; 2] = ["UTF", "SHA"];

/// Citations of what there is not, each with its line.
pub(super) fn trouble_with_citations(text: &str) -> Vec<String> {
    let mut trouble = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let wrong =
            citations(text).into_iter().filter(|(family, number)| !is_there(family, number));
        trouble
            .extend(wrong.map(|(family, number)| format!("{line}: there is no {family}-{number}")));
    }
    trouble
}

pub(super) fn is_there(family: &str, number: &str) -> bool {
    if NO_CITATIONS.contains(&family) {
        return true;
    }
    let last = WITHOUT_ROWS.iter().find(|(own, _)| *own == family).map(|&(_, last)| last);
    match last {
        Some(last) => {
            number.len() == 2 && number.parse().is_ok_and(|number| (1..=last).contains(&number))
        }
        None => is_rule(&format!("{family}-{number}")),
    }
}

/// What looks like an id in a line: one to three capitals, a hyphen, one or two digits.
fn citations(line: &str) -> Vec<(&str, &str)> {
    line.match_indices('-')
        .filter_map(|(hyphen, _)| {
            let before = &line[..hyphen];
            let after = &line[hyphen + 1..];
            let family = &before[before.trim_end_matches(|c: char| c.is_ascii_uppercase()).len()..];
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (number, rest) = after.split_at(digits);
            let stands_alone = !before[..before.len() - family.len()].ends_with(is_part_of_a_word)
                && !rest.starts_with(is_part_of_a_word);
            let looks_right = (1..=3).contains(&family.len()) && (1..=2).contains(&number.len());
            (stands_alone && looks_right).then_some((family, number))
        })
        .collect()
}

fn is_part_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || "_-".contains(character)
}

#[test]
fn a_citation_of_what_there_is_not_is_told_with_its_line() {
    let right = "OP-55, (T-74) … SI-01: CF-52 X-43, UTF-8, SCRAM-SHA-256, X-5090, a-1, INTER-1";
    assert_eq!(trouble_with_citations(right), [""; 0]);
    let wrong = "x\n/// OP-56, OP-2, T-75.\n// OTU-05 (SI-00) LG-39\n";
    assert_eq!(
        trouble_with_citations(wrong),
        ["OP-56", "OP-2", "T-75", "OTU-05", "SI-00", "LG-39"].map(|id| {
            let line = if ["OP-56", "OP-2", "T-75"].contains(&id) { 2 } else { 3 };
            format!("{line}: there is no {id}")
        })
    );
}
