//! Everything that connections share.

use std::ops::RangeInclusive;
use std::time::Duration;

use bson::DateTime;
use cenote_core::wire::{CompressorId, MessageLimit, RequestIds};

use super::auth::Users;
use super::data::{Cursors, Store};
use super::entropy::Entropy;
use super::fail_point::FailPoint;
use super::faults::Faults;
use super::observer::Observer;
use super::output::ConnectionId;
use super::settings::{Limits, Settings, SettingsError};
use super::statistics::Statistics;
use super::topology::TopologyState;

/// Everything that connections share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) entropy: Entropy,
    pub(super) topology: TopologyState,
    pub(super) users: Users,
    pub(super) store: Store,
    pub(super) cursors: Cursors,
    pub(super) fail_point: FailPoint,
    pub(super) faults: Faults,
    /// A reply that waits to be sent on another connection, and its own connection.
    pub(super) crossed: Option<(ConnectionId, Vec<u8>)>,
    pub(super) statistics: Statistics,
    pub(super) observer: Observer,
    pub(super) request_ids: RequestIds,
    pub(super) options: Options,
}

/// Settings that stay as they are.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) address: String,
    pub(super) started_at: Duration,
    pub(super) auth: bool,
    pub(super) compressors: Vec<CompressorId>,
    pub(super) test_commands: bool,
    pub(super) wire_versions: RangeInclusive<i32>,
    pub(super) limits: Limits,
    pub(super) message_limit: MessageLimit,
}

impl World {
    pub(super) fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let message_size = settings.limits.message_size;
        let message_limit = MessageLimit::new(i64::from(message_size))
            .ok_or(SettingsError::MessageSize { got: message_size })?;
        let mut entropy = Entropy::new(settings.seed.ok_or(SettingsError::NoSeed)?);
        let users = Users::new(&settings, &mut entropy)?;
        let mut faults = Faults::default();
        for script in settings.scripts {
            faults.set(script);
        }
        Ok(Self {
            topology: TopologyState::new(
                settings.topology,
                &settings.address,
                settings.started_at,
                &mut entropy,
            ),
            users,
            store: Store::new(settings.limits.stored_bytes),
            cursors: Cursors::new(settings.limits.cursors, settings.limits.stored_bytes),
            fail_point: FailPoint::default(),
            faults,
            crossed: None,
            statistics: Statistics::default(),
            observer: Observer::default(),
            request_ids: RequestIds::default(),
            options: Options {
                address: settings.address,
                started_at: settings.started_at,
                auth: settings.auth,
                compressors: settings.compressors,
                test_commands: settings.test_commands,
                wire_versions: settings.wire_versions,
                limits: settings.limits,
                message_limit,
            },
            entropy,
        })
    }

    /// A connection has ended.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.statistics.open -= 1;
        self.crossed.take_if(|(own, _)| *own == id);
    }

    /// The time since the Unix epoch.
    pub(super) fn wall_clock(&self, now: Duration) -> Duration {
        self.options.started_at.saturating_add(now)
    }

    pub(super) fn local_time(&self, now: Duration) -> DateTime {
        let millis = self.wall_clock(now).as_millis();
        DateTime::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}
