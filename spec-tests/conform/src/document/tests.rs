use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Document;

fn yaml(text: &str) -> Value {
    Document::from_yaml(Path::new("some.yml"), text).unwrap().into_value()
}

fn refusal(text: &str) -> String {
    Document::from_yaml(Path::new("some.yml"), text).unwrap_err().to_string()
}

#[test]
fn texts_numbers_booleans_and_null_are_told_apart() {
    let seen = yaml(
        "[1, -2, +3, 0x1F, 0o17, 1.5, 1e3, .5, true, False, NULL, ~, yes, no, on, off, y, '1',
          \"true\", 1-2, 4.4.0, 0b1, 18446744073709551615, -, -.5, 1__0]"
            .replace("-,", "'-',")
            .as_str(),
    );
    let expected = json!([
        1,
        -2,
        3,
        31,
        15,
        1.5,
        1000.0,
        0.5,
        true,
        false,
        null,
        null,
        "yes",
        "no",
        "on",
        "off",
        "y",
        "1",
        "true",
        "1-2",
        "4.4.0",
        "0b1",
        18_446_744_073_709_551_615_u64,
        "-",
        -0.5,
        "1__0"
    ]);
    assert_eq!(seen, expected);
}

#[test]
fn anchors_are_resolved() {
    let seen = yaml(
        "_anchors:\n  a: &a { x: 1, y: [2] }\n  name: &name hello\n\
         one: *a\ntwo: [*a]\n*name : *name\n",
    );
    assert_eq!(seen["one"], json!({ "x": 1, "y": [2] }));
    assert_eq!(seen["two"], json!([{ "x": 1, "y": [2] }]));
    assert_eq!(seen["hello"], json!("hello"));
}

#[test]
fn what_is_ill_formed_is_refused_with_its_line() {
    for (text, line, reason) in [
        ("a: 1\nb: [1, 2\nc: 3\n", 3, ""),
        ("a: 1\na: 2\n", 2, "duplicated key"),
        ("a: 1\n'a': 2\n", 2, "the key `a` is there twice"),
        ("a: 1\nb: *nobody\n", 2, "anchor"),
        ("a: &a [1, *a]\n", 1, "not complete"),
        ("a: 1\n---\nb: 2\n", 3, "a second document begins"),
        ("", 1, "nothing is in it"),
        ("a: .nan\n", 1, "no number of JSON"),
        ("a: 1\nb: !mine 2\n", 2, "tag"),
        ("? [1, 2]\n: 3\n", 1, "a key has to be a text"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.starts_with(&format!("some.yml:{line}: ")), "{text:?}: {refusal}");
        assert!(refusal.contains(reason), "{text:?}: {refusal}");
    }
}

#[test]
fn neither_depth_nor_aliases_exhaust_the_machine() {
    for text in ["[".repeat(10_000), "- ".repeat(10_000), "{a: ".repeat(10_000)] {
        assert!(refusal(&text).starts_with("some.yml:1: not a YAML document"));
    }
    let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(refusal(&bomb).contains("alias expansion exceeded"));
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    #[expect(dead_code, reason = "only whether it can be read is of interest")]
    list: Vec<Item>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    #[expect(dead_code, reason = "only whether it can be read is of interest")]
    count: u8,
}

#[test]
fn the_wrong_key_and_its_line_are_named_in_either_language() {
    let json = "{\n \"list\": [\n  { \"count\": 1 },\n  { \"count\": 2,\n    \"size\": 3 }\n ]\n}";
    let yaml = "list:\n- count: 1\n- count: 2\n\n  size: 3\n";
    let documents = [
        Document::from_json(Path::new("x"), json).unwrap(),
        Document::from_yaml(Path::new("x"), yaml).unwrap(),
    ];
    for document in documents {
        let refused = document.parse::<Shape>().unwrap_err().to_string();
        assert!(
            refused.starts_with("x:5: not a test file: list.1.size: unknown field"),
            "{refused}"
        );
    }
    let missing = Document::from_yaml(Path::new("x"), "list:\n- count: 1\n- {}\n").unwrap();
    let refused = missing.parse::<Shape>().unwrap_err().to_string();
    assert_eq!(refused, "x:3: not a test file: list.1: missing field `count`");
    let wrong = Document::from_yaml(Path::new("x"), "list:\n- count: yes\n").unwrap();
    let refused = wrong.parse::<Shape>().unwrap_err().to_string();
    assert!(refused.starts_with("x:2: not a test file: list.0.count: invalid type"), "{refused}");
}

/// Tabs, halves of characters and slashes with a stroke before them are JSON, and no YAML.
#[test]
fn lines_are_those_of_any_json() {
    let odd = "{\n\t\"a\\/\\\" b\": \"\\ud83d\\ude00 \\\\\",\n\t\"list\": [\n\t\t{ \"count\": 1 },\n\t\t7 ]\n}";
    let document = Document::from_json(Path::new("x"), odd).unwrap();
    let refused = document.refuse("list/1", "no").to_string();
    assert_eq!(refused, "x:5: not a test file: list.1: no");
    let twice = "{ \"a\": [\n{ \"b\": 1,\n \"b\": 2 } ] }";
    let refused = Document::from_json(Path::new("x"), twice).unwrap_err().to_string();
    assert_eq!(refused, "x:3: not a JSON document: the key `b` is there twice");
    let late = Document::from_json(Path::new("x"), "{}\n]").unwrap_err().to_string();
    assert!(late.starts_with("x:2: not a JSON document: trailing characters"), "{late}");
}
