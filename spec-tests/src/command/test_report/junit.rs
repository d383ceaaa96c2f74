//! The report as JUnit XML, which every continuous integration shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{FAILED, File, Report, Test};
use crate::formats::Reason;

/// A suite for each file and target, in the order of their names.
pub(in crate::command) fn xml(report: &Report) -> String {
    let mut suites: BTreeMap<(&str, &str), Vec<&Test>> = BTreeMap::new();
    for test in &report.tests {
        suites.entry((&test.file, test.target)).or_default().push(test);
    }
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let (failed, errors) = (report.failed, report.counts.unreadable);
    let unplayed = report.files.iter().filter(|file| file.unplayed.is_some()).count();
    let tests = report.tests.len() + unplayed;
    let _ = writeln!(
        xml,
        "<testsuites name=\"conform\" tests=\"{tests}\" failures=\"{failed}\" errors=\"{errors}\">"
    );
    for ((file, target), tests) in suites {
        let failed = tests.iter().filter(|test| test.verdict == FAILED).count();
        let skipped = tests.iter().filter(|test| does_not_count(test)).count();
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{} on {target}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\">",
            escape(file),
            tests.len(),
        );
        tests.into_iter().for_each(|test| case(&mut xml, test));
        xml.push_str("  </testsuite>\n");
    }
    for File { file, unplayed, .. } in &report.files {
        let Some(reason) = unplayed else { continue };
        let (element, errors, why) = match reason {
            Reason::NotApplicable(why) => ("skipped", 0, format!("not applicable: {why}")),
            Reason::LeftOut(why) => ("skipped", 0, format!("left out: {why}")),
            Reason::Unreadable(why) => ("error", 1, why.clone()),
        };
        let (file, why) = (escape(file), escape(&why));
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{file}\" tests=\"1\" failures=\"0\" errors=\"{errors}\" skipped=\"{}\">\n    \
             <testcase classname=\"{file}\" name=\"the whole file\"><{element} message=\"{why}\"/></testcase>\n  \
             </testsuite>",
            1 - errors,
        );
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn case(xml: &mut String, test: &Test) {
    let Test { file, target, description, because, .. } = test;
    let _ = write!(
        xml,
        "    <testcase classname=\"{}.{target}\" name=\"{}\"",
        escape(file),
        escape(description)
    );
    let because = escape(because.as_deref().unwrap_or_default());
    let _ = if test.verdict == FAILED {
        writeln!(xml, "><failure message=\"failed\">{because}</failure></testcase>")
    } else if does_not_count(test) {
        let verdict = test.verdict;
        writeln!(xml, "><skipped message=\"{verdict}: {because}\"/></testcase>")
    } else {
        writeln!(xml, "/>")
    };
}

/// Neither passed nor failed: what JUnit calls skipped, whatever the reason.
fn does_not_count(test: &Test) -> bool {
    test.verdict != FAILED && test.because.is_some()
}

/// Text in XML 1.0, which has nothing for most control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::xml;
    use crate::command::test_report::Report;
    use crate::formats::{Outcome, Played, Target, Verdict};

    #[test]
    fn every_verdict_has_its_element() {
        let outcome = |description: &str, verdict| Outcome {
            file: "some/tests/a<b.json".into(),
            target: Target::Core,
            description: description.to_owned(),
            verdict,
        };
        let outcomes = vec![
            outcome("good", Verdict::Passed),
            outcome("bad", Verdict::Failed("saw \"1\" & \u{1}\nmore".to_owned())),
            outcome("none", Verdict::NotApplicable("no".to_owned())),
        ];
        let report = Report::new(Played { outcomes, unplayed: Vec::new() });
        let xml = xml(&report);
        for part in [
            "<testsuites name=\"conform\" tests=\"3\" failures=\"1\" errors=\"0\">",
            "a&lt;b on core\" tests=\"3\" failures=\"1\" skipped=\"1\">",
            "name=\"good\"/>",
            "name=\"bad\"><failure message=\"failed\">saw &quot;1&quot; &amp; \u{fffd}&#10;more</failure>",
            "<skipped message=\"not applicable: no\"/>",
        ] {
            assert!(xml.contains(part), "no {part} in\n{xml}");
        }
    }
}
