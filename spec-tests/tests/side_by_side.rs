//! The two shells, side by side: the same public names, parameters and files, but for what their tables
//! say. Moving from one to the other is changing the name of a crate.
//!
//! How: the sources are read line by line, as rustfmt leaves them. What both have from `cenote-shell` or
//! the core, such as builders, is the same type and has nothing to compare.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SHELLS: [&str; 2] = ["shell-tokio", "shell-mio"];

/// Public names, as `Type`, `Type::method`, `Type::field` or `Enum::Variant`, each with its parameters.
type Names = BTreeMap<String, Vec<String>>;

#[test]
fn the_same_names_but_for_those_of_the_table() {
    let [tokio, mio] = SHELLS.map(public_names);
    for name in ["Pool::check_out", "PooledConnection::run", "Client::pin", "Target::deadline"] {
        assert!(tokio.contains_key(name), "{name} is not seen any more");
    }
    let only = [(&tokio, &mio), (&mio, &tokio)].map(|(one, other)| names_of_one(one, other));
    assert_eq!(only, table("shell-mio/README.md", "| only on tokio | only on mio | why |"));

    let shared = || tokio.iter().filter_map(|(name, it)| Some((name, it, mio.get(name)?)));
    for (name, one, other) in shared() {
        assert_eq!(one, other, "the parameters of {name}");
    }
    assert!(shared().count() > 100, "{} names are seen", shared().count());
}

#[test]
fn the_same_files_but_for_those_of_the_table() {
    let [tokio, mio] = SHELLS.map(|shell| {
        let folder = repository().join(shell).join("src");
        let mut names = BTreeSet::new();
        each_file(&folder, &mut |path| {
            let path = path.strip_prefix(&folder).expect("inside").to_string_lossy();
            names.insert(path.replace('\\', "/"));
        });
        names
    });
    assert!(tokio.contains("client/watch.rs"));
    let heads = "| only in `shell-tokio/src` | only in `shell-mio/src` | why |";
    let listed = table("docs/architecture.md", heads);
    let only = [(&tokio, &mio), (&mio, &tokio)].map(|(one, other)| one.difference(other));
    for (only, listed) in only.into_iter().zip(&listed) {
        let only: BTreeSet<_> = only.map(String::as_str).collect();
        let covers = |entry: &str, file: &str| match entry.strip_suffix('/') {
            Some(folder) => file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
            None => entry == file,
        };
        for file in &only {
            assert!(listed.iter().any(|entry| covers(entry, file)), "why only one has {file}");
        }
        for entry in listed {
            assert!(only.iter().any(|file| covers(entry, file)), "{entry} is in both or in none");
        }
    }
}

/// Those that the other has not. What belongs to a type that only one has is not said again.
fn names_of_one(one: &Names, other: &Names) -> BTreeSet<String> {
    let is_missing = |name: &str| one.contains_key(name) && !other.contains_key(name);
    let is_said = |name: &str| name.split_once("::").is_none_or(|(owner, _)| !is_missing(owner));
    one.keys().filter(|name| is_missing(name) && is_said(name)).cloned().collect()
}

/// The first two columns of a table, as far as they are code.
fn table(page: &str, heads: &str) -> [BTreeSet<String>; 2] {
    let text = fs::read_to_string(repository().join(page)).expect("the page is there");
    let (_, rows) = text.split_once(heads).expect("the table is there");
    let mut columns = [BTreeSet::new(), BTreeSet::new()];
    // Behind the heads and the line below them.
    for row in rows.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let [_, one, other, why, _] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("three columns: {row}")
        };
        assert!(!why.trim().is_empty(), "{row}");
        for (cell, column) in [one, other].into_iter().zip(&mut columns) {
            column.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    columns
}

fn public_names(shell: &str) -> Names {
    let folder = repository().join(shell).join("src");
    let root = fs::read_to_string(folder.join("lib.rs")).expect("the crate is there");
    let exported = exports(&root);
    let mut names = Names::new();
    each_file(&folder, &mut |path| {
        let text = fs::read_to_string(path).expect("a source");
        members(&text, &mut names);
    });
    names.retain(|name, _| name.split("::").next().is_some_and(|it| exported.contains(it)));
    names.extend(exported.into_iter().map(|name| (name, Vec::new())));
    names
}

