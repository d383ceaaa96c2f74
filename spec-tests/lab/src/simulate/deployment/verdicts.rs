//! Failed connections, as SDAM sees them.

use std::sync::Arc;

use cenote_core::client::machine::Input;
use cenote_core::error::{ConnectionError, Kind, Stage};
use cenote_core::monitor::ServerDescription;
use cenote_core::pool::ConnId;
use cenote_core::sdam::TopologyVersion;
use cenote_core::topology::ServerId;

use super::world::World;
use crate::simulate::coverage::Situation;

/// What a failure has to lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Nothing,
    Unknown,
    UnknownAndCleared,
}

impl World<'_> {
    /// SDAM sees the failure of a connection before its pool does.
    pub(super) fn report(
        &mut self,
        server: ServerId,
        id: ConnId,
        error: &ConnectionError,
    ) -> Result<(), String> {
        let Some((known, generation)) = self.state_of(server) else { return Ok(()) };
        let topology_version = known.as_ref().and_then(|known| known.topology_version);
        let Some(its) = self.client.server(server) else { return Ok(()) };
        let is_current = !its.subject.pool().is_stale(id);
        let service = its.subject.pool().service_of(id);
        self.coverage.count(Situation::Verdict);
        let failed = error.clone();
        self.feed_client(Input::ConnectionFailed { server, error: failed, is_current, service })?;
        if self.plan.deployment.services() != 0 {
            return Ok(());
        }
        let expected = expected_effect(!is_current, topology_version.as_ref(), error);
        self.expect_effect(server, (known, generation), error, expected)
    }

    /// What the topology knows of a server, if it is still one of its servers, and the generation of its pool.
    fn state_of(&self, server: ServerId) -> Option<(Option<Arc<ServerDescription>>, u64)> {
        let its = self.client.servers.get(&server)?;
        let is_present = self.client.judge.is_added(&its.address, its.id);
        let topology = self.client.state.description();
        let known = topology.server(&its.address).filter(|_| is_present).cloned();
        Some((known, its.subject.pool().generation()))
    }

    fn expect_effect(
        &self,
        server: ServerId,
        (known, generation): (Option<Arc<ServerDescription>>, u64),
        error: &ConnectionError,
        expected: Effect,
    ) -> Result<(), String> {
        let (Some(known), Some((Some(now), cleared))) = (known, self.state_of(server)) else {
            return Ok(());
        };
        let is_told = now.error.as_ref().map(ToString::to_string) == Some(error.to_string());
        let effect = match (Arc::ptr_eq(&known, &now), is_told, cleared - generation) {
            (true, _, 0) => Some(Effect::Nothing),
            (false, true, 0) => Some(Effect::Unknown),
            (false, true, 1) => Some(Effect::UnknownAndCleared),
            // A check was overdue: it was requested, and has timed out at the same moment.
            (false, false, 1..) if expected != Effect::Nothing => Some(expected),
            _ => None,
        };
        match effect {
            Some(effect) if effect == expected => Ok(()),
            effect => Err(format!(
                "{error}: expected {expected:?}, seen {effect:?}: {known} became {now}, and the pool \
                 was cleared {} times",
                cleared - generation
            )),
        }
    }
}

/// By SDAM's text on errors of applications.
fn expected_effect(
    is_stale: bool,
    known: Option<&TopologyVersion>,
    error: &ConnectionError,
) -> Effect {
    let reply = error.command_error();
    let version = reply.and_then(|reply| reply.topology_version.as_ref());
    let is_older = |known: &TopologyVersion, version: &TopologyVersion| {
        known.process_id == version.process_id && known.counter >= version.counter
    };
    if is_stale || known.zip(version).is_some_and(|(known, version)| is_older(known, version)) {
        return Effect::Nothing;
    }
    let is_network = matches!(error.kind(), Kind::Network | Kind::NetworkTimeout { .. });
    match (error.stage(), reply.and_then(|reply| reply.code)) {
        (Stage::Tcp | Stage::TlsIo | Stage::Hello, _) if is_network => Effect::Nothing,
        (Stage::Operation, None) if matches!(error.kind(), Kind::NetworkTimeout { .. }) => {
            Effect::Nothing
        }
        (Stage::Operation, Some(10_107 | 13_435 | 13_436 | 11_602 | 189 | 10_058)) => {
            Effect::Unknown
        }
        (Stage::Operation, Some(code)) if code != 91 && code != 11_600 => Effect::Nothing,
        _ => Effect::UnknownAndCleared,
    }
}
