//! Everything that is visible of a world, searched for credentials, and its recording.

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::connect::EstablishOptions;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::{Action, Event, Instant, PoolOptions, PoolState};
use cenote_core::trace::{JournalOptions, Replay};
use cenote_core::uri::ConnectionString;

use super::error::{NumberedError, WireTypes};
use super::plan::{Passwords, Plan, USER};
use super::scanner::Scanner;
use super::transport::World;
use cenote_check::event_json;
use cenote_endpoint::Mechanism;
use cenote_endpoint::scram::Hash;
use cenote_replay::record::RecordedRun;

/// A second pool with the same inputs, which is recorded as shells record theirs.
pub(super) type Recording = RecordedRun<WireTypes, Vec<u8>>;

pub(super) fn record(options: &PoolOptions) -> Result<Recording, String> {
    let ignore = &mut |_: Action<WireTypes>| {};
    let pool = PoolState::new(Instant::ORIGIN, options.clone(), ignore);
    let pool = pool.map_err(|error| error.to_string())?;
    Ok(Recording::begin(pool, JournalOptions::default().with_actions(true), Vec::new()))
}

/// A scanner that knows all passwords, and has looked at the configuration.
pub(super) fn known_secrets(
    plan: &Plan,
    uri: &ConnectionString,
    options: &Arc<EstablishOptions>,
) -> Scanner {
    let mut scanner = Scanner::default();
    let Passwords { user, proxy } = plan.passwords();
    scanner.secrets.keep("the user's password", user.as_bytes());
    scanner.secrets.keep("the proxy's password", proxy.as_bytes());
    let hash = plan.transport.login.and_then(|login| match login.mechanism {
        Mechanism::ScramSha1 => Some(Hash::Sha1),
        Mechanism::ScramSha256 => Some(Hash::Sha256),
        Mechanism::Plain | Mechanism::MongodbX509 | _ => None,
    });
    if let Some(hash) = hash {
        scanner.secrets.keep_password(hash, USER, &user);
    }
    scanner.scan("the connection string", uri);
    scanner.scan("the options of connections", options);
    scanner.scan("the server's settings", &plan.settings());
    scanner.scan_text("the plan", &plan.to_string());
    scanner
}

impl World<'_> {
    /// Gives an error that is reported to the pool its number.
    pub(super) fn numbered(&mut self, error: &ConnectionError) -> NumberedError {
        self.transport.errors += 1;
        let number = self.transport.errors;
        #[cfg(test)]
        if let Some(leak) = self.transport.leak {
            let reason = leak(self);
            return NumberedError::new(number, ConnectionError::protocol(error.stage(), &reason));
        }
        self.transport.scanner.scan_error(error);
        NumberedError::new(number, error.clone())
    }

    /// Scans what subscribers, logs and `Debug` output show of an action.
    pub(super) fn scan_action(&mut self, action: &Action<WireTypes>) {
        self.transport.scanner.scan("an action of the pool", action);
        if let Action::EmitEvent(event) = action {
            self.scan_event(event);
        }
    }

    fn scan_event(&mut self, event: &Event<NumberedError>) {
        let at = self.now.saturating_since(Instant::ORIGIN);
        let address: &ServerAddress = &self.transport.client.address;
        let line = serde_json::to_string(&event_json::line(event, address, at));
        let record = LogRecord::new(event, address, &LogSettings::default());
        let logged = format!("{record} {record:?}");
        self.transport.scanner.scan_text("an event", &line.unwrap_or_default());
        self.transport.scanner.scan_text("the log", &logged);
    }

    /// Scans what is too large to be scanned at every step.
    pub(super) fn scan_all(&mut self) {
        let transport = &mut self.transport;
        transport.scanner.scan("the server", &transport.server);
        transport.scanner.scan("what connections share", &transport.client);
        transport.scanner.scan("the connections", &transport.sockets);
        transport.scanner.scan("the pool", self.subject.pool());
        if let Some(monitor) = &transport.monitor {
            transport.scanner.scan("the monitor", monitor);
        }
    }

    /// Checks that a replay of the trace ends in the same state, and that the trace holds no secret.
    pub(super) fn end_recording(&mut self) -> Result<(), String> {
        self.scan_all();
        let Some(recording) = self.transport.recording.take() else { return Ok(()) };
        let trace = recording.finish().map_err(|error| error.to_string())?;
        self.transport.scanner.scan_bytes("the trace", &trace);
        self.transport.scanner.verdict()?;
        let failed = |error| format!("the trace: {error}");
        let mut replay = Replay::new(trace.as_slice()).map_err(failed)?;
        while replay.step(&mut |_| {}).map_err(failed)?.is_some() {}
        let ended = replay.pool().fingerprint() == self.subject.pool().fingerprint();
        if ended { Ok(()) } else { Err("the trace ends in another state".to_owned()) }
    }
}
