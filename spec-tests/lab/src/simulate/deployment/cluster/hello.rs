//! What a server answers to hello.

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::{DateTime, RawArrayBuf, RawDocumentBuf, rawdoc};

use super::Cluster;
use super::config::MemberConfig;
use super::node::{MemberState, Node, NodeKind};
use crate::simulate::deployment::plan::MemberKind;

/// The fields of a reply to hello, before they are encoded: so that [wrong answers](super::WrongAnswer) can change
/// them.
#[derive(Clone, Debug, Default)]
pub(super) struct Hello {
    pub(super) is_refused: bool,
    pub(super) is_ghost: bool,
    pub(super) is_router: bool,
    pub(super) set_name: Option<String>,
    pub(super) is_primary: bool,
    pub(super) is_secondary: bool,
    pub(super) is_hidden: bool,
    pub(super) is_arbiter: bool,
    pub(super) hosts: Vec<String>,
    pub(super) passives: Vec<String>,
    pub(super) arbiters: Vec<String>,
    pub(super) me: Option<String>,
    pub(super) primary: Option<String>,
    pub(super) set_version: Option<i64>,
    pub(super) election: Option<u64>,
    pub(super) min_wire_version: i32,
    pub(super) max_wire_version: i32,
    pub(super) topology_version: Option<(u64, i64)>,
    /// A field that has a value of another type.
    pub(super) is_mistyped: bool,
}

impl Hello {
    /// What is true.
    pub(super) fn of(cluster: &Cluster, index: usize) -> Self {
        let Some(node) = cluster.nodes.get(index) else { return Self::default() };
        let hello = Self {
            max_wire_version: node.max_wire_version,
            topology_version: node.topology_version(),
            ..Self::default()
        };
        match node.kind {
            NodeKind::Router | NodeKind::LoadBalancer => Self { is_router: true, ..hello },
            NodeKind::Standalone => Self { is_primary: true, ..hello },
            NodeKind::Member => match node.config.member(index) {
                Some(own) => hello.of_member(cluster, node, own),
                None => Self { is_ghost: true, ..hello },
            },
        }
    }

    fn of_member(self, cluster: &Cluster, node: &Node, own: &MemberConfig) -> Self {
        let config = &node.config;
        let primary = node.primary.and_then(|primary| config.member(primary));
        let is_primary = node.term().is_some();
        let has_data = node.state == MemberState::Secondary;
        Self {
            set_name: Some(config.set.clone()),
            is_primary,
            is_secondary: has_data && own.kind != MemberKind::Arbiter,
            is_arbiter: has_data && own.kind == MemberKind::Arbiter,
            is_hidden: own.kind == MemberKind::Hidden,
            hosts: config.hosts(MemberKind::Electable),
            passives: config.hosts(MemberKind::Passive),
            arbiters: config.hosts(MemberKind::Arbiter),
            me: Some(own.host.clone()),
            primary: primary.filter(|_| cluster.nodes.len() > 1).map(|it| it.host.clone()),
            set_version: Some(config.version),
            election: node.term(),
            ..self
        }
    }

    /// `connection` is how the server calls the connection, and `written` when it last wrote: neither is news.
    pub(super) fn encode(&self, connection: i64, written: i64) -> RawDocumentBuf {
        if self.is_refused {
            return rawdoc! { "ok": 0, "errmsg": "not today", "code": 1234, "codeName": "Refused" };
        }
        let mut reply = rawdoc! {
            "ok": 1,
            "helloOk": true,
            "minWireVersion": self.min_wire_version,
            "maxWireVersion": self.max_wire_version,
            "connectionId": connection,
            "isWritablePrimary": self.is_primary,
        };
        if self.is_ghost {
            reply.append(cstr!("isreplicaset"), true);
        }
        if self.is_router {
            reply.append(cstr!("msg"), "isdbgrid");
        }
        if let Some((process, counter)) = self.topology_version {
            let version = rawdoc! { "processId": process_id(process), "counter": counter };
            reply.append(cstr!("topologyVersion"), version);
        }
        if let Some(set_name) = &self.set_name {
            reply.append(cstr!("setName"), set_name.as_str());
            self.encode_membership(&mut reply, written);
        }
        reply
    }

    fn encode_membership(&self, reply: &mut RawDocumentBuf, written: i64) {
        for (name, flag) in [
            (cstr!("secondary"), self.is_secondary),
            (cstr!("hidden"), self.is_hidden),
            (cstr!("arbiterOnly"), self.is_arbiter),
        ] {
            if flag {
                reply.append(name, true);
            }
        }
        for (name, hosts) in [
            (cstr!("hosts"), &self.hosts),
            (cstr!("passives"), &self.passives),
            (cstr!("arbiters"), &self.arbiters),
        ] {
            if !hosts.is_empty() {
                reply.append(name, hosts.iter().map(String::as_str).collect::<RawArrayBuf>());
            }
        }
        if self.is_mistyped {
            reply.append(cstr!("setVersion"), "seven");
        } else if let Some(version) = self.set_version {
            reply.append(cstr!("setVersion"), version);
        }
        if let Some(term) = self.election {
            reply.append(cstr!("electionId"), ObjectId::from_bytes(election_id(term)));
        }
        for (name, host) in [(cstr!("me"), &self.me), (cstr!("primary"), &self.primary)] {
            if let Some(host) = host {
                reply.append(name, host.as_str());
            }
        }
        let last_write = rawdoc! { "lastWriteDate": DateTime::from_millis(written) };
        reply.append(cstr!("lastWrite"), last_write);
    }
}

/// As servers make it of the term.
pub(in super::super) fn election_id(term: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    bytes[4..].copy_from_slice(&term.to_be_bytes());
    bytes
}

pub(in super::super) fn process_id(process: u64) -> ObjectId {
    let mut bytes = [0x0c; 12];
    bytes[4..].copy_from_slice(&process.to_be_bytes());
    ObjectId::from_bytes(bytes)
}
