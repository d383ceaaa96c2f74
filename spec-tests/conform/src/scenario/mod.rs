//! A scenario file. Unknown keys are errors, so that nothing in a file is silently ignored.
//!
//! ```text
//! operation     what the threads of a scenario do
//! └ extension   what official files do not have
//! options       how the pool is made
//! fail_point    how the server fails
//! log           what is logged
//! not_on        targets that cannot play the file
//! ```

mod event_type;
pub(crate) mod extension;
mod fail_point;
mod log;
mod not_on;
pub(crate) mod operation;
mod options;

use bson::RawDocumentBuf;
use cenote_core::pool::PoolOptions;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) use self::event_type::EventType;
pub use self::fail_point::FailPoint;
pub(crate) use self::fail_point::Hit;
pub use self::log::{Log, LogMessage};
pub use self::not_on::NotOn;
use self::operation::Operation;
pub(crate) use self::options::Options;
use crate::document::Document;
use crate::document::nested::wrong_at;
use crate::error::Unreadable;

/// A scenario: one file of `cmap-format`, or of Cenote's extension of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    version: u64,
    style: Style,
    description: String,
    #[serde(default)]
    run_on: Vec<RunOn>,
    fail_point: Option<FailPoint>,
    #[serde(default)]
    pub(crate) pool_options: Options,
    /// What the main thread does, in order.
    pub(crate) operations: Vec<Operation>,
    /// The error that ends the main thread; without it, the main thread must succeed.
    pub(crate) error: Option<Map<String, Value>>,
    /// The events that the pool emits, in order.
    pub(crate) events: Vec<Map<String, Value>>,
    /// Types of events that may occur at any time.
    #[serde(default)]
    pub(crate) ignore: Vec<EventType>,
    // The others are not part of the official format.
    /// Creating the pool fails, and the error contains this text.
    pub(crate) invalid_options: Option<String>,
    #[serde(default, rename = "requirements")]
    _requirements: Vec<String>,
    #[serde(default)]
    not_on: NotOn,
    log: Option<Log>,
}

/// The server of a unit test always answers; an integration test may set a fail point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Style {
    Unit,
    Integration,
}

/// A range of server versions, both ends included.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RunOn {
    min_server_version: Option<String>,
    max_server_version: Option<String>,
}

/// The version of a server: major, minor, patch.
pub type Version = [u16; 3];

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    ///
    /// The first key that is wrong, missing or unknown, and its line.
    pub fn new(document: &Document) -> Result<Self, Unreadable> {
        let scenario: Self = document.parse()?;
        scenario.check().map_err(|what| document.refuse_in("", &what))?;
        Ok(scenario)
    }

    /// What the scenario is about.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether the scenario is for servers of this version. The mock endpoint plays all scenarios,
    /// whatever its version.
    // TF-15
    #[must_use]
    pub fn is_for(&self, version: Version) -> bool {
        self.run_on.is_empty() || self.run_on.iter().any(|range| range.contains(version))
    }

    /// Whether the server is a load balancer, with [`SERVICES`](Self::SERVICES) behind it to which
    /// connections go in turn.
    #[must_use]
    pub fn is_load_balanced(&self) -> bool {
        self.pool_options.is_load_balanced()
    }

    /// How many services a load balancer has.
    pub const SERVICES: usize = 2;

    /// The fail point of the server.
    #[must_use]
    pub const fn fail_point(&self) -> Option<&FailPoint> {
        self.fail_point.as_ref()
    }

    /// The command that sets the fail point on a server.
    ///
    /// # Errors
    ///
    /// If a number of the fail point does not fit into BSON.
    pub fn fail_point_command(&self) -> Result<Option<RawDocumentBuf>, bson::error::Error> {
        self.fail_point.as_ref().map(FailPoint::command).transpose()
    }

    /// The options of the pool. They are valid, unless the scenario is about
    /// [invalid options](Self::has_invalid_options).
    ///
    /// # Panics
    ///
    /// Never: reading the scenario has checked them.
    #[must_use]
    pub fn pool_options(&self) -> PoolOptions {
        self.pool_options.unchecked()
    }

    /// The application name that connections send in their hello.
    #[must_use]
    pub fn app_name(&self) -> Option<&str> {
        self.pool_options.app_name.as_deref()
    }

    /// Whether creating the pool must fail.
    #[must_use]
    pub const fn has_invalid_options(&self) -> bool {
        self.invalid_options.is_some()
    }

    /// What is logged, if the scenario is about logging.
    #[must_use]
    pub const fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// The targets that cannot play the scenario, as the file says.
    #[must_use]
    pub const fn not_on(&self) -> &NotOn {
        &self.not_on
    }

    /// What serde cannot check.
    fn check(&self) -> Result<(), String> {
        let at = |place| move |what: String| wrong_at(place, what);
        if self.version != 1 {
            let what = format!("version {} is unknown, 1 is known", self.version);
            return Err(wrong_at("version", what));
        }
        if self.style == Style::Unit && (self.fail_point.is_some() || !self.run_on.is_empty()) {
            return Err(wrong_at("style", "a unit test has neither failPoint nor runOn"));
        }
        self.run_on.iter().try_for_each(RunOn::check).map_err(at("runOn"))?;
        self.fail_point.as_ref().map_or(Ok(()), FailPoint::check).map_err(at("failPoint"))?;
        let is_refused = self.invalid_options.is_some();
        if is_refused && !(self.operations.is_empty() && self.events.is_empty()) {
            let what = "without a pool there are no operations and no events";
            return Err(wrong_at("invalidOptions", what));
        }
        if is_refused && self.log.is_some() {
            return Err(wrong_at("log", "without a pool nothing is logged"));
        }
        if !is_refused {
            self.pool_options.to_pool_options().map_err(at("poolOptions"))?;
        }
        operation::check(&self.operations)?;
        self.log.as_ref().map_or(Ok(()), Log::check).map_err(at("log"))
    }
}

impl RunOn {
    fn check(&self) -> Result<(), String> {
        let versions = [&self.min_server_version, &self.max_server_version];
        match versions.into_iter().flatten().find(|text| parse_version(text).is_none()) {
            Some(text) => Err(format!("`{text}` is not a version")),
            None => Ok(()),
        }
    }

    fn contains(&self, version: Version) -> bool {
        let bound = |text: &Option<String>| text.as_deref().and_then(parse_version);
        bound(&self.min_server_version).is_none_or(|least| version >= least)
            && bound(&self.max_server_version).is_none_or(|most| version <= most)
    }
}

/// Parses `4.9` or `4.9.0`; a hyphen and what follows it is ignored.
#[must_use]
pub fn parse_version(text: &str) -> Option<Version> {
    let numbers = text.split_once('-').map_or(text, |(numbers, _)| numbers);
    let mut version = Version::default();
    let mut parts = numbers.split('.');
    for (number, part) in version.iter_mut().zip(&mut parts) {
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(version)
}