/// What `pub use` of the root names.
fn exports(root: &str) -> BTreeSet<String> {
    let uses = root.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let last = |path: &str| path.rsplit("::").next().unwrap_or_default().trim().to_owned();
    let mut names = BTreeSet::new();
    for path in uses {
        match path.split_once('{') {
            Some((_, list)) => names.extend(list.trim_end_matches('}').split(',').map(last)),
            None => drop(names.insert(last(path))),
        }
    }
    names.remove("");
    names
}

/// Methods, fields, variants, and what a trait asks for.
fn members(text: &str, names: &mut Names) {
    let mut owner: Option<Owner<'_>> = None;
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        if line.starts_with('}') {
            owner = None;
        } else if let Some(begun) = Owner::of(line) {
            owner = Some(begun);
        } else if let Some((owner, member)) = owner.as_ref().and_then(|it| it.member(line)) {
            names.insert(format!("{owner}::{member}"), parameters(line, rest));
        }
        rest = after;
    }
}

/// What lines belong to.
struct Owner<'a> {
    name: &'a str,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    Struct,
    Enum,
    Trait,
    Methods,
}

impl<'a> Owner<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let items = [("struct", Kind::Struct), ("enum", Kind::Enum), ("trait", Kind::Trait)];
        for (word, kind) in items {
            let item = line.strip_prefix("pub ").and_then(|it| it.strip_prefix(word));
            if let Some(item) = item.filter(|_| !line.ends_with(';') && !line.ends_with('}')) {
                return Some(Self { name: word_at(item.trim_start()), kind });
            }
        }
        let methods = line.strip_prefix("impl").filter(|it| !it.contains(" for "))?;
        let methods = if methods.starts_with('<') { past_angles(methods) } else { methods };
        Some(Self { name: word_at(methods.trim_start()), kind: Kind::Methods })
    }

    fn member<'l>(&self, line: &'l str) -> Option<(&'a str, &'l str)> {
        let line = line.strip_prefix("    ").filter(|it| !it.starts_with([' ', '/', '#', '}']))?;
        let member = match self.kind {
            Kind::Methods => function(line.strip_prefix("pub ")?)?,
            Kind::Trait => function(line).or_else(|| line.strip_prefix("type "))?,
            Kind::Struct => line.strip_prefix("pub ")?,
            Kind::Enum => line,
        };
        Some((self.name, word_at(member)))
    }
}

fn function(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("const ").trim_start_matches("async ");
    line.strip_prefix("fn ")
}

fn word_at(text: &str) -> &str {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap_or_default()
}

/// Behind the angle bracket that closes the first one.
fn past_angles(text: &str) -> &str {
    let mut depth = 0;
    for (at, it) in text.char_indices() {
        match it {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

/// The names of a function's parameters. `rest` begins with its line.
fn parameters(line: &str, rest: &str) -> Vec<String> {
    let Some(begin) = line.contains("fn ").then(|| rest.find('(')).flatten() else {
        return Vec::new();
    };
    let (mut depth, mut name, mut names) = (0, String::new(), Vec::new());
    for it in rest[begin..].replace("->", "").chars() {
        match it {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            ':' if depth == 1 && !name.trim().is_empty() => {
                names.push(name.split_whitespace().last().unwrap_or_default().to_owned());
                // The type is nothing to compare.
                depth += 100;
            }
            ',' if depth % 100 == 1 => {
                depth %= 100;
                name.clear();
            }
            it if depth == 1 => name.push(it),
            _ => {}
        }
        if depth % 100 == 0 {
            break;
        }
    }
    names
}

fn each_file(folder: &Path, act: &mut impl FnMut(&Path)) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            each_file(&path, act);
        } else if path.extension().is_some_and(|it| it == "rs") {
            act(&path);
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").to_owned()
}
