//! Extended JSON as BSON.

use bson::Bson;
use serde_json::{Map, Value};

/// Extended JSON as BSON. Its fields are not in the order of the file.
///
/// # Errors
///
/// If it is not extended JSON.
pub(super) fn document(map: &Map<String, Value>) -> Result<bson::Document, String> {
    let Bson::Document(document) = bson(Value::Object(map.clone()))? else {
        return Err("this is extended JSON, but no document".to_owned());
    };
    Ok(document)
}

/// As [`document`], for any value.
///
/// # Errors
///
/// If it is not extended JSON.
pub(super) fn bson(value: Value) -> Result<Bson, String> {
    Bson::try_from(value).map_err(|error| error.to_string())
}
