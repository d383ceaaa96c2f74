//! Fields of records as `tracing` takes them.

use cenote_core::log::{LogRecord, LogValue};
use tracing::Value;
use tracing::field::{DisplayValue, display};

/// A text; `None` is absent from the message.
pub(super) fn text<'r>(
    record: &'r LogRecord<'_>,
    key: &str,
) -> Option<DisplayValue<&'r LogValue<'r>>> {
    record.field(key).map(display)
}

/// A number or a flag as what it is, so that it can be evaluated without parsing texts.
// LG-06.
pub(super) fn number<'r>(record: &'r LogRecord<'_>, key: &str) -> Option<&'r dyn Value> {
    match record.field(key)? {
        LogValue::Int(number) => Some(number),
        LogValue::Double(number) => Some(number),
        LogValue::Bool(is_so) => Some(is_so),
        LogValue::Text(_) | _ => None,
    }
}
