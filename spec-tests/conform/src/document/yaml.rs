//! YAML to JSON values: one document, anchors and merge keys resolved, every key once.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Value};

use super::place::{Lines, child};
use super::scalar;

/// Where and why a text is no YAML document.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// Reads a text.
///
/// # Errors
///
/// What is ill-formed, and what JSON has nothing for: several documents, keys that are no texts, tags
/// of one's own.
pub(super) fn parse(text: &str) -> Result<(Value, Lines), Fault> {
    let parser = Parser::new_from_str(text);
    let (anchors, lines) = (BTreeMap::new(), Lines::new());
    let mut reader = Reader { parser, anchors, lines, budget: BUDGET };
    let value = reader.document()?;
    Ok((value, reader.lines))
}

/// How many values a file may have once its aliases are resolved: many times what the largest
/// official file has, and few enough for a small file not to become a large one.
const BUDGET: usize = 2_000_000;

/// How deeply they may be nested.
const DEPTH: usize = 100;

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: BTreeMap<usize, Value>,
    lines: Lines,
    /// How many values more there may be.
    budget: usize,
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<Value, Fault> {
        let mut value = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => {}
                Event::DocumentEnd => {}
                Event::StreamEnd => return value.ok_or_else(|| fault(span, "nothing is in it")),
                Event::Alias(_)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => {
                    if value.is_some() {
                        return Err(fault(span, "a second document begins"));
                    }
                    value = Some(self.node(event, span, "", 0)?);
                }
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'t>,
        span: Span,
        place: &str,
        depth: usize,
    ) -> Result<Value, Fault> {
        self.lines.entry(place.to_owned()).or_insert(span.start.line());
        self.spend(1, span)?;
        if depth > DEPTH {
            return Err(fault(span, &format!("nested more than {DEPTH} levels deep")));
        }
        let (anchor, value) = match event {
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, scalar_value(&text, style, tag.as_deref(), span)?)
            }
            Event::SequenceStart(anchor, tag) => {
                untagged(tag.as_deref(), "seq", span)?;
                (anchor, self.sequence(place, depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                untagged(tag.as_deref(), "map", span)?;
                (anchor, self.mapping(place, depth)?)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(fault(span, "a value is missing")),
        };
        if anchor != NO_ANCHOR {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn sequence(&mut self, place: &str, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Value::Array(items));
            }
            let place = child(place, &items.len().to_string());
            items.push(self.node(event, span, &place, depth + 1)?);
        }
    }

    fn mapping(&mut self, place: &str, depth: usize) -> Result<Value, Fault> {
        let mut map = Map::new();
        let mut merged = Map::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                for (key, value) in merged {
                    map.entry(key).or_insert(value);
                }
                return Ok(Value::Object(map));
            }
            let is_merge = is_merge_key(&event);
            let key = self.key(event, span)?;
            let below = child(place, &key);
            self.lines.insert(below.clone(), span.start.line());
            let (event, span) = self.next()?;
            let value = self.node(event, span, &below, depth + 1)?;
            if is_merge {
                merge(&mut merged, value).map_err(|reason| fault(span, reason))?;
            } else if map.insert(key.clone(), value).is_some() {
                return Err(fault(span, &format!("the key `{key}` is there twice")));
            }
        }
    }

    fn key(&mut self, event: Event<'t>, span: Span) -> Result<String, Fault> {
        let key = match event {
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::Scalar(text, _, anchor, _) => {
                let key = Value::String(text.into_owned());
                if anchor != NO_ANCHOR {
                    self.anchors.insert(anchor, key.clone());
                }
                key
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd => Value::Null,
        };
        match key {
            Value::String(key) => Ok(key),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => Err(fault(span, "a key has to be a text")),
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Value, Fault> {
        let Some(value) = self.anchors.get(&anchor).cloned() else {
            return Err(fault(span, "an alias of something that is not complete here"));
        };
        self.spend(size(&value), span)?;
        Ok(value)
    }

    fn spend(&mut self, values: usize, span: Span) -> Result<(), Fault> {
        let left = self.budget.checked_sub(values);
        self.budget = left.ok_or_else(|| fault(span, "its aliases make it too large"))?;
        Ok(())
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(error.into()),
            None => Err(Fault { line: 1, reason: "it ends too early".to_owned() }),
        }
    }
}

/// What the parser says of a value that has no anchor.
const NO_ANCHOR: usize = 0;

fn scalar_value(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: Span,
) -> Result<Value, Fault> {
    let is_text = match tag {
        None => style != ScalarStyle::Plain,
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => true,
        Some(tag) => return Err(fault(span, &format!("the tag `{tag}` is not known"))),
    };
    if is_text {
        return Ok(Value::String(text.to_owned()));
    }
    scalar::plain(text).map_err(|reason| fault(span, &reason))
}

fn untagged(tag: Option<&Tag>, name: &str, span: Span) -> Result<(), Fault> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == name) => {
            Err(fault(span, &format!("the tag `{tag}` is not known")))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_merge_key(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<")
}

/// The keys of a mapping, or of several, of which the first that has a key counts.
fn merge(into: &mut Map<String, Value>, value: Value) -> Result<(), &'static str> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(items) => items.into_iter().try_for_each(|item| merge(into, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err("only a mapping can be merged")
        }
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
    }
}

fn fault(span: Span, reason: &str) -> Fault {
    Fault { line: span.start.line(), reason: reason.to_owned() }
}

impl From<ScanError> for Fault {
    fn from(error: ScanError) -> Self {
        Self { line: error.marker().line(), reason: error.info().to_owned() }
    }
}
