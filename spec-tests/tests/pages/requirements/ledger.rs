//! The table of all rules, what is missing in it, and its counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::citations::Citations;
use super::rules::{Family, Rule};

/// Rules, with where they are cited and the tests that are known to notice a bug on them.
pub(super) struct Ledger<'a> {
    pub families: &'a [Family],
    pub citations: &'a BTreeMap<String, Citations>,
    /// By the rule.
    pub proved: &'a BTreeMap<String, Vec<String>>,
}

impl Ledger<'_> {
    /// The whole table.
    pub(super) fn table(&self) -> String {
        let mut table = "# Requirements\n".to_owned();
        for family in self.families {
            let _ = write!(
                table,
                "\n## {} ({})\n\n| id | rule | code | test | through a shell | proof |\n|---|---|---|---|---|---|\n",
                family.title, family.name
            );
            for rule in &family.rules {
                let _ = writeln!(table, "| {} | {} | {} |", rule.id, rule.text, self.cells(rule));
            }
        }
        table
    }

    fn cells(&self, rule: &Rule) -> String {
        let nowhere = Citations::default();
        let Citations { code, test, through_a_shell } = self.of(rule).unwrap_or(&nowhere);
        let code = rule.elsewhere.iter().chain(code).cloned().collect::<Vec<_>>();
        let proof = match self.proved.get(&rule.id) {
            Some(tests) => format!("`{}`", tests.join("`, `")),
            None if test.is_empty() && through_a_shell.is_empty() => String::new(),
            None => "cited".to_owned(),
        };
        [code.join(", "), test.join(", "), through_a_shell.join(", "), proof].join(" | ")
    }

    fn of(&self, rule: &Rule) -> Option<&Citations> {
        self.citations.get(&rule.id)
    }

    /// What rules of this workspace lack.
    pub(super) fn trouble(&self) -> Vec<String> {
        let rules = self.families.iter().flat_map(|family| &family.rules);
        let own = rules.filter(|rule| rule.elsewhere.is_none());
        own.flat_map(|rule| {
            let has = |of: fn(&Citations) -> &Vec<String>| {
                self.of(rule).is_some_and(|citations| !of(citations).is_empty())
            };
            let is_shown = has(|it| &it.through_a_shell);
            let lacks = [
                (!has(|it| &it.code), "code"),
                (!is_shown && !has(|it| &it.test), "test"),
                (!is_shown && !rule.is_core, "test through a shell"),
            ];
            let lacks = lacks.into_iter().filter(|(lacks, _)| *lacks);
            lacks.map(|(_, what)| format!("{} has no {what}", rule.id)).collect::<Vec<_>>()
        })
        .collect()
    }

    /// How many rules of each family have what.
    pub(super) fn counts(&self) -> String {
        let mut page = "| | rules | MUST | elsewhere | not kept | code | test | through a shell | proved |\n|---|---|---|---|---|---|---|---|---|\n".to_owned();
        for family in self.families {
            let _ = writeln!(
                page,
                "| {} ({}) | {} |",
                family.title.split(" (").next().unwrap_or_default(),
                family.name,
                self.row(&family.rules)
            );
        }
        let all: Vec<&Rule> = self.families.iter().flat_map(|family| &family.rules).collect();
        let _ = writeln!(page, "| **all** | {} |", self.row(all));
        page
    }

    fn row<'r>(&self, rules: impl IntoIterator<Item = &'r Rule>) -> String {
        let mut counts = [0; 8];
        for rule in rules {
            let is_unkept = rule.elsewhere.as_ref().is_some_and(|it| it.starts_with("not kept"));
            let citations = self.of(rule);
            let has_test = |it: &Citations| !it.test.is_empty() || !it.through_a_shell.is_empty();
            let holds = [
                true,
                rule.is_must,
                rule.elsewhere.is_some() && !is_unkept,
                is_unkept,
                citations.is_some_and(|it| !it.code.is_empty()),
                citations.is_some_and(has_test),
                citations.is_some_and(|it| !it.through_a_shell.is_empty()),
                self.proved.contains_key(&rule.id),
            ];
            counts.iter_mut().zip(holds).for_each(|(count, holds)| *count += u32::from(holds));
        }
        counts.map(|count| count.to_string()).join(" | ")
    }
}

#[test]
fn a_rule_without_code_or_test_is_told() {
    let list =
        "OP: Options (a)\nOP-01 r\nOP-02 r [core]\nOP-03 r [client]\nOP-04 r [not kept: why]\n";
    let families = super::rules::parse(list).expect("it is right");
    let here = || vec!["here".to_owned()];
    let mut citations = BTreeMap::new();
    let proved = BTreeMap::from([("OP-02".to_owned(), vec!["test".to_owned()])]);
    let nothing = BTreeMap::new();
    let ledger = Ledger { families: &families, citations: &nothing, proved: &proved };
    assert_eq!(
        ledger.trouble(),
        [
            "OP-01 has no code",
            "OP-01 has no test",
            "OP-01 has no test through a shell",
            "OP-02 has no code",
            "OP-02 has no test"
        ]
    );
    for id in ["OP-01", "OP-02"] {
        let test = Citations { code: here(), test: here(), ..Citations::default() };
        citations.insert(id.to_owned(), test);
    }
    let ledger = Ledger { families: &families, citations: &citations, proved: &proved };
    assert_eq!(ledger.trouble(), ["OP-01 has no test through a shell"]);
    assert!(ledger.table().contains("| OP-02 | r | here | here |  | `test` |\n"));
    assert!(ledger.table().contains("| OP-01 | r | here | here |  | cited |\n"));
    assert!(ledger.counts().ends_with("| **all** | 4 | 0 | 1 | 1 | 2 | 2 | 0 | 1 |\n"));
}
