//! What one can ask of a client.

use std::ffi::c_char;

use cenote_core::connect::ServerKind as CoreKind;
use cenote_core::topology::ServerId;

use super::{Client, with};
use crate::action::nanos;
use crate::pointer::{Out, Text, sized, sized_struct};
use crate::status::{Status, call};

/// The type of a server.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Not checked yet, or the last check failed.
    Unknown = 0,
    /// A server of its own.
    Standalone = 1,
    /// A router of a sharded cluster.
    Mongos = 2,
    /// The primary of a replica set.
    RsPrimary = 3,
    /// A secondary.
    RsSecondary = 4,
    /// An arbiter. Connections to it do not authenticate.
    RsArbiter = 5,
    /// Another member: hidden, starting, recovering.
    RsOther = 6,
    /// A member that has no configuration yet.
    RsGhost = 7,
    /// A load balancer.
    LoadBalancer = 8,
}

/// What is known of a server.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// `sizeof(cenote_server_info)`; to be set before the call.
    pub size: u32,
    /// A `cenote_server_kind`.
    pub kind: u32,
    /// How long it takes to answer, in nanoseconds, as a moving average; 0 if that is not known.
    pub round_trip: u64,
    /// Its `maxWireVersion`; 0 if that is not known.
    pub max_wire_version: i32,
    /// 0, for later versions.
    pub reserved: [u8; 44],
}

sized_struct!(Server, "cenote_server_info", default);

/// Tells about a server; `CENOTE_STATUS_NOTHING` if it was removed, or never was one.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_server(
    client: *const Client,
    server: u64,
    info: *mut Server,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::new(info)? };
        out.write(with(client, |inner| {
            let address = inner.address(ServerId(server))?;
            let Some(known) = inner.machine.description().server(address) else {
                return Ok(sized());
            };
            let hello = known.hello.as_ref();
            Ok(Server {
                kind: known.kind().map_or(ServerKind::Unknown, ServerKind::of) as u32,
                round_trip: known.round_trip.map_or(0, |it| nanos(it.average)),
                max_wire_version: hello.map_or(0, |hello| hello.max_wire_version),
                ..sized()
            })
        })?);
        Ok(())
    })
}

/// Where a server is: `host:port`, or the path of a UNIX domain socket. `CENOTE_STATUS_NOTHING` if it was removed, or never was one.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_address(
    client: *const Client,
    server: u64,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer, capacity, length) };
        let text = with(client, |inner| inner.address(ServerId(server)).map(ToString::to_string))?;
        target.write(&text)
    })
}

/// What is known of the deployment, as one line.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_description(
    client: *const Client,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer, capacity, length) };
        target.write(&with(client, |inner| Ok(inner.machine.description().to_string()))?)
    })
}

impl ServerKind {
    const fn of(kind: CoreKind) -> Self {
        match kind {
            CoreKind::Standalone => Self::Standalone,
            CoreKind::Mongos => Self::Mongos,
            CoreKind::RsPrimary => Self::RsPrimary,
            CoreKind::RsSecondary => Self::RsSecondary,
            CoreKind::RsArbiter => Self::RsArbiter,
            CoreKind::RsOther => Self::RsOther,
            CoreKind::RsGhost => Self::RsGhost,
            CoreKind::LoadBalancer => Self::LoadBalancer,
            _ => Self::Unknown,
        }
    }
}
