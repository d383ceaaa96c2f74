//! Usage errors, as one line.

use clap::error::ErrorKind;

use super::output::tell;

/// Prints what clap has to say, and gives the exit status: help and version are what was asked for,
/// and everything else is one line on standard error.
pub(super) fn answer(error: &clap::Error, known: &clap::Command) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // If that fails, there is nowhere to report it.
        let _ = error.print();
        return 0;
    }
    let said = summary(&error.render().to_string());
    fail(&format!("{said}; see `{} --help`", called(known)))
}

/// Says in one line what keeps a command from doing what it was asked for, and gives the exit status.
pub(super) fn fail(why: &str) -> u8 {
    tell(format_args!("cenote: {}", in_one_line(why)));
    2
}

/// What is wrong, and what may have been meant. clap says that in paragraphs, and goes on with how
/// the command is used and a hint at `--help`.
fn summary(rendered: &str) -> String {
    let paragraphs = rendered.split("\n\n").map(in_one_line);
    let is_more = |text: &String| text.starts_with("Usage:") || text.starts_with("For more");
    let said = paragraphs.take_while(|paragraph| !is_more(paragraph));
    let said: Vec<_> = said.map(|text| text.trim_start_matches("error: ").to_owned()).collect();
    in_plain_words(&said.join("; "))
}

/// What the standard library says of numbers is meant for programmers.
fn in_plain_words(said: &str) -> String {
    said.replace("number too large to fit in target type", "the number is too large")
        .replace("invalid digit found in string", "a whole number is expected, not below 0")
        .replace("number would be zero for non-zero type", "a whole number above 0 is expected")
        .replace("cannot parse integer from empty string", "a whole number is expected")
}

/// The command as far as it is one: clap does not always say which it was.
fn called(known: &clap::Command) -> String {
    let name = std::env::args_os().nth(1).and_then(|name| name.into_string().ok());
    let name = name.filter(|name| known.find_subcommand(name).is_some());
    name.map_or("cenote".to_owned(), |name| format!("cenote {name}"))
}

/// Lines put behind each other.
fn in_one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
