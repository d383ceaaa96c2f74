//! The README's figures are those of the pages that it links, and it is short.

use super::packages::{root, text};

const WORDS_MAX: usize = 1_200;

/// The part of a page below a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).expect(heading);
    below.split("\n## ").next().expect("a part")
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Numbers with their fraction and separators, such as `7,982` and `0.22`.
fn numbers(part: &str) -> impl Iterator<Item = &str> {
    let is_inside = |char: char| char.is_ascii_digit() || char == ',' || char == '.';
    part.split(move |char| !is_inside(char))
        .map(|number| number.trim_matches([',', '.']))
        .filter(|number| number.contains(|char: char| char.is_ascii_digit()))
}

#[test]
fn it_is_read_in_a_few_minutes() {
    let words = text(&root().join("README.md")).split_whitespace().count();
    assert!(words <= WORDS_MAX, "{words} words");
}

#[test]
fn its_explanation_is_that_of_the_problem_page() {
    let readme = text(&root().join("README.md"));
    let (_, block) =
        section(&readme, "Why did it time out?").split_once("```text\n").expect("text");
    let (explanation, _) = block.split_once("```").expect("an end");
    assert!(explanation.contains("-> "), "{explanation}");
    assert!(text(&root().join("docs/start/problem.md")).contains(explanation), "{explanation}");
}

#[test]
fn its_figures_of_drivers_are_those_of_their_page() {
    let readme = text(&root().join("README.md"));
    let page = text(&root().join("docs/in-your-driver.md"));
    let table: Vec<_> = section(&readme, "In official drivers")
        .lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("| |") && !line.starts_with("|-"))
        .collect();
    assert!(table.len() > 5, "{table:?}");
    for row in table {
        for figure in cells(row)[1..].iter().flat_map(|cell| numbers(cell)) {
            let is_there = numbers(&page).any(|number| number.starts_with(figure));
            assert!(is_there, "docs/in-your-driver.md has no {figure}: {row}");
        }
    }
}

#[test]
fn its_counts_of_planted_bugs_are_those_of_the_matrix() {
    let page = text(&root().join("docs/audit/mutations.md"));
    let (_, matrix) = page.split_once("from here -->\n").expect("a matrix");
    let rows = matrix.lines().filter(|line| line.starts_with('|')).skip(2);
    let bugs: Vec<_> = rows.map(cells).collect();
    // Bugs in the shells are played with the last tool alone.
    let of_core: Vec<_> = bugs.iter().filter(|bug| !bug[2].is_empty()).collect();
    let is_time = |cell: &str| cell.starts_with(|it: char| it.is_ascii_digit());
    let noticed = |number: usize| of_core.iter().filter(|bug| is_time(bug[number])).count();
    let (all, official, of_core) = (bugs.len(), noticed(2), of_core.len());
    let (readme, design) = (text(&root().join("README.md")), text(&root().join("DESIGN.md")));
    assert!(readme.contains(&format!("[{all} planted bugs]")), "{all}");
    assert!(readme.contains(&format!("notice {official} of {of_core}")), "{official}, {of_core}");
    let numbered = section(&design, "What is proved, and how");
    assert!(numbered.contains(&format!("of {of_core} |")), "{of_core}");
    let expected = [vec![2], vec![4], vec![5], vec![6], vec![1, 7], vec![8]];
    let rows = numbered.lines().filter(|line| line.starts_with('|')).skip(2).map(cells);
    for (row, columns) in rows.zip(expected) {
        let counts: Vec<_> = columns.iter().map(|it| noticed(*it).to_string()).collect();
        assert_eq!(*row.last().expect("a cell"), counts.join("; "), "{row:?}");
    }
}

#[test]
fn its_ratios_are_those_of_the_comparison() {
    let page = text(&root().join("COMPARE.md"));
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    let head = rows.iter().find(|row| row[0].starts_with("least")).expect("a head");
    let pair = rows.iter().find(|row| row[0] == "pair, alone").expect("a row");
    let least = |name: &str| -> f64 {
        let place = head.iter().position(|it| *it == name).expect(name);
        pair[place].split(' ').next().expect("a ratio").parse().expect("a number")
    };
    let percent = |this, other| format!("{:.0} %", 100.0 * least(this) / least(other));
    let readme = text(&root().join("README.md"));
    for (ratio, of) in [
        (percent("**cenote**", "deadpool"), "of deadpool's time"),
        (percent("**timed**", "with a timeout"), "of deadpool's with a timeout"),
        (percent("**timed, a subscriber**", "with a timeout"), ""),
    ] {
        assert!(readme.contains(format!("{ratio} {of}").trim_end()), "{ratio} {of}");
    }
}
