//! What a plain text means: the core schema of YAML 1.2, which is also how the official files are
//! turned into JSON. `yes`, `no`, `on` and `off`, which YAML 1.1 took for booleans, are texts; where
//! a boolean is wanted, they are refused as such.

use serde_json::{Number, Value};

/// The value of a plain scalar.
///
/// # Errors
///
/// What JSON cannot express.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    if let Some(number) = integer(text) {
        return Ok(Value::Number(number));
    }
    match float(text)? {
        Some(number) => Ok(Value::Number(number)),
        None => Ok(Value::String(text.to_owned())),
    }
}

fn integer(text: &str) -> Option<Number> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits(hex)?, 16).ok().map(Number::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits(octal)?, 8).ok().map(Number::from);
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    digits(unsigned.strip_prefix('-').unwrap_or(unsigned))?;
    let signed = || unsigned.parse::<i64>().ok().map(Number::from);
    unsigned.parse::<u64>().ok().map(Number::from).or_else(signed)
}

/// The text, if it is letters and digits alone: no second sign, nothing else that `parse` takes.
fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(text)
}

fn float(text: &str) -> Result<Option<Number>, String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is no number of JSON"));
    }
    let is_float = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && unsigned.bytes().any(|byte| byte.is_ascii_digit())
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    Ok(text.parse::<f64>().ok().filter(|_| is_float).and_then(Number::from_f64))
}
