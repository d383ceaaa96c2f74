use std::sync::Arc;

use bson::{RawBsonRef, RawDocument};

use super::{
    ConnectionDescription, EstablishOptions, Limits, Membership, ServerKind,
    field::{self, Field, FieldError, Fields},
    membership::last_write_ms,
};
use crate::error::{ConnectionError, Stage};
use crate::pool::ServiceId;
use crate::sdam::TopologyVersion;
use crate::uri::{Compressor, Mechanism};

/// Why a connection fails when the server was to be behind a load balancer and does not know of
/// one.
// LB-12
pub const LOAD_BALANCING_UNSUPPORTED: &str = "Driver attempted to initialize in load balancing \
                                              mode, but the server does not support this mode.";

/// All that is read of it.
// HS-11
const FIELDS: [&str; 21] = [
    "isreplicaset",
    "msg",
    "setName",
    "isWritablePrimary",
    "ismaster",
    "hidden",
    "secondary",
    "arbiterOnly",
    "helloOk",
    "minWireVersion",
    "maxWireVersion",
    "maxBsonObjectSize",
    "maxMessageSizeBytes",
    "maxWriteBatchSize",
    "logicalSessionTimeoutMinutes",
    "connectionId",
    "serviceId",
    "topologyVersion",
    "compression",
    "speculativeAuthenticate",
    "saslSupportedMechs",
];

/// A server's answer to hello, in both its shapes.
pub(super) struct HelloReply<'a> {
    pub(super) description: ConnectionDescription,
    /// The answer to the speculative command, if the server took part.
    pub(super) speculative: Option<&'a RawDocument>,
    /// Whether the user can authenticate with SCRAM-SHA-256.
    pub(super) offers_scram_sha_256: bool,
}

impl<'a> HelloReply<'a> {
    /// Fields that are absent have the defaults that [`ConnectionDescription`] names.
    ///
    /// # Errors
    ///
    /// A refusal, a field of the wrong type, or a server that does not fit to the options; all at
    /// [`Stage::Hello`].
    pub(super) fn read(
        reply: &'a RawDocument,
        options: &EstablishOptions,
    ) -> Result<Self, ConnectionError> {
        let broken =
            |error: FieldError| ConnectionError::protocol(Stage::Hello, &error.to_string());
        if let Some(error) = field::refusal(reply).map_err(broken)? {
            return Err(ConnectionError::command(Stage::Hello, error));
        }
        let mut read = Self::read_fields(reply, options).map_err(broken)?;
        if options.keeps_reply {
            read.description.read_for_monitor(reply).map_err(broken)?;
        }
        if options.load_balanced && read.description.service_id.is_none() {
            return Err(ConnectionError::configuration(Stage::Hello, LOAD_BALANCING_UNSUPPORTED));
        }
        Ok(read)
    }

    fn read_fields(reply: &'a RawDocument, options: &EstablishOptions) -> Field<Self> {
        let reply = &Fields::of(reply, &FIELDS)?;
        let description = ConnectionDescription {
            kind: kind(reply, options.load_balanced)?,
            hello_ok: field::boolean(reply, "helloOk")? == Some(true),
            min_wire_version: field::small_number(reply, "minWireVersion")?.unwrap_or_default(),
            max_wire_version: field::small_number(reply, "maxWireVersion")?.unwrap_or_default(),
            limits: limits(reply)?,
            set_name: field::text(reply, "setName")?.map(str::to_owned),
            session_timeout_minutes: field::whole_number(reply, "logicalSessionTimeoutMinutes")?,
            membership: None,
            last_write_ms: None,
            connection_id: field::whole_number(reply, "connectionId")?,
            service_id: service_id(reply, options.load_balanced)?,
            topology_version: topology_version(reply)?,
            compressor: compressor(reply, &options.compressors)?,
            mechanism: None,
            reply: None,
        };
        Ok(Self {
            description,
            speculative: field::document(reply, "speculativeAuthenticate")?,
            offers_scram_sha_256: offers(reply, Mechanism::ScramSha256),
        })
    }
}

impl ConnectionDescription {
    /// What only a monitor needs. Connections of pools do without, because it may be long.
    fn read_for_monitor(&mut self, reply: &RawDocument) -> Field<()> {
        if self.set_name.is_some() {
            self.membership = Some(Arc::new(Membership::read(reply)?));
        }
        self.last_write_ms = last_write_ms(reply)?;
        self.reply = Some(reply.as_bytes().into());
        Ok(())
    }
}

fn kind(reply: &Fields<'_>, load_balanced: bool) -> Field<ServerKind> {
    let is = |name| field::boolean(reply, name).map(|flag| flag == Some(true));
    if load_balanced {
        return Ok(ServerKind::LoadBalancer);
    }
    if is("isreplicaset")? {
        return Ok(ServerKind::RsGhost);
    }
    if field::text(reply, "msg")? == Some("isdbgrid") {
        return Ok(ServerKind::Mongos);
    }
    if field::text(reply, "setName")?.is_none() {
        return Ok(ServerKind::Standalone);
    }
    let writable = match field::boolean(reply, "isWritablePrimary")? {
        Some(writable) => writable,
        None => is("ismaster")?,
    };
    Ok(if is("hidden")? {
        ServerKind::RsOther
    } else if writable {
        ServerKind::RsPrimary
    } else if is("secondary")? {
        ServerKind::RsSecondary
    } else if is("arbiterOnly")? {
        ServerKind::RsArbiter
    } else {
        ServerKind::RsOther
    })
}

fn limits(reply: &Fields<'_>) -> Field<Limits> {
    let Limits { max_bson_object_size, max_message_size, max_write_batch_size } = Limits::default();
    let or = |name, default| field::count(reply, name).map(|count| count.unwrap_or(default));
    Ok(Limits {
        max_bson_object_size: or("maxBsonObjectSize", max_bson_object_size)?,
        max_message_size: or("maxMessageSizeBytes", max_message_size)?,
        max_write_batch_size: or("maxWriteBatchSize", max_write_batch_size)?,
    })
}

/// Without `loadBalanced` the field is ignored.
fn service_id(reply: &Fields<'_>, load_balanced: bool) -> Field<Option<ServiceId>> {
    if !load_balanced {
        return Ok(None);
    }
    let id = field::object_id(reply, "serviceId")?;
    Ok(id.map(|id| ServiceId(id.bytes())))
}

fn topology_version(reply: &Fields<'_>) -> Field<Option<TopologyVersion>> {
    let version = field::document(reply, "topologyVersion")?;
    Ok(version.and_then(TopologyVersion::from_document))
}

/// The first of ours that is among theirs; unknown names do not matter.
// CM-05, CM-06, CM-14
fn compressor(reply: &Fields<'_>, ours: &[Compressor]) -> Field<Option<Compressor>> {
    let Some(theirs) = field::array(reply, "compression")? else { return Ok(None) };
    let has = |ours: &Compressor| {
        theirs.into_iter().flatten().any(|theirs| theirs.as_str() == Some(ours.name()))
    };
    Ok(ours.iter().copied().find(has))
}

/// What else is in the list is not looked at, nor whether it is a list.
// HS-46
fn offers(reply: &Fields<'_>, mechanism: Mechanism) -> bool {
    let list = field::any(reply, "saslSupportedMechs").and_then(RawBsonRef::as_array);
    let mut names = list.into_iter().flatten().flatten();
    names.any(|name| name.as_str() == Some(mechanism.name()))
}
