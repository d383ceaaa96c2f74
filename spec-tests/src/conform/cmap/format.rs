//! What a file looks like. Everything that is not named here is refused, so that nothing in a file
//! is passed over in silence.

use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::expectation::{check_error, check_event};
use super::fail_point::FailPoint;
use super::log::Log;
use super::operation::{self, Operation};
use crate::conform::not_on::NotOn;
use crate::conform::place::{self, Version};
use crate::conform::requirement::RequirementId;
use crate::conform::{Document, Unreadable};
use crate::event_json::TYPES;

/// One file: one test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    version: u64,
    style: Style,
    /// What the test is about.
    pub(super) description: String,
    /// Which servers the test is for.
    #[serde(default)]
    run_on: Vec<RunOn>,
    /// What the endpoint does wrong.
    pub(super) fail_point: Option<FailPoint>,
    /// How the pool is made.
    #[serde(default)]
    pub(super) pool_options: Options,
    /// What the main thread does, in order.
    pub(super) operations: Vec<Operation>,
    /// With what the main thread ends; without it, it must end well.
    pub(super) error: Option<Map<String, Value>>,
    /// What the pool tells meanwhile, in order.
    pub(super) events: Vec<Map<String, Value>>,
    /// Not of the official format: there is no pool, and the reason contains this.
    pub(super) invalid_options: Option<String>,
    /// Not of the official format: the rules that the test is about (docs/audit/scenarios.md).
    #[serde(default, rename = "requirements")]
    _requirements: Vec<RequirementId>,
    /// Not of the official format: targets on which the test cannot be played, each with the reason.
    #[serde(default)]
    pub(super) not_on: NotOn,
    /// Not of the official format: what is set for the log, and all that is logged.
    pub(super) log: Option<Log>,
    /// What it may tell besides, at any time.
    #[serde(default)]
    pub(super) ignore: Vec<EventType>,
}

/// A unit test gets along with an endpoint that always answers; an integration test may switch a
/// fail point on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Style {
    Unit,
    Integration,
}

/// A range of server versions, both ends included. Each of these tests is for all servers that have
/// the fail points it needs; the endpoint has them, whatever version it says it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RunOn {
    min_server_version: Option<String>,
    max_server_version: Option<String>,
}

/// The options of the pool, and two that exist for tests alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Options {
    max_pool_size: Option<u32>,
    min_pool_size: Option<u32>,
    #[serde(rename = "maxIdleTimeMS")]
    max_idle_time_ms: Option<u64>,
    max_connecting: Option<u32>,
    #[serde(rename = "waitQueueTimeoutMS")]
    wait_queue_timeout_ms: Option<u64>,
    /// Not of the official format: whether it is behind a load balancer, with [`SERVICES`] there to
    /// which connections go in turn.
    load_balanced: Option<bool>,
    /// The application, as connections name it in their hello (TF-17).
    pub(super) app_name: Option<String>,
    #[serde(rename = "backgroundThreadIntervalMS")]
    background_thread_interval_ms: Option<i64>,
}

/// The name of one of the eleven types of events.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct EventType(String);

impl File {
    /// Reads a document, or says why it is no test file.
    pub(super) fn from_document(document: &Document) -> Result<Self, Unreadable> {
        let file: Self = document.parse()?;
        file.check().map_err(|Wrong { place, reason }| document.refuse_in(&place, &reason))?;
        Ok(file)
    }

    /// Whether the test is for servers of this version (TF-15).
    pub(super) fn is_for(&self, version: Version) -> bool {
        self.run_on.is_empty() || self.run_on.iter().any(|range| range.contains(version))
    }

