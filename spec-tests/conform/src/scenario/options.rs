//! The options of a scenario's pool: the names of the table of options, times in milliseconds.

use std::time::Duration;

use cenote_core::pool::{Maintenance, OptionValue, PoolOptions, ReuseOrder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::document::nested::wrong_at;

/// The options of the pool, and two that exist for tests alone.
// OP-16
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct Options {
    pool: PoolOptions,
    /// The application name that connections send in their hello.
    // TF-17
    pub(crate) app_name: Option<String>,
}

impl TryFrom<Map<String, Value>> for Options {
    type Error = String;

    fn try_from(mut given: Map<String, Value>) -> Result<Self, String> {
        let mut pool = PoolOptions::default();
        for (spec, value) in pool.each() {
            match value {
                OptionValue::Count(value) => *value = take(&mut given, spec.key)?,
                OptionValue::Number(value) => *value = take(&mut given, spec.key)?,
                OptionValue::Time(value) => {
                    let time = take(&mut given, &format!("{}MS", spec.key))?;
                    *value = time.map(Duration::from_millis);
                }
                OptionValue::Flag(value) => *value = take(&mut given, spec.key)?,
                OptionValue::Maintenance(value) => {
                    let interval = take(&mut given, "backgroundThreadIntervalMS")?;
                    *value = interval.map(maintenance).transpose()?;
                }
                OptionValue::ReuseOrder(value) => {
                    let order: Option<String> = take(&mut given, spec.key)?;
                    *value = order.map(|order| reuse_order(spec.key, &order)).transpose()?;
                }
            }
        }
        let app_name = take(&mut given, "appName")?;
        match given.keys().next() {
            None => Ok(Self { pool, app_name }),
            Some(key) => Err(wrong_at(key, "a pool has no such option")),
        }
    }
}

/// The value of a key, if it is there.
fn take<T: DeserializeOwned>(
    given: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<T>, String> {
    let value = given.remove(key).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| wrong_at(key, error.to_string()))
}

impl Options {
    /// The options, validated.
    pub(crate) fn to_pool_options(&self) -> Result<PoolOptions, String> {
        self.pool.validate().map_err(|reason| reason.to_string())?;
        Ok(self.pool.clone())
    }

    /// Whether the server is a load balancer.
    pub(crate) fn is_load_balanced(&self) -> bool {
        self.pool.load_balanced == Some(true)
    }

    /// The options, whether or not they are valid.
    pub(crate) fn unchecked(&self) -> PoolOptions {
        self.pool.clone()
    }
}

/// There is no background thread whose runs could be counted: the pool does what is due when it is
/// due. The interval becomes the pause after a failed establishment; a negative one disables
/// maintenance.
// TF-14, BG-09
fn maintenance(interval_ms: i64) -> Result<Maintenance, String> {
    match u64::try_from(interval_ms) {
        Ok(0) => Err("backgroundThreadIntervalMS must not be 0".to_owned()),
        Ok(pause) => Ok(Maintenance::PauseAfterFailure(Duration::from_millis(pause))),
        Err(_negative) => Ok(Maintenance::Never),
    }
}

fn reuse_order(key: &str, text: &str) -> Result<ReuseOrder, String> {
    let order = ReuseOrder::ALL.into_iter().find(|order| order.as_str() == text);
    order.ok_or_else(|| wrong_at(key, format!("there is no order `{text}`")))
}
