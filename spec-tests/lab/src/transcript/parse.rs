//! Splits a transcript into prose, and blocks of commands with their answers.

/// Separates the commands of a block from the answer.
pub(super) const RULE: &str = "----";

/// A part of a transcript. Answers are left out, because playing creates them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A comment or an empty line.
    Prose(&'a str),
    Block(Block<'a>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'a> {
    /// The commands with their line numbers, from 1.
    pub(super) commands: Vec<(usize, &'a str)>,
}

/// # Errors
///
/// The line and the error.
pub(super) fn parts(text: &str) -> Result<Vec<Part<'_>>, (usize, String)> {
    let mut parts = Vec::new();
    let mut lines = text.lines().map(str::trim_end).zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        if is_prose(line) {
            parts.push(Part::Prose(line));
            continue;
        }
        if line == RULE {
            return Err((number, format!("no command in front of {RULE}")));
        }
        let mut commands = vec![(number, line)];
        while let Some((line, number)) = lines.next_if(|(line, _)| !is_prose(line) && *line != RULE)
        {
            commands.push((number, line));
        }
        if lines.next_if(|(line, _)| *line == RULE).is_none() {
            return Err((number, format!("the block that begins here lacks its {RULE}")));
        }
        while lines.next_if(|(line, _)| !line.is_empty()).is_some() {}
        parts.push(Part::Block(Block { commands }));
    }
    Ok(parts)
}

fn is_prose(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_dropped_and_prose_stays() {
        let found = parts("# Title\n\nready\nclose\n----\nold\n\n# End\n");
        let block = Block { commands: vec![(3, "ready"), (4, "close")] };
        let expected = [
            Part::Prose("# Title"),
            Part::Prose(""),
            Part::Block(block),
            Part::Prose(""),
            Part::Prose("# End"),
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_block_without_a_rule_is_named() {
        assert_eq!(parts("# x\n\nready\n\n").unwrap_err().0, 3);
    }
}