    /// What serde cannot see.
    fn check(&self) -> Result<(), Wrong> {
        if self.version != 1 {
            let reason = format!("version {} is unknown, 1 is known", self.version);
            return Err(Wrong::at("version", reason));
        }
        if self.style == Style::Unit && (self.fail_point.is_some() || !self.run_on.is_empty()) {
            return Err(Wrong::at("style", "a unit test has neither failPoint nor runOn"));
        }
        self.run_on.iter().try_for_each(RunOn::check).map_err(Wrong::in_part("runOn"))?;
        if let Some(fail_point) = &self.fail_point {
            fail_point.check().map_err(Wrong::in_part("failPoint"))?;
        }
        let is_refused = self.invalid_options.is_some();
        if is_refused && !(self.operations.is_empty() && self.events.is_empty()) {
            let reason = "nothing can be done with a pool that is not there";
            return Err(Wrong::at("invalidOptions", reason));
        }
        if is_refused && self.log.is_some() {
            return Err(Wrong::at("log", "a pool that is not there has nothing to log"));
        }
        if !is_refused {
            self.pool_options.to_pool_options().map(drop).map_err(Wrong::in_part("poolOptions"))?;
        }
        operation::check(&self.operations)?;
        if let Some(log) = &self.log {
            log.check().map_err(Wrong::in_part("log"))?;
        }
        if let Some(error) = &self.error {
            check_error(error).map_err(Wrong::in_part("error"))?;
        }
        for (index, event) in self.events.iter().enumerate() {
            check_event(event).map_err(Wrong::in_part(&format!("events/{index}")))?;
        }
        Ok(())
    }
}

/// What is wrong, and where in the file.
pub(super) struct Wrong {
    place: String,
    reason: String,
}

impl Wrong {
    fn at(place: &str, reason: impl Into<String>) -> Self {
        Self { place: place.to_owned(), reason: reason.into() }
    }

    /// For what goes wrong in some part of the file.
    pub(super) fn in_part(place: &str) -> impl Fn(String) -> Self {
        move |reason| Self::at(place, reason)
    }
}

impl RunOn {
    fn check(&self) -> Result<(), String> {
        let versions = [&self.min_server_version, &self.max_server_version];
        match versions.into_iter().flatten().find(|text| place::version(text).is_none()) {
            Some(text) => Err(format!("`{text}` is not a version")),
            None => Ok(()),
        }
    }

    fn contains(&self, version: Version) -> bool {
        let bound = |text: &Option<String>| text.as_deref().and_then(place::version);
        bound(&self.min_server_version).is_none_or(|least| version >= least)
            && bound(&self.max_server_version).is_none_or(|most| version <= most)
    }
}

impl Options {
    /// The options, if a pool takes them.
    pub(super) fn to_pool_options(&self) -> Result<PoolOptions, String> {
        let options = self.unchecked()?;
        options.validate().map_err(|reason| reason.to_string())?;
        Ok(options)
    }

    /// Whether the server is a load balancer.
    pub(super) fn is_load_balanced(&self) -> bool {
        self.load_balanced == Some(true)
    }

    /// The options, whether or not a pool takes them.
    pub(super) fn unchecked(&self) -> Result<PoolOptions, String> {
        let mut options = PoolOptions::default();
        options.max_pool_size = self.max_pool_size;
        options.min_pool_size = self.min_pool_size;
        options.max_idle_time = self.max_idle_time_ms.map(Duration::from_millis);
        options.max_connecting = self.max_connecting;
        options.wait_queue_timeout = self.wait_queue_timeout_ms.map(Duration::from_millis);
        options.load_balanced = self.load_balanced;
        options.maintenance = self.background_thread_interval_ms.map(maintenance).transpose()?;
        Ok(options)
    }
}

/// How many there are behind the load balancer.
pub(super) const SERVICES: usize = 2;

/// The pool has no background thread whose runs could be counted: it does what is due when it is
/// due. What is left of the interval is the pause after a failure, and that a negative one switches
/// all of it off (TF-14, BG-09).
fn maintenance(interval_ms: i64) -> Result<Maintenance, String> {
    match u64::try_from(interval_ms) {
        Ok(0) => Err("backgroundThreadIntervalMS must not be 0".to_owned()),
        Ok(pause) => Ok(Maintenance::PauseAfterFailure(Duration::from_millis(pause))),
        Err(_negative) => Ok(Maintenance::Never),
    }
}

impl EventType {
    /// As it is spelled.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EventType {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if TYPES.contains(&name.as_str()) {
            return Ok(Self(name));
        }
        Err(format!("unknown event `{name}`, known are {}", TYPES.join(", ")))
    }
}
