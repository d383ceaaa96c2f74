//! Any inputs in any order.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{RoundTrip, ServerDescription};
use cenote_core::pool::Instant;
use cenote_core::topology::{Action, Input, ServerId};
use proptest::prelude::*;

use crate::topology::world::{address, described_at, elected, member, router, standalone};

pub(crate) const HOSTS: [&str; 5] = ["a:27017", "b:27017", "c:27017", "d:27017", "e:27017"];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Reply {
        server: usize,
        role: usize,
        hosts: u8,
        election: u8,
        set_version: i64,
        counter: Option<i64>,
        /// From the monitor of the server that was at this address before, if there was one.
        is_late: bool,
    },
    Fail {
        server: usize,
    },
    Hosts {
        hosts: u8,
    },
    Close,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let counter = prop::option::of(0..4_i64);
    let is_late = prop::bool::weighted(0.1);
    let reply = (0..5_usize, 0..7_usize, 1..32_u8, 0..4_u8, 0..3_i64, counter, is_late);
    let step = prop_oneof![
        12 => reply.prop_map(|(server, role, hosts, election, set_version, counter, is_late)| {
            Step::Reply { server, role, hosts, election, set_version, counter, is_late }
        }),
        3 => (0..5_usize).prop_map(|server| Step::Fail { server }),
        1 => (0..32_u8).prop_map(|hosts| Step::Hosts { hosts }),
        1 => prop::bool::weighted(0.1).prop_map(|close| {
            if close { Step::Close } else { Step::Fail { server: 0 } }
        }),
    ];
    proptest::collection::vec(step, 0..80)
}

pub(crate) fn uri() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "mongodb://a,b,c",
        "mongodb://a",
        "mongodb://a,b/?replicaSet=rs",
        "mongodb://a/?replicaSet=rs",
        "mongodb://a/?directConnection=true",
        "mongodb://a/?loadBalanced=true",
    ])
}

/// The servers that were ever added, the first one first.
#[derive(Debug, Default)]
pub(crate) struct Ids(Vec<(ServerId, Arc<ServerAddress>)>);

impl Ids {
    pub(crate) fn note(&mut self, action: &Action) {
        if let Action::AddServer { id, address } = action {
            self.0.push((*id, Arc::clone(address)));
        }
    }

    /// The last one at this address, and the ones before it; in the end one that none has.
    pub(crate) fn at(&self, server: &str) -> impl Iterator<Item = ServerId> {
        let address = address(server);
        let added = self.0.iter().rev().filter(move |(_, its)| **its == address);
        added.map(|(id, _)| *id).chain([ServerId(u64::MAX)])
    }
}

/// As a monitor would feed it.
pub(crate) fn input(step: &Step, now: Instant, ids: &Ids) -> Input {
    let by = |server: usize, place, description| Input::Described {
        id: ids.at(HOSTS[server]).nth(place).unwrap_or(ServerId(u64::MAX)),
        description: Arc::new(description),
    };
    let of = |server, description| by(server, 0, description);
    match step {
        Step::Reply { server, is_late, .. } => {
            let reply = reply(step).expect("a reply");
            let average = Duration::from_micros(now.as_nanos() % 7_000);
            let round_trip = Some(RoundTrip { average, minimum: average / 2 });
            by(*server, usize::from(*is_late), described_at(&reply, round_trip, now))
        }
        Step::Fail { server } => {
            let error = ConnectionError::network(Stage::Tcp, "refused");
            of(*server, ServerDescription::unknown(error, None, now))
        }
        Step::Hosts { hosts } => {
            Input::Hosts { hosts: named(*hosts).into_iter().map(address).collect() }
        }
        Step::Close => Input::Close,
    }
}

fn named(hosts: u8) -> Vec<&'static str> {
    (0..5).filter(|bit| hosts & (1 << bit) != 0).map(|bit| HOSTS[bit]).collect()
}

fn reply(step: &Step) -> Option<bson::RawDocumentBuf> {
    let Step::Reply { role, hosts, election, set_version, counter, .. } = step else { return None };
    let hosts = named(*hosts);
    let mut reply = match role {
        0..=2 => elected(&hosts, *election, *set_version),
        3 => member("rs", "secondary", &hosts),
        4 => member("other", "primary", &hosts),
        5 => router(),
        _ => standalone(),
    };
    if let Some(counter) = counter {
        let process_id = bson::oid::ObjectId::from_bytes([7; 12]);
        let version = bson::rawdoc! { "processId": process_id, "counter": *counter };
        reply.append(bson::cstr!("topologyVersion"), version);
    }
    Some(reply)
}
