//! YAML to JSON values: one document, anchors and merge keys resolved, every key once. Numbers,
//! booleans and null are those of YAML 1.2's core schema, so `yes`, `no`, `on` and `off` are texts.

use saphyr::{MarkedYaml, Scalar, ScanError, YamlData, YamlLoader};
use saphyr_parser::{Event, Parser, Span, SpannedEventReceiver};
use serde_json::{Map, Number, Value};

use super::place::{Lines, child};

/// Where and why a text is no YAML document.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// How deeply values may be nested.
const DEPTH: usize = 100;

/// Reads a text.
///
/// # Errors
///
/// What is ill-formed, and what JSON has nothing for: several documents, keys that are no texts, tags
/// of one's own.
pub(super) fn parse(text: &str) -> Result<(Value, Lines), Fault> {
    let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
    loader.early_parse(false);
    let (mut depth, mut last) = (0, Span::default());
    for event in Parser::new_from_str(text) {
        let (event, span) = event?;
        if matches!(event, Event::SequenceStart(..) | Event::MappingStart(..)) {
            depth += 1;
        } else if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
            depth -= 1;
        }
        if depth > DEPTH {
            return Err(too_deep(span));
        }
        last = span;
        loader.on_event(event, span);
    }
    if let Some(error) = loader.error() {
        return Err(error.clone().into());
    }
    let mut documents = loader.into_documents().into_iter();
    let document = documents.next().ok_or_else(|| fault(last, "nothing is in it"))?;
    if let Some(second) = documents.next() {
        return Err(fault(second.span, "a second document begins"));
    }
    let mut lines = Lines::new();
    let value = value(document, "", 0, &mut lines)?;
    Ok((value, lines))
}

fn value(
    node: MarkedYaml<'_>,
    place: &str,
    depth: usize,
    lines: &mut Lines,
) -> Result<Value, Fault> {
    let MarkedYaml { span, data } = node;
    lines.entry(place.to_owned()).or_insert(span.start.line());
    if depth > DEPTH {
        return Err(too_deep(span)); // By aliases in what has aliases.
    }
    match data {
        YamlData::Representation(text, style, tag) => {
            if let Some(tag) = tag.as_deref().filter(|tag| !tag.is_yaml_core_schema()) {
                return Err(fault(span, &format!("the tag `{tag}` is not known")));
            }
            let whole = text.parse::<u64>().ok();
            let wrong = || fault(span, "the text does not fit its tag");
            match Scalar::parse_from_cow_and_metadata(text, style, tag.as_ref())
                .ok_or_else(wrong)?
            {
                Scalar::Null => Ok(Value::Null),
                Scalar::Boolean(is_so) => Ok(Value::Bool(is_so)),
                Scalar::Integer(number) => Ok(number.into()),
                Scalar::FloatingPoint(number) => {
                    let number = whole.map(Number::from).or_else(|| Number::from_f64(*number));
                    number.map(Value::Number).ok_or_else(|| fault(span, "it is no number of JSON"))
                }
                Scalar::String(text) => Ok(Value::String(text.into_owned())),
            }
        }
        YamlData::Sequence(items) => {
            let items = items.into_iter().enumerate().map(|(index, item)| {
                value(item, &child(place, &index.to_string()), depth + 1, lines)
            });
            items.collect()
        }
        YamlData::Mapping(entries) => {
            let (mut map, mut merged) = (Map::new(), Map::new());
            for (key, content) in entries {
                let YamlData::Representation(text, ..) = key.data else {
                    return Err(fault(key.span, "a key has to be a text"));
                };
                let below = child(place, &text);
                lines.insert(below.clone(), key.span.start.line());
                let content = value(content, &below, depth + 1, lines)?;
                // YAML 1.1's merge key, which official files have.
                if let ("<<", Value::Object(content)) = (&*text, &content) {
                    merged.extend(content.clone());
                    continue;
                }
                if map.insert(text.to_string(), content).is_some() {
                    return Err(fault(key.span, &format!("the key `{text}` is there twice")));
                }
            }
            merged.extend(map);
            Ok(Value::Object(merged))
        }
        YamlData::Tagged(tag, _) => Err(fault(span, &format!("the tag `{tag}` is not known"))),
        YamlData::Alias(_) | YamlData::BadValue | YamlData::Value(_) => {
            Err(fault(span, "an alias of something that is not complete here"))
        }
    }
}

fn too_deep(span: Span) -> Fault {
    fault(span, &format!("nested more than {DEPTH} levels deep"))
}

fn fault(span: Span, reason: &str) -> Fault {
    Fault { line: span.start.line(), reason: reason.to_owned() }
}

impl From<ScanError> for Fault {
    fn from(error: ScanError) -> Self {
        Self { line: error.marker().line(), reason: error.info().to_owned() }
    }
}
