//! All that can be seen of a world, and what is kept of it.

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::{Action, Event, Input, Instant, PoolOptions, PoolState};
use cenote_core::trace::{JournalOptions, Replay};
use cenote_endpoint::Mechanism;
use cenote_endpoint::scram::Hash;

use super::World;
use crate::event_json;
use crate::replay::record::Taping;
use crate::simulate::wire::cause::{Why, Wired};
use crate::simulate::wire::plan::{Passwords, USER};

/// The same pool once more, which is recorded as shells record theirs.
pub(super) type Tape = Taping<Wired, Vec<u8>>;

impl Tape {
    pub(super) fn new(options: &PoolOptions) -> Result<Self, String> {
        let nobody = &mut |_: Action<Wired>| {};
        let pool = PoolState::new(Instant::ORIGIN, options.clone(), nobody);
        let pool = pool.map_err(|error| error.to_string())?;
        Ok(Self::begin(pool, JournalOptions::default().with_actions(true), Vec::new()))
    }
}

impl World<'_> {
    /// What must be shown nowhere, from the start.
    pub(super) fn keep_secrets(&mut self) {
        let Passwords { user, proxy } = self.plan.passwords();
        self.witness.secrets.keep("the user's password", user.as_bytes());
        self.witness.secrets.keep("the proxy's password", proxy.as_bytes());
        let hash = self.plan.login.and_then(|login| match login.mechanism {
            Mechanism::ScramSha1 => Some(Hash::Sha1),
            Mechanism::ScramSha256 => Some(Hash::Sha256),
            Mechanism::Plain | Mechanism::MongodbX509 => None,
        });
        if let Some(hash) = hash {
            self.witness.secrets.keep_password(hash, USER, &user);
        }
        self.witness.look_at("the connection string", &self.uri);
        self.witness.look_at("the options of connections", &self.options);
        self.witness.look_at("the server's settings", &self.plan.settings());
        self.witness.read("the plan", &self.plan.to_string());
    }

    /// An error that the pool is told of.
    pub(super) fn why(&mut self, error: &ConnectionError) -> Why {
        self.causes += 1;
        #[cfg(test)]
        if let Some(leak) = self.leak {
            let reason = leak(self);
            return Why::new(self.causes, ConnectionError::protocol(error.stage(), &reason));
        }
        self.witness.look_at_error(error);
        Why::new(self.causes, error.clone())
    }

    /// What whoever subscribes to events, reads logs or prints what he got can see of an action.
    pub(super) fn show(&mut self, action: &Action<Wired>) {
        self.witness.look_at("an action of the pool", action);
        if let Action::EmitEvent(event) = action {
            self.show_event(event);
        }
    }

    fn show_event(&mut self, event: &Event<Why>) {
        let at = self.now.saturating_since(Instant::ORIGIN);
        let address: &ServerAddress = &self.kit.address;
        let line = serde_json::to_string(&event_json::line(event, address, at));
        let record = LogRecord::new(event, address, &LogSettings::default());
        let logged = format!("{record} {record:?}");
        self.witness.read("an event", &line.unwrap_or_default());
        self.witness.read("the log", &logged);
    }

    /// What is rather large to be printed at every step.
    pub(super) fn show_all(&mut self) {
        self.witness.look_at("the server", &self.server);
        self.witness.look_at("what connections share", &self.kit);
        self.witness.look_at("the connections", &self.lines);
        self.witness.look_at("the pool", self.subject.pool());
        if let Some(watch) = &self.watch {
            self.witness.look_at("the monitor", watch);
        }
    }

    pub(super) fn record(&mut self, at: Instant, input: &Input<Wired>) -> Result<(), String> {
        let Some(tape) = &mut self.tape else { return Ok(()) };
        tape.feed(at, input.clone()).map_err(|error| format!("it cannot be recorded: {error}"))
    }

    /// The trace goes the same way again, and holds no secret either.
    pub(super) fn end_tape(&mut self) -> Result<(), String> {
        self.show_all();
        let Some(tape) = self.tape.take() else { return Ok(()) };
        let trace = tape.finish().map_err(|error| error.to_string())?;
        self.witness.look_at_bytes("the trace", &trace);
        self.witness.verdict()?;
        let wrong = |error| format!("the trace: {error}");
        let mut replay = Replay::new(trace.as_slice()).map_err(wrong)?;
        while replay.step(&mut |_| {}).map_err(wrong)?.is_some() {}
        let ended = replay.pool().fingerprint() == self.subject.pool().fingerprint();
        if ended { Ok(()) } else { Err("the trace ends in another state".to_owned()) }
    }
}
