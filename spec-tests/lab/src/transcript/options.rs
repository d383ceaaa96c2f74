//! The syntax of pool options in commands and answers, with the names of the table of options:
//! `maxPoolSize=3 waitQueueTimeout=50ms loadBalanced=true`, and `maintenance=never`.

use cenote_core::pool::{Maintenance, OptionValue, PoolOptions, ReuseOrder};

use super::words::{Words, duration, number};

/// Parses all options of a command.
pub(super) fn read(words: &mut Words) -> Result<PoolOptions, String> {
    let mut options = PoolOptions::default();
    for (spec, value) in options.each() {
        match value {
            OptionValue::Count(value) => *value = words.key(spec.key, number)?,
            OptionValue::Number(value) => *value = words.key(spec.key, number)?,
            OptionValue::Time(value) => *value = words.key(spec.key, duration)?,
            OptionValue::Flag(value) => *value = words.key(spec.key, flag)?,
            OptionValue::Maintenance(value) => {
                let pause = words.key(spec.key, duration)?.map(Maintenance::PauseAfterFailure);
                *value = pause.or(words.key(spec.name, never)?);
            }
            OptionValue::ReuseOrder(value) => *value = words.key(spec.key, reuse_order)?,
        }
    }
    Ok(options)
}

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("not true or false: {text}"))
}

fn reuse_order(text: &str) -> Result<ReuseOrder, String> {
    let order = ReuseOrder::ALL.into_iter().find(|order| order.as_str() == text);
    order.ok_or_else(|| format!("no order of reuse: {text}"))
}

fn never(text: &str) -> Result<Maintenance, String> {
    match text {
        "never" => Ok(Maintenance::Never),
        _ => Err(format!("maintenance=never, or pauseAfterFailure= and a duration: {text}")),
    }
}

/// The options that are set, each preceded by a space.
pub(super) fn show(options: &PoolOptions) -> String {
    if *options == PoolOptions::default() { String::new() } else { format!(" {options}") }
}
