//! Reads `spec-tests/requirements.txt`.

/// What concerns one subject, such as checking out.
pub(super) struct Family {
    /// How its ids begin.
    pub name: String,
    /// The subject, and the specifications that it is of.
    pub title: String,
    pub rules: Vec<Rule>,
}

pub(super) struct Rule {
    pub id: String,
    pub text: String,
    pub is_must: bool,
    /// No shell can lose it.
    pub is_core: bool,
    /// What keeps it, if not this workspace; or why nothing does.
    pub elsewhere: Option<String>,
}

/// What stands in brackets behind rules that need no code and no test here.
const ELSEWHERE: [&str; 6] = ["client", "driver", "not applicable", "not kept", "runner", "shell"];

/// The families of the list.
///
/// # Errors
///
/// What is wrong with a line, with its number.
pub(super) fn parse(list: &str) -> Result<Vec<Family>, String> {
    let mut families: Vec<Family> = Vec::new();
    let lines = (1..).zip(list.lines());
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let family = line.split_once(": ").filter(|(name, _)| is_family(name));
        if let Some((name, title)) = family {
            let (name, title) = (name.to_owned(), title.to_owned());
            families.push(Family { name, title, rules: Vec::new() });
            continue;
        }
        let rule = rule(line).map_err(|what| format!("{number}: {what}"))?;
        let is_known =
            |id: &str| families.iter().flat_map(|it| &it.rules).any(|known| known.id == id);
        if is_known(&rule.id) {
            return Err(format!("{number}: {} is there twice", rule.id));
        }
        let family = families.last_mut().filter(|it| rule.id.starts_with(&format!("{}-", it.name)));
        family
            .ok_or_else(|| format!("{number}: {} is in another family", rule.id))?
            .rules
            .push(rule);
    }
    Ok(families)
}

fn rule(line: &str) -> Result<Rule, String> {
    let (id, rest) = line.split_once(' ').ok_or("a line is an id and a rule")?;
    let (text, tags) = match rest.split_once(" [") {
        Some((text, tags)) => (text, tags.strip_suffix(']').ok_or("an open bracket")?),
        None => (rest, ""),
    };
    let (id, text) = (id.to_owned(), text.to_owned());
    let mut rule = Rule { id, text, is_must: false, is_core: false, elsewhere: None };
    for tag in tags.split("] [").filter(|tag| !tag.is_empty()) {
        match tag {
            "MUST" => rule.is_must = true,
            "core" => rule.is_core = true,
            _ if ELSEWHERE.contains(&tag.split(": ").next().unwrap_or_default()) => {
                rule.elsewhere = Some(tag.to_owned());
            }
            _ => return Err(format!("[{tag}] means nothing")),
        }
    }
    Ok(rule)
}

fn is_family(name: &str) -> bool {
    (2..=3).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_uppercase())
}

#[test]
fn a_line_that_is_wrong_is_told_with_its_number() {
    let good = "# Rules\n\nOP: Options (a, b)\nOP-01 one: two [MUST] [client: why]\n";
    let families = parse(good).expect("it is right");
    let rule = &families[0].rules[0];
    assert_eq!((&*rule.text, rule.is_must, rule.is_core), ("one: two", true, false));
    assert_eq!(rule.elsewhere.as_deref(), Some("client: why"));
    for (line, what) in [
        ("OP-01 twice", "5: OP-01 is there twice"),
        ("CO-01 elsewhere", "5: CO-01 is in another family"),
        ("OP-02", "5: a line is an id and a rule"),
        ("OP-02 rule [SHOULD]", "5: [SHOULD] means nothing"),
        ("OP-02 rule [MUST", "5: an open bracket"),
    ] {
        assert_eq!(parse(&format!("{good}{line}\n")).err().as_deref(), Some(what));
    }
}
